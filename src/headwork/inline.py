"""A formula on one line of text: W_Q,1, √2/2, e^(−3), 1.65·10⁻⁶², scores/√d_k."""

from collections.abc import Callable, Mapping
from typing import Any

from headwork.maths import (
    TRANSPOSED,
    Above,
    Below,
    Gap,
    Grid,
    Letter,
    Maths,
    Number,
    Prose,
    Ratio,
    RootOf,
    Row,
    Sign,
    Words,
    is_negative,
    is_sum,
)

_RAISED = str.maketrans("0123456789−/", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᐟ")
_SPACED = "=≈+−|→"
_OPENING = "([,"  # after these a minus belongs to its number


def inline(maths: Maths) -> str:
    """The formula in Unicode.

    >>> inline(Ratio(RootOf(Number("2")), Number("3")))
    '√2/3'
    """
    return NODES[type(maths)](maths)


def sentence(prose: Prose) -> str:
    return "".join(piece if isinstance(piece, str) else inline(piece) for piece in prose)


def _row(row: Row) -> str:
    """Room around relations and sums; none behind a minus that begins a row or follows another sign."""
    line = ""
    for i, item in enumerate(row.items):
        if not isinstance(item, Sign) or item.text not in _SPACED:
            line += inline(item)
        elif item.text == "−" and (not i or line[-1] in _OPENING or line.endswith(" ")):
            line += "−"
        else:
            line += f" {item.text} " if i else f"{item.text} "
    return line


def _above(node: Above) -> str:
    base = inline(node.base)
    if node.script == TRANSPOSED:
        return f"{base}ᵀ"
    script = inline(node.script)
    if node.base != Letter("e") and set(script) <= set("0123456789−/"):
        return base + script.translate(_RAISED)
    return f"{base}^{script}" if len(script) == 1 else f"{base}^({script})"


def _ratio(ratio: Ratio) -> str:
    over, under = inline(ratio.over), inline(ratio.under)
    if is_sum(ratio.over) or is_negative(ratio.over):
        over = f"({over})"
    if isinstance(ratio.under, Ratio) or _is_product(ratio.under) or is_sum(ratio.under):
        under = f"({under})"
    return f"{over} / {under}" if ratio.undone else f"{over}/{under}"


def _is_product(maths: Maths) -> bool:
    return isinstance(maths, Row) and maths.items[0] not in (Sign("("), Sign("["))


def _root(root: RootOf) -> str:
    of = inline(root.of)
    return f"√({of})" if isinstance(root.of, Row | Ratio) and not of.startswith("(") else f"√{of}"


def _grid(grid: Grid) -> str:
    return "[" + "; ".join("  ".join(inline(cell).rstrip() for cell in row) for row in grid.rows) + "]"


NODES: Mapping[type[Maths], Callable[[Any], str]] = {
    Letter: lambda letter: letter.text,
    Number: lambda number: number.text,
    Sign: lambda sign: sign.text,
    Words: lambda words: words.text,
    Gap: lambda gap: " " * len(gap.text),
    Row: _row,
    Below: lambda node: f"{inline(node.base)}_{inline(node.script)}",
    Above: _above,
    Ratio: _ratio,
    RootOf: _root,
    Grid: _grid,
}
