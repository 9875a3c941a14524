"""A formula built from its sizes alone: every input it takes, in the right shape."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from headwork.errors import HeadworkError
from headwork.formulas import FORMULAS, SQRT_D_K, Scale, given
from headwork.graph import Step
from headwork.ops import Shape, Size


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


def build(
    formula: str,
    sizes: Sizes,
    *,
    mask: bool = False,
    biases: Collection[str] = (),
    context: bool = False,
    output_projection: bool = True,
    scale: Scale = SQRT_D_K,
) -> Step:
    """The last step of a formula, its inputs `Given` in these sizes. `biases` is any of "b_Q", "b_K", "b_V", "b_O"."""
    if formula not in FORMULAS:
        raise HeadworkError(f"there is no formula '{formula}'; choose from {', '.join(FORMULAS)}")
    inputs: dict[str, Any] = {}
    if mask:
        inputs["mask"] = given("mask", (sizes.tokens, sizes.keys))
    if formula in ("dot_product", "scaled_dot_product"):
        inputs |= {
            "Q": given("Q", _batched(sizes, sizes.tokens, sizes.d_k)),
            "K": given("K", _batched(sizes, sizes.keys, sizes.d_k)),
            "V": given("V", _batched(sizes, sizes.keys, sizes.d_v)),
        }
    else:
        inputs["X"] = given("X", _batched(sizes, sizes.tokens, sizes.d_model))
        if context:
            inputs["context"] = given("context", _batched(sizes, sizes.keys, sizes.d_context))
        inputs |= _projections(formula, sizes, biases, output_projection)
    if formula == "multi_head_blocks":
        inputs |= {"heads": sizes.heads, "kv_heads": sizes.kv_heads}
    if formula == "multi_head":
        inputs["heads"] = sizes.heads
    if formula != "dot_product":
        inputs["scale"] = scale
    return FORMULAS[formula](**inputs)


def _batched(sizes: Sizes, rows: Size, columns: Size) -> Shape:
    return (rows, columns) if sizes.batch is None else (sizes.batch, rows, columns)


def _projections(formula: str, sizes: Sizes, biases: Collection[str], output: bool) -> dict[str, Any]:
    widths = {
        "Q": (sizes.d_model, sizes.d_k, sizes.heads),
        "K": (sizes.d_context, sizes.d_k, sizes.kv_heads),
        "V": (sizes.d_context, sizes.d_v, sizes.kv_heads),
    }
    inputs: dict[str, Any] = {}
    for letter, (rows, columns, heads) in widths.items():
        inputs[f"W_{letter}"] = _one_or_each(formula, f"W_{letter}", rows, columns, heads)
        if f"b_{letter}" in biases:
            inputs[f"b_{letter}"] = _one_or_each(formula, f"b_{letter}", 1, columns, heads)
    if output:
        inputs["W_O"] = given("W_O", (sizes.heads * sizes.d_v, sizes.d_out))
        if "b_O" in biases:
            inputs["b_O"] = given("b_O", (1, sizes.d_out))
    return inputs


def _one_or_each(formula: str, role: str, rows: Size, columns: Size, heads: Size) -> Step | list[Step]:
    """One matrix; one for every head; or, for a symbolic number of heads, a typical one."""
    if formula == "single_head":
        return given(role, (rows, columns))
    if formula == "multi_head_blocks":
        return given(role, (rows, heads * columns))
    if isinstance(heads, int):
        return [given(role, (rows, columns), head) for head in range(heads)]
    return [given(role, (rows, columns), "i")]
