"""A head cut down to what pencil and paper can do: a few tokens, a few dimensions, tenths."""

from fractions import Fraction

import numpy as np

from headwork.engine.arrays import Array
from headwork.errors import HeadworkError
from headwork.looking.capture import Captured
from headwork.looking.measures import strongest
from headwork.readings.exact import Matrix
from headwork.sheets.sheet import Part, Problem, Sheet

TOKENS, D_K, D_V = 4, 3, 2  # at most


def small_sheet(captured: Captured, layer: int, head: int) -> Sheet:
    """Of one head: the tokens of its strongest pairs, the dimensions that make most of their scores, in tenths."""
    (found,) = captured.only([layer]).layers
    if not 0 <= head < len(found.q):
        raise HeadworkError(f"there is no head {head}; layer {layer} has 0 to {len(found.q) - 1}")
    tokens = _tokens(found.weights[head])
    shared = head // found.group
    q, k, v = found.q[head][tokens], found.k[shared][tokens], found.v[shared][tokens]
    wide = _largest(np.abs(q[:, None] * k).sum((0, 1)), D_K)
    values = _largest(v.std(0), D_V)
    names = ", ".join(f"“{captured.tokens[i]}”" for i in tokens)
    text = (
        f"Of layer {layer}, head {head} of {captured.name} these are the tokens {names}: {len(wide)} of "
        f"{q.shape[1]} dimensions of the queries and keys, {len(values)} of the values, rounded to tenths. So the "
        "weights are not the model's own; how they are made is the same."
    )
    problem = Problem(
        title=f"Layer {layer}, head {head}",
        formula="scaled_dot_product",
        text=text,
        given={("Q", None): _tenths(q[:, wide]), ("K", None): _tenths(k[:, wide]), ("V", None): _tenths(v[:, values])},
        parts=(
            Part("a", text="Find the scores.", find=("scores",)),
            Part("b", text="Find the weights.", find=("weights",)),
            Part("c", text="Find what the head puts out.", find=("head_output",)),
        ),
    )
    return Sheet(problem.title, (problem,), f"A head of {captured.name}, small enough for pencil")


def _tokens(weights: Array) -> list[int]:
    """Those of the strongest pairs, in the order of the text."""
    chosen: list[int] = []
    for pair in [*strongest(weights, weights.size), *((i, i) for i in range(len(weights)))]:
        chosen += [i for i in pair if i not in chosen and len(chosen) < TOKENS]
    return sorted(chosen)


def _largest(sizes: Array, number: int) -> list[int]:
    return sorted(int(i) for i in np.argsort(-sizes, kind="stable")[:number])


def _tenths(array: Array) -> Matrix:
    return tuple(tuple(Fraction(round(float(x) * 10), 10) for x in row) for row in array)
