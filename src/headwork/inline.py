"""A formula on one line of text: W_Q,1, √2/2, e^(−3), 1.65·10⁻⁶², scores/√d_k."""

from collections.abc import Callable, Mapping
from string import ascii_letters, digits
from typing import Any

from headwork import maths as m

_RAISED = str.maketrans("0123456789−/", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᐟ")
_SPACED = "=≈+−|→←↦⇒⇔∈≡∝∼"
_SCRIPTED = f"{ascii_letters}{digits}"  # how a script ends that is not raised by its own letters
_OPENING = "([,"  # after these a minus belongs to its number


def inline(maths: m.Maths) -> str:
    """The formula in Unicode.

    >>> inline(m.Ratio(m.RootOf(m.Number("2")), m.Number("3")))
    '√2/3'
    """
    return NODES[type(maths)](maths)


def sentence(prose: m.Prose) -> str:
    return "".join(piece if isinstance(piece, str) else inline(piece) for piece in prose)


def _row(row: m.Row) -> str:
    """Room around relations and sums; none behind a minus that begins a row or follows another sign.

    Room too where a script would run into the next name: x_i y_i.
    """
    line = ""
    for i, item in enumerate(row.items):
        if not isinstance(item, m.Sign) or item.text not in _SPACED:
            after_script = i > 0 and isinstance(row.items[i - 1], m.Below | m.Above) and line[-1] in _SCRIPTED
            line += f" {inline(item)}" if after_script and inline(item)[:1].isalnum() else inline(item)
        elif item.text == "−" and (not i or line[-1] in _OPENING or line.endswith(" ")):
            line += "−"
        else:
            line += f" {item.text} " if i else f"{item.text} "
    return line


def _below(node: m.Below) -> str:
    """x_i,j; in brackets where the script is more than a list: x_(i + 1)."""
    script = inline(node.script)
    return f"{inline(node.base)}_({script})" if " " in script else f"{inline(node.base)}_{script}"


def _above(node: m.Above) -> str:
    base = inline(node.base)
    if node.script == m.TRANSPOSED:
        return f"{base}ᵀ"
    script = inline(node.script)
    if node.base != m.Letter("e") and set(script) <= set("0123456789−/"):
        return base + script.translate(_RAISED)
    bare = len(script) == 1 or (script.startswith("(") and script.endswith(")"))
    return f"{base}^{script}" if bare else f"{base}^({script})"


def _ratio(ratio: m.Ratio) -> str:
    over, under = inline(ratio.over), inline(ratio.under)
    if m.is_sum(ratio.over) or m.is_negative(ratio.over):
        over = f"({over})"
    if isinstance(ratio.under, m.Ratio) or _is_product(ratio.under) or m.is_sum(ratio.under):
        under = f"({under})"
    return f"{over} / {under}" if ratio.undone else f"{over}/{under}"


def _is_product(maths: m.Maths) -> bool:
    if not isinstance(maths, m.Row) or not maths.items:
        return False
    return maths.items[0] not in (m.Sign("("), m.Sign("["), m.Letter("∂"))


def _root(root: m.RootOf) -> str:
    of = inline(root.of)
    return f"√({of})" if isinstance(root.of, m.Row | m.Ratio) and not of.startswith("(") else f"√{of}"


def _grid(grid: m.Grid) -> str:
    return "[" + "; ".join("  ".join(inline(cell).rstrip() for cell in row) for row in grid.rows) + "]"


NODES: Mapping[type[m.Maths], Callable[[Any], str]] = {
    m.Letter: lambda letter: letter.text,
    m.Number: lambda number: number.text,
    m.Sign: lambda sign: sign.text,
    m.Words: lambda words: words.text,
    m.Named: lambda named: inline(named.of),
    m.Gap: lambda gap: " " * len(gap.text),
    m.Row: _row,
    m.Below: _below,
    m.Above: _above,
    m.Ratio: _ratio,
    m.RootOf: _root,
    m.Barred: lambda barred: f"{inline(barred.of)[:1]}\u0304{inline(barred.of)[1:]}",
    m.Grid: _grid,
}
