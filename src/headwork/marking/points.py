"""Points in words: 3, 7/2, 2.25."""

from __future__ import annotations

from fractions import Fraction

from headwork.numbers.digits import exact_decimal


def points(number: Fraction) -> str:
    """A short decimal where there is one, a fraction where not.

    >>> points(Fraction(9, 4)), points(Fraction(1, 3))
    ('2.25', '1/3')
    """
    return exact_decimal(number, 4) or str(number)
