"""Intervals that surely hold a number, at any precision, and the one place where the precision rises."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from itertools import count, repeat
from typing import TYPE_CHECKING, Any, TypeVar

from headwork.errors import HeadworkError
from headwork.numbers.surd import Real, Surd

if TYPE_CHECKING:
    from headwork.numbers.certain import AnyNumber, Certain
    from headwork.numbers.closed import Closed

T = TypeVar("T")
N = TypeVar("N", bound="AnyNumber")
Interval = Any  # mpmath's ivmpf: mpmath ships no types
Encloser = Callable[[Any], Interval]  # from mpmath's interval context, set to a precision, to an interval

FIRST_BITS = 192
FLOAT_DOUBT = 2.0**-45  # 2⁸ roundings of 2⁻⁵³: what a term in float64 is charged for its own


def settled(number: Surd | Closed | Certain, question: Callable[[Interval], T | None], bits: int = FIRST_BITS) -> T:
    """Ask about ever narrower intervals around a number until there is an answer: twice the bits every time.

    A number that is 0, or a tie, would be asked about for ever; a `Surd` and a `Closed` are irrational by
    construction, so every question with rational boundaries comes to an end, and a `Certain` becomes 0 at last.
    """
    from mpmath import iv  # loaded only when something irrational has to be evaluated

    first = (-(-bits // FIRST_BITS) - 1).bit_length()  # the same precisions for all, for which intervals are kept
    for doubling, enclose_number in zip(count(first), enclosers(number)):
        with precision(iv, FIRST_BITS << doubling):
            answer = question(enclose_number(iv))
        if answer is not None:
            return answer
    raise HeadworkError("two numbers are too close and too long to be told apart; use shorter ones")


@contextmanager
def precision(iv: Any, bits: int) -> Iterator[None]:
    """mpmath's interval context at so many bits; as it was before, afterwards."""
    before = iv.prec
    iv.prec = bits
    try:
        yield
    finally:
        iv.prec = before


def enclosers(number: Surd | Closed | Certain) -> Iterable[Encloser]:
    """How to enclose the number at the first precision, at the second, and so on."""
    return repeat(lambda iv: enclose(number, iv)) if isinstance(number, Surd) else number.enclosers()


def enclose(number: Real, iv: Any) -> Interval:
    """An interval around a rational or a sum of roots, in whole numbers: one interval for all is faster than many."""
    from mpmath.libmp import from_man_exp

    if isinstance(number, Fraction):
        above, below = number.numerator, number.denominator
        bits = max(0, iv.prec + below.bit_length() - above.bit_length() + 2)  # after the point
        whole, rest = divmod(above << bits, below)
        return iv.make_mpf((from_man_exp(whole, -bits), from_man_exp(whole + 1 if rest else whole, -bits)))
    low = high = 0  # in units of 2^−bits
    for radicand, coefficient in number.terms.items():
        above, below = coefficient.numerator, coefficient.denominator
        ends = above * _root(radicand, iv.prec) // below, above * (_root(radicand, iv.prec) + 1) // below
        low, high = low + min(ends), high + max(ends) + 1
    return iv.make_mpf((from_man_exp(low, -iv.prec, iv.prec, "f"), from_man_exp(high, -iv.prec, iv.prec, "c")))


def exponential(power: Interval, iv: Any) -> Interval:
    """e^power as 2ᵏ·eʳ with 0 ≤ r < 1: mpmath squares e as often as an integer power asks, which is slow for 10¹⁰⁰."""
    from mpmath import floor, ldexp

    k = int(floor((power / iv.ln2).mid))
    return iv.exp(power - k * iv.ln2) * iv.mpf(ldexp(1, k))


@lru_cache(maxsize=4096)
def _root(radicand: int, bits: int) -> int:
    """⌊√radicand·2^bits⌋"""
    return math.isqrt(radicand << (2 * bits))


def near(number: Real) -> tuple[float, float]:
    """A float64 and how far off it may be; OverflowError where it is too large for one."""
    if not isinstance(number, Surd):
        above, below = number.as_integer_ratio()
        value = above / below
        return value, abs(value) * FLOAT_DOUBT + 1e-300  # which stands for what underflow may have lost
    if number.near is None:
        terms = [c.numerator / c.denominator * math.sqrt(r) for r, c in number.terms.items()]
        number.near = sum(terms), sum(map(abs, terms)) * FLOAT_DOUBT + 1e-300
    return number.near


def sign(number: AnyNumber) -> int:
    """−1, 0 or 1, decided."""
    if isinstance(number, Fraction):
        return (number.numerator > 0) - (number.numerator < 0)
    try:
        value, doubt = near(number) if isinstance(number, Surd) else number.quick()
    except OverflowError:
        value = doubt = 0.0
    if abs(value) > doubt:
        return 1 if value > 0 else -1
    return settled(number, _side)


def _side(interval: Interval) -> int | None:
    return 1 if interval.a > 0 else -1 if interval.b < 0 else 0 if interval.a == 0 == interval.b else None


def compared(one: AnyNumber, other: AnyNumber) -> int:
    """The sign of one − other; where float64 can tell, the difference is not made."""
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return (one > other) - (one < other)
    try:
        a, b = (near(number) if isinstance(number, Fraction | Surd) else number.quick() for number in (one, other))
    except OverflowError:
        a = b = (0.0, 0.0)
    if abs(a[0] - b[0]) > a[1] + b[1] + (abs(a[0]) + abs(b[0])) * FLOAT_DOUBT:
        return 1 if a[0] > b[0] else -1
    return sign(one - other)


def largest(numbers: Iterable[N]) -> N:
    """The largest of some numbers, decided exactly."""
    top, *others = numbers
    for number in others:
        if compared(number, top) > 0:
            top = number
    return top
