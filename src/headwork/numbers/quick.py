"""A first try in float64 with an error bound: most roundings are decided here, in microseconds.

Every term is charged 2⁸ times the rounding that float64 arithmetic and the C library's exp can add to it. Only when
the bound leaves the nearest integer in doubt do intervals of rising precision take over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from headwork.numbers.enclosure import FLOAT_DOUBT, near
from headwork.numbers.expsum import Factor, Fractions
from headwork.numbers.surd import Real, Surd

FAINTEST = -700  # e to this is about 1e-304


if TYPE_CHECKING:
    from headwork.numbers.certain import AnyNumber


def quick_integer(number: AnyNumber, places: int) -> int | None:
    """number·10^places to the nearest integer, or None where float64 cannot tell."""
    try:
        value, error = quick_value(number)
        scale = 10.0**places
    except OverflowError:
        return None
    scaled, doubt = value * scale, (error + abs(value) * FLOAT_DOUBT) * scale
    if not abs(scaled) < 2**50:
        return None
    nearest = round(scaled)
    return None if abs(scaled - nearest) + doubt >= 0.5 else nearest


def quick_power(number: AnyNumber) -> int | None:
    """The power of ten of the first digit, or one less; None where float64 cannot tell."""
    try:
        value, error = quick_value(number)
    except OverflowError:
        return None
    least = (abs(value) - error) * (1 - FLOAT_DOUBT)
    return math.floor(math.log10(least)) if least > error else None


def quick_value(number: AnyNumber) -> tuple[float, float]:
    """A float64 and how far off it may be; OverflowError where float64 cannot hold what is needed."""
    return near(number) if isinstance(number, Fraction | Surd) else number.quick()


def quick_fractions(fractions: Fractions, stretch: float = 1.0) -> tuple[float, float]:
    """The same for Σ N/D, every exponent multiplied by `stretch`."""
    total = error = 0.0
    for below, above in fractions.items():
        top, top_error = _exponentials(above.items(), stretch)
        bottom, bottom_error = 1.0, 0.0
        for factor, power in below:
            value, doubt = _factor(factor, stretch)
            if not value > 2 * doubt:
                raise OverflowError  # never for a softmax, whose largest exponent is 0
            bottom *= value**power
            bottom_error += power * (doubt / value + FLOAT_DOUBT)
        bottom_error *= 2 * bottom  # twice: powers of 1 + ε are a little more than 1 + pε
        if not bottom > 2 * bottom_error:
            raise OverflowError
        ratio = top / bottom
        total += ratio
        error += (top_error + abs(ratio) * bottom_error) / (bottom - bottom_error) + abs(ratio) * FLOAT_DOUBT
    return total, error


@lru_cache(maxsize=1024)  # a row of weights has one denominator, and all that is made of them has it too
def _factor(factor: Factor, stretch: float) -> tuple[float, float]:
    return _exponentials(factor, stretch)


def _exponentials(terms: Iterable[tuple[Real, Real]], stretch: float) -> tuple[float, float]:
    total = error = 0.0
    for exponent, coefficient in terms:
        factor, factor_error = near(coefficient)
        power, spread = _power(exponent)
        if (power + spread) * stretch < FAINTEST:
            error += (1 + abs(factor)) * 1e-300
            continue
        spread = (spread + abs(power) * FLOAT_DOUBT) * stretch
        size = math.exp(power * stretch)
        term = factor * size
        total += term
        # e^(s ± δ) is off by at most 2δ of itself for small δ; 1e-300 stands for what underflow may have lost.
        error += abs(term) * (2 * spread + FLOAT_DOUBT) + factor_error * size + (1 + abs(factor)) * 1e-300
        if spread > 0.1:
            raise OverflowError
    return total, error


def _power(exponent: Real) -> tuple[float, float]:
    """An exponent and how far off it may be; −∞ where it is below all that float64 holds."""
    try:
        return near(exponent)
    except OverflowError:
        if isinstance(exponent, Fraction) and exponent < 0:
            return -math.inf, 0.0
        raise
