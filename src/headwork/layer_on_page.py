"""A layer of real arrays as a page: its matrices handed to the formula, and the formula worked."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from headwork.engine.arguments import Causal, alignment, reach
from headwork.engine.arrays import Array, checked_mask, is_bool
from headwork.engine.arrays import sizes as sizes_of
from headwork.errors import HeadworkError, ShapeError
from headwork.formulas import SQRT_D_K
from headwork.readings.exact import HIDDEN
from headwork.sheets.sheet import Bias, Part, Problem, Sheet
from headwork.solving import solve
from headwork.working import Working

if TYPE_CHECKING:
    from headwork.engine.layer import MultiHead

LARGEST_SIDE = 64  # rows or columns of any matrix: every entry is worked exactly and printed


def work(
    layer: MultiHead, x: Array, context: Array | None, mask: ArrayLike | None, causal: Causal, places: int
) -> Working:
    """The layer worked on x as a sheet of one problem: project, attend, join."""
    check(layer, x, context)
    if layer.scale == 0:
        raise HeadworkError("scale is 0, and a page divides by 1/scale: give the layer another scale.")
    given = matrices(layer, x, context)
    handed = "Q" in given
    problem = Problem(
        title="Multi-head attention",
        formula="multi_head_blocks",
        heads=layer.heads,
        kv_heads=layer.kv_heads,
        scale=SQRT_D_K if layer.scale is None else 1 / Fraction(str(layer.scale)),
        softcap=None if layer.softcap is None else Fraction(str(layer.softcap)),
        bias=None if layer.relative is None else Bias(relative=exactly("relative", near(layer.relative, len(x)))),
        mask=on_page(x, x if context is None else context, mask, causal),
        places=places,
        given={(name, None): exactly(name, array) for name, array in given.items()},
        parts=(
            Part("a", text=TURNED if handed else PROJECT, find=("V",) if handed else ("Q", "K", "V")),
            Part("b", text="Attend, head by head.", find=("weights", "head_output")),
            Part("c", text="Join the heads and project.", find=("joined", "output")),
        ),
    )
    return solve(Sheet("Multi-head attention", (problem,), source="this layer"))


PROJECT = "Project the tokens."
TURNED = "Q and K are given as they are after norms and positions. Project the values."


def check(layer: MultiHead, x: Array, context: Array | None) -> None:
    for name, array in (("x", x), ("context", context)):
        if array is not None and array.ndim != 2:
            raise ShapeError(f"{name} is {array.shape}. A page works one sequence: give (tokens, d).")
    layer(x[:0], None if context is None else context[:0])  # widths, types, and whether a context belongs here
    sides = {"tokens": len(x), "keys": len(x if context is None else context)}
    sides |= {
        name: array.shape[1]
        for name, array in layer.projections.named().items()
        if array is not None and array.ndim == 2
    }
    sides |= {"d_model": layer.d_model, "d_context": layer.d_context}
    name = max(sides, key=lambda side: sides[side])
    if sides[name] > LARGEST_SIDE:
        what = name if name.islower() else f"the columns of {name}"
        raise HeadworkError(
            f"{what}: {sides[name]}, but a page holds at most {LARGEST_SIDE} rows and columns. Work fewer tokens, or "
            "a layer of some of the heads."
        )
    if min(sides["tokens"], sides["keys"]) < 1:
        raise ShapeError("a page needs at least one token and one key.")


def matrices(layer: MultiHead, x: Array, context: Array | None) -> dict[str, Array]:
    """What the page is given, by role; Q and K in place of their projections if norms or positions change them."""
    given = {"X": x} | ({} if context is None else {"context": context})
    given |= {name: np.atleast_2d(a) for name, a in layer.projections.named().items() if a is not None}
    if layer.rotary is not None or layer.q_norm is not None or layer.k_norm is not None:
        wide = layer.astype(np.float64)
        q, k, _ = wide.projections.heads_of(x.astype(np.float64), None)
        wide.prepare(q, k, 0)
        given = {name: array for name, array in given.items() if name not in ("W_Q", "W_K", "b_Q", "b_K")}
        given |= {"Q": q.reshape(len(x), -1), "K": k.reshape(len(x), -1)}
    return given


def near(relative: Array, tokens: int) -> Array:
    """The biases for the distances that there are among so many tokens."""
    middle, far = relative.shape[1] // 2, min(relative.shape[1] // 2, tokens - 1)
    return relative[:, middle - far : middle + far + 1]


def exactly(name: str, array: Array) -> tuple[tuple[Fraction, ...], ...]:
    """Every number as it prints: 0.1 is one tenth, in float32 as in float64."""
    if not np.isfinite(array.astype(np.float64)).all():
        raise HeadworkError(f"{name} holds numbers that are not finite: a page cannot work them.")
    return tuple(tuple(Fraction(str(number)) for number in row) for row in array)


def on_page(x: Array, keys_of: Array, mask: ArrayLike | None, causal: Causal) -> Any:
    """The mask as a page has it: a word, or a matrix of 0, −∞ and numbers."""
    if mask is None and not causal:
        return "none"
    size = sizes_of(x[:, :1], keys_of[:, :1], keys_of[:, :1], False)
    _, right = reach(causal, None)
    offset = alignment(causal, None, False, size, None)
    if mask is None and offset == 0 and size.tokens == size.keys:
        return "causal"
    added = np.zeros((size.tokens, size.keys))
    if mask is not None:
        checked = checked_mask(mask, size)
        added = added + (np.where(checked, 0.0, -np.inf) if is_bool(checked) else checked)
    if right == 0:
        position = np.arange(size.tokens)[:, None] + offset
        added = np.where(np.arange(size.keys) <= position, added, -np.inf)
    if np.isneginf(added).all(axis=1).any():
        raise HeadworkError("a token that may read no key has no softmax to write down: let every token read one.")
    return tuple(tuple(HIDDEN if np.isneginf(s) else Fraction(str(s)) for s in row) for row in added)
