"""Exact numbers as text a person would write: 2√3/3, 1/(1 + e^(-√2))."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cmp_to_key

from headwork.numbers.closed import Closed, Exact
from headwork.numbers.enclosure import sign
from headwork.numbers.expsum import UNIT, Denominator, ExpSum
from headwork.numbers.surd import Real, Surd


def text(number: Exact) -> str:
    """The closed form, with ASCII minus signs; a page that wants others replaces them.

    >>> from headwork.numbers.surd import root
    >>> text(root(2) / 2), text(Fraction(-3, 4))
    ('√2/2', '-3/4')
    """
    if isinstance(number, Closed):
        return _signed_sum(_ratio(N, D) for D, N in _in_order(number))
    return _real(number)


def _in_order(number: Closed) -> list[tuple[Denominator, ExpSum]]:
    """The plain number, if there is one, before the fractions."""
    return sorted(number.parts.items(), key=lambda part: part[0] != UNIT)


def _ratio(above: Mapping[Real, Real], below: Denominator) -> str:
    numerator = _exponentials(above.items())
    if below == UNIT:
        return numerator
    if len(above) > 1 or numerator.startswith("-"):
        numerator = f"({numerator})"
    return f"{numerator}/({_exponentials(below)})"


def _exponentials(terms: Iterable[tuple[Real, Real]]) -> str:
    """Largest exponent first, which is how a normalised row reads: 1 + e^(-2) + …"""
    coefficients = dict(terms)
    exponents = sorted(coefficients, key=cmp_to_key(_larger_first))
    return _signed_sum(_exponential(s, coefficients[s]) for s in exponents)


def _larger_first(one: Real, other: Real) -> int:
    return sign(other - one)


def _exponential(exponent: Real, coefficient: Real) -> str:
    if not exponent:
        return _real(coefficient)
    power = f"e^({_real(exponent)})"
    if coefficient == 1:
        return power
    if coefficient == -1:
        return f"-{power}"
    factor = _real(coefficient)
    return f"({factor})·{power}" if " " in factor else f"{factor}·{power}"


def _real(number: Real) -> str:
    if isinstance(number, Surd):
        return _signed_sum(_root(r, c) for r, c in sorted(number.terms.items()))
    return str(number)


def _root(radicand: int, coefficient: Fraction) -> str:
    if radicand == 1:
        return str(coefficient)
    above = f"{coefficient.numerator}√{radicand}"
    if abs(coefficient.numerator) == 1:
        above = above.replace("1√", "√", 1)
    return above if coefficient.denominator == 1 else f"{above}/{coefficient.denominator}"


def _signed_sum(terms: Iterable[str]) -> str:
    first, *rest = terms
    return first + "".join(f" - {t[1:]}" if t.startswith("-") else f" + {t}" for t in rest)
