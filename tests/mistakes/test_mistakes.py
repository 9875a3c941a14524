"""The catalogue: every tag is there, every rewrite does what NumPy says the mistake does."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headwork.graph import Step, read
from headwork.inspecting.arrays import VALUES
from headwork.mistakes import slips
from headwork.mistakes.catalogue import CATALOGUE, SUBJECTS
from headwork.mistakes.diagnose import Variants
from headwork.mistakes.operations import EXACT, FLOATS
from headwork.mistakes.predict import Variant, float_handed
from headwork.readings.floats import to_floats
from headwork.sheets.fields import read_problem
from headwork.sheets.ready import Ready

Array = NDArray[np.float64]

TAGS = """
forgot-scale scaled-by-d_k scaled-by-sqrt-d_model scaled-by-sqrt-tokens scaled-by-sqrt-d_v softmax-columns
softmax-everything no-exponential maximum-of-wrong-axis mask-after-softmax mask-flipped mask-inverted mask-off-by-one
mask-too-weak forgot-mask k-not-transposed q-k-swapped projection-transposed heads-strided heads-reordered
joined-by-rows heads-added split-before-projection split-untransposed merged-untransposed forgot-output-projection
forgot-bias past-forgotten past-last causal-top-left forgot-positions forgot-position-bias position-bias-sign
forgot-rotary rotary-backwards rotary-pairs forgot-softcap softcap-after-mask forgot-residual
residual-from-normed forgot-norm norm-before-residual norm-down-columns mean-kept variance-over-n-1
variance-without-root forgot-eps eps-outside-root forgot-gain forgot-shift forgot-relu
gradient-not-transposed row-term-forgotten jacobian-diagonal backward-scale-forgotten backward-scale-twice
gradients-not-summed bias-gradient-not-summed sign one-entry swapped-entries transposed early-rounding
"""


def test_the_tags_are_stable() -> None:
    assert [*CATALOGUE, *slips.ADVICE] == TAGS.split()


def test_every_mistake_has_an_example_that_is_run() -> None:
    tests = [test for subject in SUBJECTS for test in doctest.DocTestFinder().find(subject) if test.examples]
    assert {tag.replace("-", "_") for tag in CATALOGUE} <= {test.name.rpartition(".")[2] for test in tests}
    assert all(doctest.testmod(subject).failed == 0 for subject in SUBJECTS)


@pytest.mark.parametrize("advice", [*(m.advice for m in CATALOGUE.values()), *slips.ADVICE.values()])
def test_advice_never_accuses(advice: str) -> None:
    assert "you" not in advice.lower().split()
    assert advice.endswith((".", "…"))


def softmax(s: Array, axis: int | None = -1) -> Array:
    e = np.exp(s - s.max())
    return np.asarray(e / e.sum(axis=axis, keepdims=axis is not None))


TOKENS, D, HEADS = 3, 6, 2
RNG = np.random.default_rng(3)
X = RNG.integers(-2, 3, (TOKENS, D)).astype(float)
W = {role: RNG.integers(-2, 3, (D, D)).astype(float) / 4 for role in ("W_Q", "W_K", "W_V", "W_O")}
B = {role: RNG.integers(1, 4, (D,)).astype(float) for role in ("b_Q", "b_K", "b_V", "b_O")}
HIDDEN = np.triu(np.full((TOKENS, TOKENS), -np.inf), 1)


def layer(
    *,
    scale: float = 3**0.5,
    attend: Any = softmax,
    after: Array | None = None,
    hidden: Array = HIDDEN,
    transposed: tuple[str, ...] = (),
    split: Any = lambda wide: np.split(wide, HEADS, axis=1),
    merge: Any = lambda heads: np.concatenate(heads, axis=1),
    project: bool = True,
    biases: bool = True,
    score: Any = lambda q, k: q @ k.T,
    wide: Any = None,
) -> Array:
    """The layer in plain NumPy, with a knob for every mistake."""
    w = {role: matrix.T if role in transposed else matrix for role, matrix in W.items()}
    b = B if biases else dict.fromkeys(B, 0.0)
    made = [(wide(X, w[f"W_{r}"]) if wide else X @ w[f"W_{r}"]) + b[f"b_{r}"] for r in "QKV"]
    Q, K, V = (split(m) for m in made)
    weights = [attend(score(q, k) / scale + hidden) for q, k in zip(Q, K, strict=True)]
    if after is not None:
        weights = [p * after for p in weights]
    joined = merge([p @ v for p, v in zip(weights, V, strict=True)])
    return np.asarray(joined @ w["W_O"] + b["b_O"] if project else joined)


def block_diagonal(x: Array, w: Array) -> Array:
    n = D // HEADS
    return np.concatenate([x[:, i : i + n] @ w[i : i + n, i : i + n] for i in range(0, D, n)], axis=1)


def share(s: Array) -> Array:
    seen = np.where(np.isneginf(s), 0, s)
    return np.asarray(seen / seen.sum(axis=1, keepdims=True))


NO = np.zeros_like(HIDDEN)
EXPECTED = {
    "forgot-scale": layer(scale=1),
    "scaled-by-d_k": layer(scale=3),
    "scaled-by-sqrt-d_model": layer(scale=6**0.5),
    "softmax-columns": layer(attend=lambda s: softmax(s, 0)),
    "softmax-everything": layer(attend=lambda s: softmax(s, None)),
    "no-exponential": layer(attend=share),
    "mask-after-softmax": layer(hidden=NO, after=np.tril(np.ones_like(HIDDEN))),
    "maximum-of-wrong-axis": layer(attend=lambda s: softmax(s - s.max(axis=0))),
    "mask-flipped": layer(hidden=HIDDEN.T),
    "mask-off-by-one": layer(hidden=np.triu(np.full((TOKENS, TOKENS), -np.inf), 2)),
    "mask-too-weak": layer(attend=lambda s: softmax(np.where(np.isneginf(s), 1e-9, s))),
    "forgot-mask": layer(hidden=NO),
    "k-not-transposed": layer(score=lambda q, k: q @ k),
    "q-k-swapped": layer(score=lambda q, k: k @ q.T),
    "projection-transposed": layer(transposed=("W_Q", "W_K", "W_V")),
    "heads-strided": layer(split=lambda wide: [wide[:, i::HEADS] for i in range(HEADS)]),
    "heads-reordered": layer(merge=lambda heads: np.concatenate(heads[::-1], axis=1)),
    "merged-untransposed": layer(merge=lambda heads: np.stack(heads).reshape(TOKENS, D)),
    "split-untransposed": layer(split=lambda wide: [*wide.reshape(HEADS, TOKENS, D // HEADS)]),
    "split-before-projection": layer(wide=block_diagonal),
    "forgot-bias": layer(biases=False),
}


def ready(mask: str = "causal") -> Ready:
    given: dict[str, Any] = {"X": [[str(x) for x in row] for row in X]}
    given |= {role: [[str(x) for x in row] for row in matrix] for role, matrix in W.items()}
    given |= {role: [str(x) for x in row] for role, row in B.items()}
    table = {"formula": "multi_head_blocks", "heads": HEADS, "mask": mask, "given": given}
    return Ready(read_problem({**table, "part": [{"label": "a", "find": ["output"]}]}, ""))


def worked(problem: Ready, last: Step, step: Step | None = None) -> Array:
    """What a graph says of a step of the problem; of its last one unless told."""
    return np.array(Variant(last, FLOATS).value(step or problem.last, float_handed(problem.handed)))


def test_without_a_mistake_the_graph_is_the_layer() -> None:
    problem = ready()
    assert worked(problem, problem.last) == pytest.approx(layer())


@pytest.mark.parametrize("tag", EXPECTED)
def test_a_mistake_does_what_numpy_does(tag: str) -> None:
    problem = ready()
    assert worked(problem, CATALOGUE[tag].made_in(problem.last)[0]) == pytest.approx(EXPECTED[tag])
    assert EXPECTED[tag] != pytest.approx(layer(), abs=0.01)


def test_an_inverted_mask_reads_only_what_is_hidden() -> None:
    """The last token may then read nothing, and its weights are all 0."""
    problem = ready()
    weights = worked(problem, CATALOGUE["mask-inverted"].made_in(problem.last)[0], problem.steps["weights", 0])
    assert np.all(np.tril(weights) == 0)
    assert weights.sum(axis=1) == pytest.approx([1, 1, 0])


@pytest.mark.parametrize("scale", ["none", "sqrt(d_k)"])
def test_scores_that_sum_to_0_cannot_be_shared_out(scale: str) -> None:
    """1/√3 + 2/√3 − 3/√3 is 0, though not in float64: the row has no number, and the other row has its own."""
    given = {"Q": [[1, 0, 0], [0, 1, 0]], "K": [[1, 1, 0], [2, 1, 0], [-3, 2, 0]], "V": [[1]] * 3}
    table = {"formula": "scaled_dot_product", "scale": scale, "given": given, "part": [{"find": ["weights"]}]}
    problem = Ready(read_problem(table, ""))
    mistaken = CATALOGUE["no-exponential"].made_in(problem.last)[0]
    weights = worked(problem, mistaken, problem.steps["weights", None])
    assert np.isnan(weights[0]).all()
    assert weights[1] == pytest.approx([0.25, 0.25, 0.5])


def test_the_other_ways_of_the_mask_the_maximum_and_the_split() -> None:
    """A token that may not read itself; maxima whose axis was not kept; the heads of a token among themselves."""
    problem = ready()
    behind = CATALOGUE["mask-off-by-one"].made_in(problem.last)[1]
    weights = worked(problem, behind, problem.steps["weights", 0])
    assert weights.sum(axis=1) == pytest.approx([0, 1, 1])
    assert np.all(np.triu(weights) == 0)
    of_rows = CATALOGUE["maximum-of-wrong-axis"].made_in(problem.last)[1]
    assert worked(problem, of_rows) == pytest.approx(layer(attend=lambda s: softmax(s - s.max(axis=1))))
    problem = ready("none")
    among = CATALOGUE["split-untransposed"].made_in(problem.last)[1]
    Q, K, V = ((X @ W[f"W_{r}"] + B[f"b_{r}"]).reshape(TOKENS, HEADS, -1) for r in "QKV")
    powers = np.exp(Q @ K.transpose(0, 2, 1) / 3**0.5)
    joined = (powers / powers.sum(axis=-1, keepdims=True) @ V).reshape(TOKENS, D)
    assert worked(problem, among) == pytest.approx(joined @ W["W_O"] + B["b_O"])


def test_a_scale_that_is_another_mistakes_is_named_once() -> None:
    """√tokens with as many tokens as d_k is right; with d_k² of them it is d_k."""
    for tokens, tags in ((2, set()), (4, {"scaled-by-d_k"}), (3, {"scaled-by-d_k", "scaled-by-sqrt-tokens"})):
        given = {"Q": [[1, 2]] * tokens, "K": [[1, 2]] * tokens, "V": [[1, 2]] * tokens}
        table = {"formula": "scaled_dot_product", "given": given, "part": [{"find": ["head_output"]}]}
        last = Ready(read_problem(table, "")).last
        made = {tag for tag in CATALOGUE if tag.startswith("scaled") and CATALOGUE[tag].made_in(last)}
        assert made == tags | {"scaled-by-d_k"}


def test_leaving_out_the_output_projection_keeps_or_drops_its_bias() -> None:
    problem = ready()
    kept, dropped = (worked(problem, g) for g in CATALOGUE["forgot-output-projection"].made_in(problem.last))
    assert dropped == pytest.approx(layer(project=False))
    assert kept == pytest.approx(dropped + B["b_O"])


def test_a_mistake_can_be_made_in_one_head() -> None:
    problem = ready()
    _, first, second = CATALOGUE["forgot-scale"].made_in(problem.last)
    one, other = problem.steps["weights", 0], problem.steps["weights", 1]
    right = worked(problem, problem.last, one)
    assert worked(problem, first, other) == pytest.approx(worked(problem, problem.last, other))
    assert worked(problem, first, one) != pytest.approx(right)
    assert worked(problem, second, one) == pytest.approx(right)


@pytest.mark.parametrize("tag", CATALOGUE)
def test_exact_numbers_floats_and_arrays_agree_on_every_mistaken_graph(tag: str) -> None:
    """What a mistake leads to, read in closed form, in Python's float64 and in NumPy's."""
    problem = ready()
    handed = float_handed(problem.handed)
    arrays = {step: np.array(matrix) for step, matrix in handed.items()}
    for last in CATALOGUE[tag].made_in(problem.last):
        by_array = Variant(last, VALUES).predict(problem.last, arrays)
        try:
            closed = read(last, EXACT, problem.handed)
        except ValueError:  # stacked or added heads no longer fit W_O: there is no output
            assert by_array is None
            assert Variant(last, FLOATS).predict(problem.last, handed) is None
            continue
        assert worked(problem, last) == pytest.approx(np.array(to_floats(closed[last])))
        assert by_array == pytest.approx(worked(problem, last))


def test_no_occasion_no_mistake() -> None:
    """One unmasked head without biases: nothing to strip, split, join or mask."""
    table = {"formula": "scaled_dot_product", "given": {"Q": [[1, 2]], "K": [[1, 2], [3, 4], [5, 6]], "V": [[1]] * 3}}
    last = Ready(read_problem({**table, "part": [{"find": ["head_output"]}]}, "")).last
    made = {tag for tag, mistake in CATALOGUE.items() if mistake.made_in(last)}
    scales = {"forgot-scale", "scaled-by-d_k", "scaled-by-sqrt-tokens"}
    assert made == scales | {"softmax-columns", "softmax-everything", "no-exponential"}


@pytest.mark.parametrize(
    ("answer", "slip"),
    [
        ([[1, 2, 3], [4, -5, 6]], ["sign"]),
        ([[1, 2, 3], [4, 7, 6]], ["one-entry"]),
        ([[1, 2, 3], [6, 5, 4]], ["swapped-entries"]),
        ([[1, 4], [2, 5], [3, 6]], ["transposed"]),
        ([[1, 2, 3], [-4, 5, -6]], ["sign"]),
        ([[1, 2, 3], [4, 5, 6]], []),
        ([[3, 1, 2], [4, 5, 6]], []),
    ],
)
def test_slips_of_the_pen(answer: list[list[float]], slip: list[str]) -> None:
    close = [[0.01] * len(row) for row in answer]
    assert list(slips.slips(answer, [[1, 2, 3], [4, 5, 6]], close)) == slip


@pytest.mark.parametrize("mask", ["none", "causal", [[1, 1, 0], [1, 0, 1]]])
def test_any_two_mistakes_can_be_made_together(mask: Any) -> None:
    """One may leave out what the other changes; fewer tokens than keys, where most have their occasion."""
    given = {"Q": [[1, 2], [0, 1]], "K": [[1, 2], [3, 4], [5, 6]], "V": [[1], [2], [3]]}
    table = {"formula": "scaled_dot_product", "mask": mask, "given": given, "part": [{"find": ["head_output"]}]}
    problem = Ready(read_problem(table if mask != "none" else {k: v for k, v in table.items() if k != "mask"}, ""))
    assert Variants(problem.last, FLOATS).pairs()
