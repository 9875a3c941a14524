"""The keys of three built-in sheets, worked by other arithmetic than ours: plain Python floats, from the textbook."""

from math import exp, sqrt
from typing import Any

import pytest

from headwork.readings.exact import Matrix
from headwork.readings.floats import to_floats
from headwork.solving import solve


def values(name: str) -> dict[str, Any]:
    found: dict[str, Matrix] = {}
    for problem in solve(name).problems:
        for part in problem.parts:
            found |= {step.role: step.value for step in part.steps if step.value is not None}
    return {role: to_floats(value) for role, value in found.items()}


def close(found: Any, expected: list[list[float]]) -> None:
    for row, wanted in zip(found, expected, strict=True):
        assert row == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def test_one_step_of_learning() -> None:
    """A nudge of every entry of W_Q and W_V moves the loss as their gradients say."""

    def loss(W_Q: list[list[float]], W_V: list[list[float]]) -> float:
        total = 0.0
        for i in range(2):  # X is the identity, so Q = W_Q, V = W_V and K = W_K swaps the two
            scores = [W_Q[i][1], W_Q[i][0]]
            powers = [exp(s) for s in scores]
            for j in range(2):
                total += powers[j] / sum(powers) * sum(W_V[j])
        return total

    W_Q, W_V = [[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 4.0]]
    found = values("one-step-of-learning")
    for name, matrix in (("W_Q", W_Q), ("W_V", W_V)):
        for i in range(2):
            for j in range(2):
                before = matrix[i][j]
                matrix[i][j] = before + 1e-6
                above = loss(W_Q, W_V)
                matrix[i][j] = before - 1e-6
                slope = (above - loss(W_Q, W_V)) / 2e-6
                matrix[i][j] = before
                assert found[f"d_{name}"][i][j] == pytest.approx(slope, abs=1e-8)
                assert found[f"next_{name}"][i][j] == pytest.approx(before - slope / 2, abs=1e-8)
    p = 1 / (1 + exp(-1))  # the weight of the larger score; −2·p·(1 − p) is −0.3932
    close(found["d_scores"], [[-2 * p * (1 - p), 2 * p * (1 - p)]] * 2)
    close(found["next_W_V"], [[1.5, -0.5], [-0.5, 3.5]])


def test_two_blocks() -> None:
    """All four keys at once: scores 1, 2, 3, 2."""
    powers = [exp(s) for s in (1, 2, 3, 2)]
    V = [[1, 0], [0, 2], [4, 0], [2, 2]]
    found = values("two-blocks")
    close(found["head_output"], [[sum(p * v[j] for p, v in zip(powers, V, strict=True)) / sum(powers) for j in (0, 1)]])
    close(found["maxima"], [[3]])
    close(found["correction"], [[exp(-1)]])
    close(found["sums"], [[1 + 2 * exp(-1) + exp(-2)]])


def norm(rows: list[list[float]]) -> list[list[float]]:
    made = []
    for row in rows:
        mean = sum(row) / len(row)
        deviation = sqrt(sum(x * x for x in row) / len(row) - mean * mean)  # E[x²] − E[x]²
        made.append([(x - mean) / deviation for x in row])
    return made


def test_an_encoder_block() -> None:
    """Scores 0 1 and 1 0: each token gives the other e/(1 + e) of its weight."""
    p = exp(1) / (1 + exp(1))
    V = [[1, 0, 2], [0, 2, 1]]
    output = [[a * V[0][j] + b * V[1][j] for j in range(3)] for a, b in ((1 - p, p), (p, 1 - p))]
    found = values("encoder-block")
    close(found["head_output"], output)
    X = [[1, 0, 2], [0, 1, 1]]
    first = norm([[x + o for x, o in zip(*pair, strict=True)] for pair in zip(X, output, strict=True)])
    close(found["normed_1"], first)
    fed = []
    for a, b, c in first:
        one, two = max(a + c, 0.0), max(2 * b - a, 0.0)
        fed.append([one, two, 2 * two])
    close(found["fed_2"], fed)
    close(
        found["normed_2"], norm([[x + f for x, f in zip(*pair, strict=True)] for pair in zip(first, fed, strict=True)])
    )
