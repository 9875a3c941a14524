"""How one number is printed: whole when it is short, rounded when it is not, and which of the two."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from headwork.numbers.digits import decimal, exact_decimal
from headwork.numbers.text import text
from headwork.readings.exact import Entry, Hidden, Matrix

SHORT_DECIMALS = 6  # a terminating decimal of up to so many places is written out
SHORT_FRACTION = 4  # digits above or below the line up to which a fraction is written as one


@dataclass(frozen=True)
class Style:
    """How numbers are printed on a page."""

    places: int = 2
    exact: bool = False  # closed forms throughout, no rounding


def cell(entry: Entry, style: Style) -> tuple[str, bool]:
    """The text of a number, and whether it is exact.

    >>> cell(Fraction(1, 3), Style()), cell(Fraction(1, 70000), Style())
    (('1/3', True), ('0.00', False))
    """
    if isinstance(entry, Hidden):
        return "−∞", True
    written = exact_decimal(entry, max(SHORT_DECIMALS, style.places))
    if written is None and (style.exact or _short_fraction(entry)):
        written = text(entry)
    if written is not None:
        return written.replace("-", "−"), True
    return decimal(entry, style.places).replace("-", "−"), False


def cells(matrix: Matrix, style: Style) -> tuple[list[list[str]], bool]:
    """The texts of a matrix, and whether every one is exact. A column with rounded entries shows equal places."""
    shown = [[cell(entry, style) for entry in row] for row in matrix]
    return [[words for words, _ in row] for row in shown], all(exact for row in shown for _, exact in row)


def _short_fraction(entry: Entry) -> bool:
    if not isinstance(entry, Fraction):
        return False
    return max(len(str(abs(entry.numerator))), len(str(entry.denominator))) <= SHORT_FRACTION
