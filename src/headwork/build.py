"""A formula built from its sizes alone: every input it takes, in the right shape."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from headwork.around import block
from headwork.errors import HeadworkError
from headwork.formulas import SQRT_D_K, Formula, Projection, Scale, cut, formula_named, given
from headwork.graph import Head, Step
from headwork.numbers.surd import Real
from headwork.ops import Shape, Size
from headwork.variations import PLAIN, Variations, varied


@dataclass(frozen=True)
class Sizes:
    """Every length that attention has. `keys` and `d_context` differ from `tokens` and `d_model` in cross-attention."""

    tokens: Size
    keys: Size
    d_model: Size
    d_context: Size
    heads: Size
    kv_heads: Size
    d_k: Size
    d_v: Size
    d_out: Size
    batch: Size | None = None
    past: Size = 0  # of the keys, those that earlier tokens left behind
    d_ff: Size | None = None  # the width of a feed-forward layer


def build(
    formula: str,
    sizes: Sizes,
    *,
    mask: bool = False,
    biases: Collection[str] = (),
    context: bool = False,
    output_projection: bool = True,
    scale: Scale = SQRT_D_K,
    blocks: int | Sequence[int] = 1,
    how: Variations = PLAIN,
    around: str = "none",
    eps: Real = Fraction(0),
) -> Step:
    """The last step of a formula, its inputs `Given` in these sizes.

    `biases` is any of "b_Q", "b_K", "b_V", "b_O", and of what stands around attention "b_1", "gamma_1" and so on.
    `how` it is varied; `mask` is short for one mask for all heads.
    """
    chosen = formula_named(formula)
    inputs: dict[str, Any] = {}
    if chosen.projects:
        inputs["X"] = given("X", _batched(sizes, sizes.tokens, sizes.d_model))
        if context:
            inputs["context"] = given("context", _batched(sizes, sizes.keys, sizes.d_context))
        inputs |= _projections(chosen, sizes, biases, output_projection)
    else:
        inputs |= {
            "Q": given("Q", _batched(sizes, sizes.tokens, sizes.d_k)),
            "K": given("K", _batched(sizes, sizes.keys, sizes.d_k)),
            "V": given("V", _batched(sizes, sizes.keys, sizes.d_v)),
        }
    if chosen.several:
        inputs["heads"] = sizes.heads
    if chosen.heads == "split":
        inputs["kv_heads"] = sizes.kv_heads
    if chosen.scaled:
        inputs["scale"] = scale
    if chosen.blocks:
        if not isinstance(sizes.keys, int):
            raise HeadworkError(f"{formula} needs the number of keys; give it, such as keys = 8")
        inputs["blocks"] = cut(sizes.keys, blocks)
    how = replace(how, mask="one") if mask else how
    last: Step = chosen.function(**inputs) if around == "none" else _block(chosen, sizes, inputs, biases, around, eps)
    return last if how == PLAIN else varied(last, how, sizes.past)


def _block(
    formula: Formula, sizes: Sizes, inputs: Mapping[str, Any], biases: Collection[str], around: str, eps: Real
) -> Step:
    """The formula with what stands around it."""
    if not formula.projects:
        raise HeadworkError(f"{formula.name} has no X to add to; use single_head, multi_head or multi_head_blocks")
    return block(
        inputs["X"],
        lambda x: formula.function(**{**inputs, "X": x}),
        around,
        eps=eps,
        feed=None if sizes.d_ff is None else _feed_forward(sizes, biases),
        learned={role: given(role, (1, sizes.d_model)) for role in biases if role.startswith(("gamma_", "beta_"))},
    )


def _feed_forward(sizes: Sizes, biases: Collection[str]) -> tuple[Projection, Projection]:
    first = _projection("1", (sizes.d_model, sizes.d_ff), biases)
    return first, _projection("2", (sizes.d_ff, sizes.d_model), biases)


def _batched(sizes: Sizes, rows: Size, columns: Size) -> Shape:
    return (rows, columns) if sizes.batch is None else (sizes.batch, rows, columns)


def _projection(name: str, shape: Shape, biases: Collection[str], head: Head = None) -> Projection:
    bias = given(f"b_{name}", (1, shape[1]), head) if f"b_{name}" in biases else None
    return Projection(given(f"W_{name}", shape, head), bias)


def _projections(formula: Formula, sizes: Sizes, biases: Collection[str], output: bool) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for letter, rows, columns, heads in (
        ("Q", sizes.d_model, sizes.d_k, sizes.heads),
        ("K", sizes.d_context, sizes.d_k, sizes.kv_heads),
        ("V", sizes.d_context, sizes.d_v, sizes.kv_heads),
    ):
        if formula.heads == "each":
            number = range(heads) if isinstance(heads, int) else "i"  # of a symbolic number one is typical
            inputs[f"W_{letter}"] = [_projection(letter, (rows, columns), biases, head) for head in number]
        else:
            inputs[f"W_{letter}"] = _projection(letter, (rows, heads * columns), biases)
    if output:
        inputs["W_O"] = _projection("O", (sizes.heads * sizes.d_v, sizes.d_out), biases)
    return inputs
