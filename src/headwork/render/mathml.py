"""Formulas in MathML, which browsers set by themselves. The brackets of a matrix are drawn by the style sheet."""

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from headwork.maths import (
    BLANK,
    Above,
    Barred,
    Below,
    Gap,
    Grid,
    Holds,
    Letter,
    Maths,
    Named,
    Number,
    Ratio,
    RootOf,
    Row,
    Sign,
    Words,
)
from headwork.render.blocks import Spot
from headwork.render.colours import family

STILL = ' stretchy="false"'
OPENING = (Sign("("), Sign("["))
FULL = ' displaystyle="true"'


def mathml(maths: Maths, *, display: bool = False) -> str:
    """A whole formula; fractions stand at full size in a display."""
    return f"<math{FULL if display else ''}>{inside(maths)}</math>"


def inside(maths: Maths) -> str:
    """A part of a formula, as it stands in one."""
    return NODES[type(maths)](maths)


def _one(maths: Maths) -> str:
    """As a single element: MathML counts children, and a minus that comes first in its row is a sign."""
    return f"<mrow>{inside(maths)}</mrow>" if isinstance(maths, Row) else inside(maths)


def _words(words: Words) -> str:
    if words == BLANK:
        return '<mspace class="blank"/>'
    return f"<mtext>{escape(words.text).replace(' ', '&#160;')}</mtext>"


def _sign(sign: Sign) -> str:
    return f"<mo{STILL if sign.text in '|()[]' else ''}>{escape(sign.text)}</mo>"


def _row(row: Row) -> str:
    """Side by side; brackets grow with a fraction or a matrix between them, and only then."""
    items = [_one(item) for item in row.items]
    if len(items) == 3 and row.items[0] in OPENING and ("<mfrac" in items[1] or "<mtable" in items[1]):
        items[0], items[2] = (
            f"<mo>{sign.text}</mo>" for sign in (row.items[0], row.items[2]) if isinstance(sign, Sign)
        )
    return "".join(items)


def _name(named: Named) -> str:
    of, role = _one(named.of), family(named.role)
    return f'<mrow class="role-{role}">{of}</mrow>' if role else of


def _grid(grid: Grid) -> str:
    rows = "".join(
        "<mtr>" + "".join(f"<mtd{_named(grid, i, j)}>{inside(cell)}</mtd>" for j, cell in enumerate(row)) + "</mtr>"
        for i, row in enumerate(grid.rows)
    )
    role = family(grid.holds.role) if grid.holds else ""
    return f'<mtable class="grid{f" role-{role}" if role else ""}"{held(grid.holds)}>{rows}</mtable>'


def held(holds: Holds | None) -> str:
    """The attributes by which a page, its tests and other people's scripts find a matrix."""
    if holds is None:
        return ""
    return f' data-role="{escape(holds.role)}" data-head="{"" if holds.head is None else escape(str(holds.head))}"'


def _named(grid: Grid, i: int, j: int) -> str:
    name = f' id="{spot_id((grid.key, i, j))}"' if grid.key else ""
    if grid.holds is None:
        return name
    row, column = grid.holds.place(i, j)
    return f'{name} data-row="{row}" data-column="{column}"'


def spot_id(spot: Spot) -> str:
    """What a page calls an entry of a matrix."""
    return "-".join(map(str, spot))


NODES: Mapping[type[Maths], Callable[[Any], str]] = {
    Letter: lambda letter: f"<mi>{escape(letter.text)}</mi>",
    Number: lambda number: f"<mn>{escape(number.text)}</mn>",
    Sign: _sign,
    Words: _words,
    Named: _name,
    Gap: lambda gap: f"<mphantom><mn>{escape(gap.text)}</mn></mphantom>",
    Row: _row,
    Below: lambda node: f"<msub>{_one(node.base)}{_one(node.script)}</msub>",
    Above: lambda node: f"<msup>{_one(node.base)}{_one(node.script)}</msup>",
    Ratio: lambda ratio: f"<mfrac>{_one(ratio.over)}{_one(ratio.under)}</mfrac>",
    RootOf: lambda root: f"<msqrt>{inside(root.of)}</msqrt>",
    Barred: lambda barred: f'<mover accent="true">{inside(barred.of)}<mo>¯</mo></mover>',
    Grid: _grid,
}
