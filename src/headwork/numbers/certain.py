"""Numbers without a closed form here: no value is held, only how it is made, and every digit asked for is certain.

A root of a closed form, e to the power of one, a sine: each is enclosed by intervals, as precise as the question needs.
Whether such a number is exactly 0 cannot be decided in general. So one rule, kept everywhere: **what no interval of
1,536 bits tells from 0 is taken as 0**, and two numbers that differ by as little are taken as equal, a tie included.
A number that is known to be positive, but after 12,288 bits not how large it is to a factor of 2, has 0 for its digits:
of 1 − (1 − x) with x = e^(−10¹⁰⁰) no precision that there is room for would tell more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from headwork.numbers.closed import Closed, Exact
from headwork.numbers.enclosure import FLOAT_DOUBT, Encloser, Interval, enclose, exponential, sign
from headwork.numbers.expsum import ONE, ZERO
from headwork.numbers.quick import quick_value

DOUBLINGS = 4  # up to 192·2³ = 1,536 bits; what is still about 0 then is 0
LAST_DOUBLING = 7  # 192·2⁶ = 12,288 bits
LOST = 1e-300  # what underflow may have lost
Near = tuple[float, float]  # a float64 and how far off it may be


class Rule(NamedTuple):
    """How a number is made of others, in intervals and in float64."""

    interval: Callable[..., Interval]  # from mpmath's interval context and the intervals of what goes in
    near: Callable[..., Near]


class Certain:
    """A number by the rule that makes it, and what it is made of.

    >>> from fractions import Fraction
    >>> Certain("sine", Fraction(1)) + 1
    ≈ 1.84147098481
    """

    __slots__ = ("_intervals", "_near", "_nothing", "inputs", "rule")

    def __init__(self, rule: str, *inputs: AnyNumber) -> None:
        self.rule = rule
        self.inputs = inputs
        self._near = _near(RULES[rule], inputs)
        self._intervals: dict[int, Interval] = {}  # by their bits: others that are made of it ask again
        self._nothing = False  # whether it was taken as 0

    def __add__(self, other: AnyNumber | int) -> AnyNumber:
        if not isinstance(other, Certain) and not other:
            return self
        return Certain("sum", self, other + ZERO if isinstance(other, int) else other)

    def __mul__(self, other: AnyNumber | int) -> AnyNumber:
        if not isinstance(other, Certain) and (not other or other == ONE):
            return self if other else ZERO
        return Certain("product", self, other + ZERO if isinstance(other, int) else other)

    def __truediv__(self, other: AnyNumber | int) -> AnyNumber:
        return Certain("quotient", self, other + ZERO if isinstance(other, int) else other)

    def __rtruediv__(self, other: Exact | int) -> AnyNumber:
        return Certain("quotient", other + ZERO if isinstance(other, int) else other, self)

    def __neg__(self) -> AnyNumber:
        return self * -1

    def __sub__(self, other: AnyNumber | int) -> AnyNumber:
        return ZERO if other is self else self + -other

    def __rsub__(self, other: Exact | int) -> AnyNumber:
        return -self + other

    __radd__ = __add__
    __rmul__ = __mul__

    def __bool__(self) -> bool:
        return sign(self) != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | Exact | Certain) and not self - other

    __hash__ = None  # type: ignore[assignment]  # equality is a matter of digits: no hash agrees with it

    def __reduce__(self) -> tuple[type[Certain], tuple[object, ...]]:
        return Certain, (self.rule, *self.inputs)

    def enclosers(self) -> Iterator[Encloser]:
        """As precise as it takes; from the fourth time on an interval around 0 is 0 itself, at last a wide one too."""
        for doubling in count(1):
            taken = partial(self._taken, at_last=doubling >= LAST_DOUBLING)
            yield self.enclosed if doubling < DOUBLINGS and not self._nothing else taken

    def enclosed(self, iv: Any) -> Interval:
        """An interval around it; what it is made of comes first, each once for a precision."""
        waiting = [self]
        while waiting:
            number = waiting[-1]
            if iv.prec in number._intervals:
                waiting.pop()
            elif before := [x for x in number.inputs if isinstance(x, Certain) and iv.prec not in x._intervals]:
                waiting += before
            else:
                parts = (_part(x, iv) for x in number.inputs)
                number._intervals[iv.prec] = RULES[number.rule].interval(iv, *parts)
        return self._intervals[iv.prec]

    def _taken(self, iv: Any, at_last: bool) -> Interval:
        found = self.enclosed(iv)
        self._nothing = self._nothing or 0 in found or (at_last and not found.delta < abs(found).a)
        return iv.mpf(0) if self._nothing else found

    def quick(self) -> Near:
        """A float64 and how far off it may be; OverflowError where there is none."""
        if self._near is None:
            raise OverflowError
        return self._near

    def __repr__(self) -> str:
        from headwork.numbers.text import text

        return text(self)


AnyNumber = Exact | Certain


def _part(number: AnyNumber, iv: Any) -> Interval:
    if isinstance(number, Certain):
        return number._intervals[iv.prec]
    return number.enclosed(iv) if isinstance(number, Closed) else enclose(number, iv)


def _near(rule: Rule, inputs: tuple[AnyNumber, ...]) -> Near | None:
    try:
        value, error = rule.near(*(quick_value(x) for x in inputs))
    except (ArithmeticError, ValueError):  # too large, too small or too doubtful for float64
        return None
    return (value, error) if math.isfinite(value) and math.isfinite(error) else None


def _sum(iv: Any, *terms: Interval) -> Interval:
    total = iv.mpf(0)
    for term in terms:
        total += term
    return total


def _near_sum(*terms: Near) -> Near:
    return sum(v for v, _ in terms), sum(error + abs(v) * FLOAT_DOUBT for v, error in terms)


def _near_product(a: Near, b: Near) -> Near:
    value = a[0] * b[0]
    return value, abs(a[0]) * b[1] + abs(b[0]) * a[1] + a[1] * b[1] + abs(value) * FLOAT_DOUBT + LOST


def _near_quotient(a: Near, b: Near) -> Near:
    if not abs(b[0]) > 2 * b[1]:
        raise OverflowError
    value = a[0] / b[0]
    return value, (a[1] + abs(value) * b[1]) / (abs(b[0]) - b[1]) + abs(value) * FLOAT_DOUBT + LOST


def _root(iv: Any, of: Interval) -> Interval:
    """The number under the root is not negative, though its interval may reach below 0."""
    return iv.sqrt(iv.mpf([max(of.a, iv.mpf(0).a), of.b]))


def _near_root(of: Near) -> Near:
    if not of[0] > 2 * of[1]:
        raise OverflowError
    value = math.sqrt(of[0])
    return value, of[1] / value + value * FLOAT_DOUBT


def _power(iv: Any, exponent: Interval) -> Interval:
    if not exponent.delta < 2**20:  # nothing is known yet but that it is positive
        return iv.mpf([0, "inf"])
    return exponential(exponent, iv)


def _near_power(exponent: Near) -> Near:
    if not exponent[1] < 0.1:
        raise OverflowError
    value = math.exp(exponent[0])
    return value, value * (2 * exponent[1] + (1 + abs(exponent[0])) * FLOAT_DOUBT) + LOST


def _wave(name: str) -> Rule:
    """A sine or cosine: as far off as its angle, and a rounding; nothing at all is known of too wide an angle."""

    def interval(iv: Any, angle: Interval) -> Interval:
        return getattr(iv, name)(angle) if angle.delta < 1 else iv.mpf([-1, 1])

    def near(angle: Near) -> Near:
        return getattr(math, name)(angle[0]), angle[1] + FLOAT_DOUBT

    return Rule(interval, near)


def _near_logarithm(of: Near) -> Near:
    if not of[0] > 2 * of[1]:
        raise OverflowError
    value = math.log(of[0])
    return value, 2 * of[1] / of[0] + (1 + abs(value)) * FLOAT_DOUBT


RULES: Mapping[str, Rule] = {
    "sum": Rule(_sum, _near_sum),
    "product": Rule(lambda iv, a, b: a * b, _near_product),
    "quotient": Rule(lambda iv, a, b: a / b, _near_quotient),
    "root": Rule(_root, _near_root),
    "power of e": Rule(_power, _near_power),
    "logarithm": Rule(lambda iv, of: iv.log(of), _near_logarithm),
    "sine": _wave("sin"),
    "cosine": _wave("cos"),
    "pi": Rule(lambda iv: iv.pi * 1, lambda: (math.pi, math.pi * FLOAT_DOUBT)),
}
