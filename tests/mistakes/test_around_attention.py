"""Mistakes with residuals, norms and the feed-forward layer: each does what NumPy does, and marking names it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import headwork
from headwork.mistakes.catalogue import CATALOGUE
from headwork.mistakes.diagnose import Variants
from headwork.mistakes.operations import FLOATS
from headwork.mistakes.predict import Variant, float_handed
from headwork.sheets.fields import read_problem
from headwork.sheets.load import parse_sheet
from headwork.sheets.ready import Ready

Array = NDArray[np.float64]

RNG = np.random.default_rng(5)
N, D, WIDE = 3, 4, 3
X = RNG.integers(-3, 4, (N, D)).astype(float)
W = {role: RNG.integers(-2, 3, (D, D)).astype(float) for role in ("W_Q", "W_K", "W_V")}
W |= {"W_1": RNG.integers(-2, 3, (D, WIDE)).astype(float), "W_2": RNG.integers(-2, 3, (WIDE, D)).astype(float)}
LEARNED = {f"{name}_{n}": RNG.integers(1, 4, D).astype(float) for name in ("gamma", "beta") for n in (1, 2)}
EPS = 0.5


def attention(x: Array) -> Array:
    Q, K, V = (x @ W[f"W_{r}"] for r in "QKV")
    e = np.exp(Q @ K.T / D**0.5)
    return np.asarray(e / e.sum(axis=1, keepdims=True) @ V)


def block(
    arrangement: str,
    *,
    root: Any = lambda v: np.sqrt(v + EPS),
    n: int = D,
    mean: bool = True,
    axis: int = 1,
    gain: bool = True,
    shift: bool = True,
    residual: bool = True,
    normed_residual: bool = False,
    norm_first: bool = False,
    norms: bool = True,
    relu: bool = True,
) -> Array:
    """A whole block in plain NumPy, with a knob for every mistake."""

    def norm(x: Array, number: int) -> Array:
        if not norms:
            return x
        less = x - x.mean(axis=axis, keepdims=True) if mean else x
        x = less / root((less**2).sum(axis=axis, keepdims=True) / n)
        x = x * LEARNED[f"gamma_{number}"] if gain else x
        return np.asarray(x + LEARNED[f"beta_{number}"] if shift else x)

    def feed(x: Array) -> Array:
        made = x @ W["W_1"]
        return np.asarray((np.maximum(made, 0) if relu else made) @ W["W_2"])

    x = X
    for number, layer in enumerate((attention, feed), 1):
        before = norm(x, number) if arrangement == "pre-norm" else x
        inside = layer(before)
        around = before if normed_residual else x
        if norm_first:
            x = around + norm(inside, number)
        else:
            x = around + inside if residual else inside
            x = norm(x, number) if arrangement == "post-norm" else x
    return x


def ready(arrangement: str) -> Ready:
    given: dict[str, Any] = {role: [[int(x) for x in row] for row in matrix] for role, matrix in {"X": X, **W}.items()}
    given |= {role: [int(x) for x in row] for role, row in LEARNED.items()}
    find = "normed_2" if arrangement == "post-norm" else "residual_2"
    table = {"formula": "single_head", "around": arrangement, "eps": str(EPS), "given": given}
    return Ready(read_problem({**table, "part": [{"label": "a", "find": [find]}]}, ""))


KNOBS: dict[str, dict[str, Any]] = {
    "forgot-residual": {"residual": False},
    "forgot-norm": {"norms": False},
    "norm-before-residual": {"norm_first": True},
    "residual-from-normed": {"normed_residual": True},
    "mean-kept": {"mean": False},
    "norm-down-columns": {"axis": 0, "n": N},
    "variance-over-n-1": {"n": D - 1},
    "variance-without-root": {"root": lambda v: v + EPS},
    "forgot-eps": {"root": np.sqrt},
    "eps-outside-root": {"root": lambda v: np.sqrt(v) + EPS},
    "forgot-gain": {"gain": False},
    "forgot-shift": {"shift": False},
    "forgot-relu": {"relu": False},
}
ONLY = {"norm-before-residual": "post-norm", "residual-from-normed": "pre-norm"}
CASES = [(tag, how) for tag in KNOBS for how in ("post-norm", "pre-norm") if ONLY.get(tag, how) == how]


@pytest.mark.parametrize(("tag", "how"), CASES)
def test_a_mistake_does_what_numpy_does(tag: str, how: str) -> None:
    problem = ready(how)
    handed = float_handed(problem.handed)
    mistaken = CATALOGUE[tag].made_in(problem.last)[0]
    expected = block(how, **KNOBS[tag])
    assert np.array(Variant(mistaken, FLOATS).value(problem.last, handed)) == pytest.approx(expected)
    assert expected != pytest.approx(block(how), abs=0.01)
    assert np.array(Variant(problem.last, FLOATS).value(problem.last, handed)) == pytest.approx(block(how))


@pytest.mark.parametrize("how", ["residual", "post-norm", "pre-norm"])
def test_any_two_can_be_made_together(how: str) -> None:
    table = {"formula": "single_head", "around": how, "eps": "1/2"} if how != "residual" else {"around": how}
    given: dict[str, Any] = {"X": [[1, 2], [3, 5]], **{f"W_{r}": [[1, 0], [1, 1]] for r in "QKV12"}}
    given |= {"gamma_1": [1, 2], "beta_2": [1, 1]} if how != "residual" else {}
    part = [{"find": ["residual_2"]}]
    problem = Ready(read_problem({"formula": "single_head", **table, "given": given, "part": part}, ""))
    assert Variants(problem.last, FLOATS).pairs()


BLOCK = """
title = "A block"
formula = "single_head"
around = "post-norm"
eps = "1/2"
places = 3
[given]
X = [[1, 0, 2, 5], [0, 1, 1, 3]]
W_Q = [[1, 0], [0, 1], [0, 0], [1, 0]]
W_K = [[0, 1], [1, 0], [0, 0], [0, 0]]
W_V = [[1, 0, 0, 1], [0, 2, 0, 0], [0, 0, 1, 1], [1, 0, 2, 0]]
gamma_1 = [1, 2, 1, 3]
beta_1 = [1, 0, 2, 1]
[[part]]
label = "a"
find = ["residual_1"]
[[part]]
label = "b"
find = ["normed_1"]
"""
INSIDE = ("mean-kept", "variance-over-n-1", "variance-without-root", "forgot-eps", "eps-outside-root")


@pytest.mark.parametrize(
    "tag", ["forgot-residual", "norm-before-residual", "norm-down-columns", *INSIDE, "forgot-gain", "forgot-shift"]
)
def test_marking_names_it(tag: str) -> None:
    """To three places, and nothing else beside it that is made around attention."""
    sheet = parse_sheet(BLOCK, "block.toml")
    problem = Ready(sheet.problems[0])
    right, mistaken = Variant(problem.ends, FLOATS), Variant(CATALOGUE[tag].made_in(problem.ends)[0], FLOATS)
    answers = {}
    for part, name in (("a", "residual_1"), ("b", "normed_1")):
        step, handed = problem.find(name)[0].step, float_handed(problem.handed)
        matrix = mistaken.predict(step, handed) or right.value(step, handed)
        answers[part] = {name: [[f"{x:.3f}" for x in row] for row in matrix]}
    marks = headwork.mark(sheet, answers)
    named = {t for part in marks.parts for answer in part.answers for t in answer.tags}
    assert named == {tag}
