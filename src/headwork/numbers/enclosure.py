"""Intervals that surely hold a number, at any precision: mpmath's interval arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from headwork.numbers.surd import Real, Surd

Interval = Any  # mpmath's ivmpf: mpmath ships no types


def interval_context(bits: int) -> Any:
    """mpmath's interval context, set to a precision."""
    from mpmath import iv  # loaded only when something irrational has to be evaluated

    iv.prec = bits
    return iv


def precisions(start: int = 96) -> Iterator[int]:
    """Ever more bits: callers stop as soon as their question is decided."""
    bits = start
    while True:
        yield bits
        bits *= 2


def enclose(number: Real, iv: Any) -> Interval:
    """An interval around a rational or a sum of roots."""
    if isinstance(number, Surd):
        return sum((enclose(c, iv) * iv.sqrt(r) for r, c in number.terms.items()), iv.mpf(0))
    return iv.mpf(number.numerator) / number.denominator


def sign(number: Real) -> int:
    """−1, 0 or 1. A `Surd` is never 0, so the precision need only rise until the interval leaves 0."""
    if isinstance(number, Fraction):
        return (number > 0) - (number < 0)
    return decided(lambda iv: enclose(number, iv))


def decided(evaluate: Callable[[Any], Interval]) -> int:
    """The sign of something known not to be 0."""
    for bits in precisions():
        interval = evaluate(interval_context(bits))
        if interval.a > 0:
            return 1
        if interval.b < 0:
            return -1
    raise AssertionError("unreachable: precisions() never ends")
