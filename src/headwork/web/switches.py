"""The switches of a problem: formula, heads, scale, mask, softmax, places."""

from collections.abc import Iterable
from html import escape

from headwork.formulas import FORMULAS, SQRT_D_K, formula_named
from headwork.sheets.ready import Ready
from headwork.sheets.written import problem_table

_FORMULAS = {
    "dot_product": "dot product",
    "scaled_dot_product": "scaled dot product",
    "single_head": "single head",
    "multi_head": "multi-head, separate heads",
    "multi_head_blocks": "multi-head, one wide block",
    "blockwise": "blockwise, as a kernel takes it",
}
_SOFTMAX = {"whole": "folded", "steps": "unfolded", "safe-steps": "unfolded, less the maximum"}
_MASKS = {"none": "none", "causal": "causal", "grid": "a grid to click"}
MOST_HEADS = 8


def switches(ready: Ready, number: int) -> str:
    """A form whose every control says the key of the sheet that it sets."""
    problem, formula = ready.problem, formula_named(ready.problem.formula)
    made = [_select(number, "formula", "formula", _FORMULAS, problem.formula)]
    heads, kv_heads = ready.sizes.heads, ready.sizes.kv_heads
    if formula.several and isinstance(heads, int) and isinstance(kv_heads, int):
        made.append(_select(number, "heads", "heads", _same(range(1, max(MOST_HEADS, heads) + 1)), str(heads)))
        shared = [n for n in range(1, heads + 1) if heads % n == 0]
        made.append(_select(number, "kv_heads", "kv heads", _same(shared), str(kv_heads)))
    if formula.scaled:
        text = str(problem_table(problem).get("scale", SQRT_D_K))
        scales = {"sqrt(d_k)": "√d_k", "none": "none", "other": "a number …"}
        if text not in scales:
            scales = {text: text, **scales}
        made.append(_select(number, "scale", "divide by", scales, text))
    if formula.blocks and isinstance(problem.blocks, int) and isinstance(ready.sizes.keys, int):
        made.append(_select(number, "blocks", "blocks", _same(range(1, ready.sizes.keys + 1)), str(problem.blocks)))
    made.append(_select(number, "mask", "mask", _MASKS, problem.mask if isinstance(problem.mask, str) else "grid"))
    if not formula.blocks:
        made.append(_select(number, "softmax", "softmax", _SOFTMAX, problem.softmax))
    places = {str(n): str(n) for n in sorted({*range(9), problem.places})}
    made.append(_select(number, "places", "places", places, str(problem.places)))
    return f'<form class="switches" data-problem="{number}" aria-label="Switches">{"".join(made)}</form>'


assert _FORMULAS.keys() == FORMULAS.keys()


def _same(numbers: Iterable[int]) -> dict[str, str]:
    return {str(n): str(n) for n in numbers}


def _select(number: int, key: str, label: str, options: dict[str, str], chosen: str) -> str:
    listed = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(text)}</option>'
        for value, text in options.items()
    )
    return f'<label>{label} <select name="{key}" id="switch-{number}-{key}">{listed}</select></label>'
