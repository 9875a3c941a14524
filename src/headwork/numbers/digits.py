"""Decimal digits, each of them certain: the precision rises until the rounding is decided.

Halves are rounded away from zero, as at school: 0.125 is 0.13.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

from headwork.numbers.closed import Closed, Exact, is_zero
from headwork.numbers.enclosure import Interval, enclose, interval_context, precisions
from headwork.numbers.quick import quick_integer
from headwork.numbers.surd import Real

HALF = Fraction(1, 2)
# Far beyond any ordinary near-tie; from here on ask, exactly, whether it is a tie.
SUSPICIOUS_BITS = 6000


def rounded(number: Exact, places: int) -> Fraction:
    """The number to so many decimal places, as an exact fraction.

    >>> rounded(Fraction(1, 8), 2)
    Fraction(13, 100)
    """
    return Fraction(_nearest_integer(number, places), 10**places)


def decimal(number: Exact, places: int) -> str:
    """The number to so many decimal places, as text; never "-0.00".

    >>> decimal(Fraction(2, 3), 2)
    '0.67'
    """
    return _with_point(_nearest_integer(number, places), places)


def significant(number: Exact, figures: int) -> str:
    """The number to so many significant figures; an integer or short decimal is given whole.

    >>> significant(Fraction(2, 3), 4), significant(Fraction(5, 2), 12)
    ('0.6667', '2.5')
    """
    plain = exact_decimal(number, figures)
    if plain is not None and len(plain.strip("-0.").replace(".", "")) <= figures:
        return plain
    digits, power = _leading_digits(number, figures)
    if not -5 <= power < figures:
        return scientific(number, figures)
    return _with_point(digits, figures - 1 - power)


def scientific(number: Exact, figures: int) -> str:
    """m·10ᵉ written as "6.90e-13".

    >>> scientific(Fraction(69, 10**14), 3)
    '6.90e-13'
    """
    digits, power = _leading_digits(number, figures)
    return f"{_with_point(digits, figures - 1)}e{power}"


def _leading_digits(number: Exact, figures: int) -> tuple[int, int]:
    """The leading digits as an integer, and the power of ten of the first of them."""
    power = exponent(number)
    digits = _nearest_integer(number, figures - 1 - power)
    if abs(digits) == 10**figures:  # 9.996 became 10.00
        return digits // 10, power + 1
    return digits, power


def exponent(number: Exact) -> int:
    """⌊log₁₀|number|⌋, for a number that is not 0."""
    if isinstance(number, Fraction):
        return _exponent_of_fraction(abs(number))
    for bits in precisions():
        iv = interval_context(bits)
        interval = abs(enclosure(number, iv))
        if interval.a > 0:
            logarithm = iv.log(interval) / iv.log(10)
            low, high = (floor(_exact_end(end)) for end in (logarithm.a, logarithm.b))
            if low == high:
                return low
    raise AssertionError("unreachable: precisions() never ends")


def exact_decimal(number: Exact, places: int) -> str | None:
    """The number written out in full when at most `places` decimals do it, else None.

    >>> exact_decimal(Fraction(5, 2), 2), exact_decimal(Fraction(1, 3), 2)
    ('2.5', None)
    """
    if not isinstance(number, Fraction) or (number * 10**places).denominator != 1:
        return None
    text = _with_point(int(number * 10**places), places)
    return text.rstrip("0").rstrip(".") if "." in text else text


def to_float(number: Exact) -> float:
    """A float64 next to it."""
    if isinstance(number, Fraction):
        return float(number)
    return float(enclosure(number, interval_context(160)).mid)


def enclosure(number: Exact, iv: Any) -> Interval:
    """An interval around any exact number."""
    if not isinstance(number, Closed):
        return enclose(number, iv)
    exponentials: dict[Real, Interval] = {}

    def evaluate(terms: Any) -> Interval:
        total = iv.mpf(0)
        for s, c in terms:
            if s not in exponentials:
                exponentials[s] = iv.exp(enclose(s, iv))
            total += exponentials[s] if c == 1 else enclose(c, iv) * exponentials[s]
        return total

    return sum((evaluate(N.items()) / evaluate(D) for D, N in number.parts.items()), iv.mpf(0))


def _nearest_integer(number: Exact, places: int) -> int:
    """number·10^places to the nearest integer, halves away from zero."""
    if isinstance(number, Fraction):
        return _away_from_zero(number * Fraction(10) ** places)
    quick = quick_integer(number, places)
    if quick is not None:
        return quick
    for bits in precisions():
        iv = interval_context(bits)
        interval = enclosure(number, iv) * iv.mpf(10) ** places
        low, high = (_away_from_zero(_exact_end(end)) for end in (interval.a, interval.b))
        if low == high:
            return low
        if bits > SUSPICIOUS_BITS and isinstance(number, Closed):
            tie = Fraction(low + high) / 2
            if is_zero(number - tie / Fraction(10) ** places):
                return _away_from_zero(tie)
    raise AssertionError("unreachable: precisions() never ends")


def _away_from_zero(number: Fraction) -> int:
    size = floor(abs(number) + HALF)
    return size if number > 0 else -size


def _exact_end(end: Any) -> Fraction:
    """An interval's end, a binary number, as a fraction; below 2⁻⁶⁴ only its sign is kept.

    e^(−10¹²) as a fraction would fill the memory, and no caller asks about anything so small.
    """
    negative, mantissa, power, width = end._mpi_[0]
    size: Fraction = int(mantissa) * Fraction(2) ** int(max(power, -64 - width))
    return -size if negative else size


def _exponent_of_fraction(size: Fraction) -> int:
    guess = len(str(size.numerator)) - len(str(size.denominator))
    return guess if size >= Fraction(10) ** guess else guess - 1


def _with_point(integer: int, places: int) -> str:
    """integer·10^−places as text."""
    if places <= 0:
        return str(integer * 10**-places)
    whole, part = divmod(abs(integer), 10**places)
    return f"{'-' if integer < 0 else ''}{whole}.{part:0{places}d}"
