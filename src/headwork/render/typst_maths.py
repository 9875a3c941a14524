"""Formulas in Typst's mathematics."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headwork import maths as m
from headwork.render.colours import family

_SIGNS = {"·": "dot.op", "×": "times", "−": "minus", "=": "=", "+": "+", "≈": "approx", "…": "dots.h", "|": "bar.v"}


def typst_maths(maths: m.Maths) -> str:
    """The formula in Typst, without the dollar signs around it."""
    return NODES[type(maths)](maths)


def string(text: str) -> str:
    """A string literal of Typst's."""
    kept = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _letter(letter: m.Letter) -> str:
    """A letter alone is set in italics; a word is text."""
    base = letter.text.rstrip("′")
    primes = " prime" * (len(letter.text) - len(base))
    if len(base) == 1:
        # A string of one letter is upright in Typst; a letter of its own is not.
        return f"italic({string(base)}){primes}" if base.isalpha() else string(base) + primes
    return f"upright({string(base)}){primes}"


def _words(words: m.Words) -> str:
    if words == m.TRANSPOSED:
        return "top"
    if words == m.BLANK:
        return "blank"  # defined where the page begins
    return string(words.text)


def _named(named: m.Named) -> str:
    return _coloured(typst_maths(named.of), named.role)


def _coloured(formula: str, role: str) -> str:
    colour = family(role)
    return f"role{colour}({formula})" if colour else formula  # defined where the page begins


def _grid(grid: m.Grid) -> str:
    rows = "; ".join(", ".join(map(typst_maths, row)) for row in grid.rows)
    return _coloured(f"mat({rows})", grid.holds.role if grid.holds else "")


def _sign(sign: m.Sign) -> str:
    if sign.text in _SIGNS:
        return _SIGNS[sign.text]
    return f"\\{sign.text}" if sign.text in "()[]," else string(sign.text)


def _row(row: m.Row) -> str:
    """Side by side; a minus that starts a row is a sign of its number and takes no room of its own."""
    if set(row.items) == {m.BLANK}:
        return f"#blanks({len(row.items)})"
    if row.items and row.items[0] == m.Sign("−"):
        return joined(['class("normal", minus)', *map(typst_maths, row.items[1:])])
    return joined([typst_maths(item) for item in row.items])


def joined(pieces: Iterable[str]) -> str:
    """One after the other, with a space only where two names would run together: Typst shows it beside text."""
    line = ""
    for piece in pieces:
        together = line[-1:].isalnum() and piece[:1].isalnum()
        line += f" {piece}" if together else piece
    return line


NODES: Mapping[type[m.Maths], Callable[[Any], str]] = {
    m.Letter: _letter,
    m.Number: lambda number: number.text if number.text.replace(".", "", 1).isdecimal() else string(number.text),
    m.Sign: _sign,
    m.Words: _words,
    m.Named: _named,
    m.Gap: lambda gap: f"gap({string(gap.text)})",
    m.Row: _row,
    m.Below: lambda node: f"attach({typst_maths(node.base)}, b: {typst_maths(node.script)})",
    m.Above: lambda node: f"attach({typst_maths(node.base)}, t: {typst_maths(node.script)})",
    m.Ratio: lambda ratio: f"frac({typst_maths(ratio.over)}, {typst_maths(ratio.under)})",
    m.RootOf: lambda root: f"sqrt({typst_maths(root.of)})",
    m.Barred: lambda barred: f"macron({typst_maths(barred.of)})",
    m.Grid: _grid,
}
