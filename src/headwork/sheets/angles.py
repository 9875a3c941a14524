"""Angles by position, as tables of cosines and sines: rotary positions, and the sinusoids that are added to X."""

from fractions import Fraction
from typing import Any

from headwork.build import Sizes
from headwork.errors import HeadworkError
from headwork.numbers.certain import AnyNumber
from headwork.numbers.digits import rounded
from headwork.numbers.functions import cosine, cosine_of_pi, power, sine, sine_of_pi
from headwork.readings.exact import Matrix
from headwork.sheets.checks import as_integer, as_number, at, at_key, one_of, only_keys
from headwork.sheets.sheet import PAIRS, Angles, Rotary
from headwork.variations import Pairs

USUAL_BASE = 10_000
LAST_POSITION = 10**6
_KEYS = ["base", "first", "places"]


# As a sheet writes them.


def read_rotary(value: Any) -> Rotary | None:
    if value is None:
        return None
    if isinstance(value, str):
        return Rotary(_pairs(value))
    if not isinstance(value, dict):
        raise HeadworkError(
            'must be a table such as { degrees = [30, 90] } or { base = 10000 }, or "neighbours" or "halves" with cos '
            "and sin given"
        )
    only_keys(value, ["degrees", "pairs", *_KEYS])
    if ("degrees" in value) == ("base" in value):
        raise HeadworkError("needs its angles once: degrees = [30, 90], one for every pair of columns, or base = 10000")
    return Rotary(at_key("pairs", _pairs, value.get("pairs", PAIRS[0])), _angles(value))


def _pairs(value: Any) -> Pairs:
    return PAIRS[PAIRS.index(one_of(value, PAIRS))]


def read_positions(value: Any) -> Angles | None:
    if value is None:
        return None
    if isinstance(value, str):
        one_of(value, ("sinusoidal",))
        return Angles(base=Fraction(USUAL_BASE))
    if not isinstance(value, dict):
        raise HeadworkError('must be "sinusoidal" or a table such as { base = 100, places = 2 }; a matrix is given')
    only_keys(value, _KEYS)
    return _angles({"base": USUAL_BASE, **value})


def _angles(value: dict[str, Any]) -> Angles:
    places = value.get("places")
    return Angles(
        degrees=at_key("degrees", _degrees, value["degrees"]) if "degrees" in value else (),
        base=at_key("base", _base, value["base"]) if "base" in value else None,
        first=at_key("first", as_integer, value.get("first", 0), 0, LAST_POSITION),
        places=None if places is None else at_key("places", as_integer, places, 0, 50),
    )


def _degrees(value: Any) -> tuple[Fraction, ...]:
    if not isinstance(value, list) or not value:
        raise HeadworkError("needs an angle for every pair of columns, such as [30, 90]")
    return tuple(at(f"pair {number}", _rational, one) for number, one in enumerate(value, 1))


def _base(value: Any) -> Fraction:
    base = _rational(value)
    if base <= 0:
        raise HeadworkError(f"{base} is not greater than 0")
    return base


def _rational(value: Any) -> Fraction:
    number = as_number(value)
    if not isinstance(number, Fraction):
        raise HeadworkError(f"{number!r} is no rational number")
    return number


# As matrices.


def rotary_tables(angles: Angles, sizes: Sizes) -> tuple[Matrix, Matrix]:
    """Cosines and sines, a row for every position of a key and a column for every pair of d_k."""
    rows = [_row(angles, position, sizes.d_k) for position in range(sizes.keys)]
    return tuple(tuple(cos for cos, _ in row) for row in rows), tuple(tuple(sin for _, sin in row) for row in rows)


def sinusoids(angles: Angles, sizes: Sizes, first: int) -> Matrix:
    """A row for every token from this one on: sine, cosine of the first angle, sine, cosine of the second …"""
    if sizes.d_model % 2:
        raise HeadworkError(f"key 'positions': sines and cosines come in pairs, but d_model is {sizes.d_model}")
    rows = [_row(angles, token, sizes.d_model) for token in range(first, sizes.past + sizes.tokens)]
    return tuple(tuple(x for cos, sin in row for x in (sin, cos)) for row in rows)


def _row(angles: Angles, position: int, width: int) -> list[tuple[AnyNumber, AnyNumber]]:
    """Cosine and sine of every pair at a position, counted from the first."""
    position += angles.first
    cos, sin = (cosine_of_pi, sine_of_pi) if angles.base is None else (cosine, sine)
    turns: list[Any] = [degrees / 180 * position for degrees in angles.degrees]
    if angles.base is not None:
        turns = [power(angles.base, Fraction(-2 * pair, width)) * position for pair in range(width // 2)]
    return [(_told(cos(turn), angles.places), _told(sin(turn), angles.places)) for turn in turns]


def _told(number: AnyNumber, places: int | None) -> AnyNumber:
    """As it is, or rounded as a printed table has it."""
    return number if places is None else rounded(number, places)
