"""A first try in float64 with an error bound: most roundings are decided here, in microseconds.

Every term is charged 2⁸ times the rounding that float64 arithmetic and the C library's exp can add to it. Only when
the bound leaves the nearest integer in doubt do intervals of rising precision take over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from headwork.numbers.closed import Closed
from headwork.numbers.surd import Real, Surd

UNIT = 2.0**-45  # 2⁸ roundings of 2⁻⁵³


def quick_integer(number: Surd | Closed, places: int) -> int | None:
    """number·10^places to the nearest integer, or None where float64 cannot tell."""
    try:
        value, error = _real(number) if isinstance(number, Surd) else _closed(number)
        scale = 10.0**places
        scaled, doubt = value * scale, (error + abs(value) * UNIT) * scale
    except OverflowError:
        return None
    nearest = round(scaled)
    if not abs(scaled) < 2**50 or abs(scaled - nearest) + doubt >= 0.5:
        return None
    return nearest


def _real(number: Real) -> tuple[float, float]:
    if isinstance(number, Fraction):
        value = float(number)
        return value, abs(value) * UNIT
    terms = [float(c) * math.sqrt(r) for r, c in number.terms.items()]
    return sum(terms), sum(map(abs, terms)) * UNIT


def _closed(number: Closed) -> tuple[float, float]:
    total = error = 0.0
    for below, above in number.parts.items():
        top, top_error = _exponentials(above.items())
        bottom, bottom_error = _exponentials(below)
        if not bottom > 2 * bottom_error:
            raise OverflowError  # never for a softmax, whose largest exponent is 0
        ratio = top / bottom
        total += ratio
        error += (top_error + abs(ratio) * bottom_error) / (bottom - bottom_error) + abs(ratio) * UNIT
    return total, error


def _exponentials(terms: Iterable[tuple[Real, Real]]) -> tuple[float, float]:
    total = error = 0.0
    for exponent, coefficient in terms:
        power, spread = _real(exponent)
        factor, factor_error = _real(coefficient)
        size = math.exp(power)
        term = factor * size
        total += term
        # e^(s ± δ) is off by at most 2δ of itself for small δ; 1e-300 stands for what underflow may have lost.
        error += abs(term) * (2 * spread + UNIT) + factor_error * size + (1 + abs(factor)) * 1e-300
        if spread > 0.1:
            raise OverflowError
    return total, error
