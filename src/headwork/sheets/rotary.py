"""Rotary positions: the angle of every pair of columns at every position, as tables of cosines and sines."""

from fractions import Fraction
from typing import Any

from headwork.build import Sizes
from headwork.errors import HeadworkError
from headwork.numbers.surd import Real, root
from headwork.readings.exact import Matrix
from headwork.sheets.checks import as_integer, as_number, at, at_key, one_of, only_keys
from headwork.sheets.sheet import PAIRS, Rotary
from headwork.variations import Pairs

HALF = Fraction(1, 2)
# Cosines that roots can write, by degrees.
EXACT: dict[int, Real] = {
    0: Fraction(1),
    15: (root(6) + root(2)) / 4,
    30: root(3) / 2,
    45: root(2) / 2,
    60: HALF,
    75: (root(6) - root(2)) / 4,
    90: Fraction(0),
}


def read_rotary(value: Any) -> Rotary | None:
    if value is None:
        return None
    if isinstance(value, str):
        return Rotary(pairs=_pairs(value))
    if not isinstance(value, dict):
        raise HeadworkError(
            'must be a table such as { degrees = [30, 90] }, or "neighbours" or "halves" with cos and sin given'
        )
    only_keys(value, ["degrees", "pairs", "first"])
    return Rotary(
        pairs=at_key("pairs", _pairs, value.get("pairs", PAIRS[0])),
        degrees=at_key("degrees", _degrees, value.get("degrees", [])),
        first=at_key("first", as_integer, value.get("first", 0), 0, 10**6),
    )


def _pairs(value: Any) -> Pairs:
    return PAIRS[PAIRS.index(one_of(value, PAIRS))]


def _degrees(value: Any) -> tuple[Fraction, ...]:
    if not isinstance(value, list):
        raise HeadworkError("needs an angle for every pair of columns, such as [30, 90]")
    found = [at(f"pair {number}", as_number, one) for number, one in enumerate(value, 1)]
    if not all(isinstance(angle, Fraction) for angle in found):
        raise HeadworkError("angles are whole or rational numbers of degrees")
    return tuple(angle for angle in found if isinstance(angle, Fraction))


def tables(rotary: Rotary, sizes: Sizes) -> tuple[Matrix, Matrix]:
    """Cosines and sines, a row for every position of a key and a column for every pair."""
    positions = range(rotary.first, rotary.first + sizes.keys)
    turned = [[position * step for step in rotary.degrees] for position in positions]
    return (
        tuple(tuple(cosine(angle) for angle in row) for row in turned),
        tuple(tuple(cosine(angle - 90) for angle in row) for row in turned),
    )


def cosine(degrees: Fraction) -> Real:
    """Of a multiple of 15°, in roots.

    >>> cosine(Fraction(150))
    -√3/2
    """
    angle = degrees % 360
    angle = min(angle, 360 - angle)
    if angle.denominator > 1 or angle % 15:
        raise HeadworkError(
            f"key 'rotary': the cosine of {degrees}° has no exact form; take multiples of 15°, or give cos and sin"
        )
    return -EXACT[180 - int(angle)] if angle > 90 else EXACT[int(angle)]
