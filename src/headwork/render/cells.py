"""How one number is printed: whole when it is short, rounded when it is not, and which of the two."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeGuard

from headwork.maths import Above, Gap, Grid, Holds, Maths, Number, Row, Sign, number
from headwork.numbers.certain import AnyNumber, Certain
from headwork.numbers.closed import Closed
from headwork.numbers.digits import about, decimal, exact_decimal, leading_digits, scientific, significant
from headwork.numbers.enclosure import sign
from headwork.numbers.text import length, written
from headwork.readings.exact import Entry, Hidden, Matrix

SHORT_DECIMALS = 6  # a terminating decimal of up to so many places is written out
FIGURES, FIGURES_FROM = 4, 7  # an exponential from 10⁷ on is written in figures and a power of ten
SHORTEST_LONG = 10_000  # above or below the line: from here on a fraction is not written as one
LONGEST_FORM = 100  # numbers in a closed form that somebody may still read


@dataclass(frozen=True)
class Style:
    """How numbers are printed on a page."""

    places: int = 2
    always: bool = False  # decimals even where a short fraction would do
    exact: bool = False  # closed forms, as long as they can be read, and no rounding


def cell(entry: Entry, style: Style) -> tuple[Maths, bool]:
    """A number as it is printed, and whether it is exact.

    >>> cell(Fraction(1, 70000), Style())
    (Number(text='0.00'), False)
    """
    shown = _printed(entry, style, _PRINTED.setdefault(style, {}))
    return shown.maths, shown.exact


class Printed(NamedTuple):
    """A number as it is printed: whether that is exact, and how many digits stand after its point, if it has one."""

    entry: Entry
    maths: Maths
    exact: bool
    decimals: int | None


# A number stands in its own matrix and in every equation that uses it: the same object is set once. Held here, it keeps
# its id.
_PRINTED: dict[Style, dict[int, Printed]] = {}
MOST_PRINTED = 5000


def _printed(entry: Entry, style: Style, known: dict[int, Printed]) -> Printed:
    """`known` is what is known of this style."""
    found = known.get(id(entry))
    if found is not None and found.entry is entry:
        return found
    if len(known) >= MOST_PRINTED:
        known.clear()
    maths, exact = _cell(entry, style)
    found = known[id(entry)] = Printed(entry, maths, exact, _decimals(maths))
    return found


def _cell(entry: Entry, style: Style) -> tuple[Maths, bool]:
    if isinstance(entry, Hidden):
        return number("−∞"), True
    short = exact_decimal(entry, max(SHORT_DECIMALS, style.places))
    if short is not None:
        return number(short), True
    if (_short_fraction(entry) and not style.always) or (style.exact and length(entry) <= LONGEST_FORM):
        return written(entry), True
    if _rises(entry) and about(entry, 10 ** (FIGURES_FROM - 1)) and leading_digits(entry, FIGURES)[1] >= FIGURES_FROM:
        return figures(entry, FIGURES), False
    return number(decimal(entry, style.places)), False


def _rises(entry: AnyNumber) -> TypeGuard[Closed | Certain]:
    """Whether a positive power of e stands in it, or may, which may have more digits than a page."""
    if isinstance(entry, Certain):
        try:
            return abs(entry.quick()[0]) > 10.0**FIGURES_FROM / 10
        except OverflowError:
            return True
    return isinstance(entry, Closed) and any(sign(s) > 0 for N in entry.parts.values() for s in N)


def grid(matrix: Matrix, style: Style, key: str = "", holds: Holds | None = None) -> tuple[Grid, bool]:
    """A matrix with its decimal points above one another, and whether every number in it is exact."""
    known = _PRINTED.setdefault(style, {})
    shown = [[_printed(entry, style, known) for entry in row] for row in matrix]
    columns = [_column(column) for column in zip(*shown, strict=True)]
    return Grid(tuple(zip(*columns, strict=True)), key, holds), all(cell.exact for row in shown for cell in row)


def _column(cells: Sequence[Printed]) -> list[Maths]:
    most = max([cell.decimals or 0 for cell in cells])
    return [_padded(cell.maths, cell.decimals, most) for cell in cells]


def _decimals(maths: Maths) -> int | None:
    """How many digits stand after the point; None for what is no plain decimal."""
    digits = maths.items[-1] if isinstance(maths, Row) and len(maths.items) == 2 else maths
    return len(digits.text.partition(".")[2]) if isinstance(digits, Number) else None


def _padded(maths: Maths, decimals: int | None, most: int) -> Maths:
    if decimals is None or decimals == most:
        return maths
    return Row((maths, Gap(("" if decimals else ".") + "0" * (most - decimals))))


def figures(value: AnyNumber, count: int) -> Maths:
    """So many significant figures; with a power of ten where the number is very small or very large."""
    large = isinstance(value, Fraction) and abs(value) >= 10**FIGURES_FROM
    mantissa, _, raised = (scientific(value, count) if large else significant(value, count, -3)).partition("e")
    return Row((number(mantissa), Sign("·"), Above(Number("10"), number(raised)))) if raised else number(mantissa)


def _short_fraction(entry: Entry) -> bool:
    if not isinstance(entry, Fraction):
        return False
    return max(abs(entry.numerator), entry.denominator) < SHORTEST_LONG
