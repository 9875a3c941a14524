"""Exponentials in closed form: Σ N/D, where N and D are sums c·eˢ with real algebraic c and s.

Softmax makes eˢ/Σeˢ; the products that follow only multiply by known numbers and add, which stays inside. So does
what its gradients do (products of two such numbers) and a quotient of two exponential sums.
Why not a general algebra system: here equality is *decided* (see `expsum` for why), so that a number that is plain is
always a `Fraction` or a `Surd`, and rounding at rising precision always comes to an end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import count
from typing import Any

from headwork.numbers import expsum
from headwork.numbers.constant import constant
from headwork.numbers.enclosure import Encloser, Interval, largest, sign
from headwork.numbers.expsum import ONE, UNIT, ZERO, Denominator, ExpSum, Fractions
from headwork.numbers.quick import quick_fractions
from headwork.numbers.surd import Real, Surd

MOST_PRODUCTS = 2000  # a common denominator that takes more is not made: more bits are cheaper


class Closed:
    """Σ N/D over distinct D: what a softmax leaves behind. Never a plain number.

    >>> softmax([Fraction(0), Fraction(1)])[1]
    1/(1 + e^(-1))
    """

    __slots__ = ("_intervals", "_quick", "_sharper", "_together", "parts", "terms")
    parts: Fractions

    def __init__(self, parts: Fractions) -> None:
        self.parts = parts
        self.terms: int | None = None  # how many, once they were counted: see `functions`
        self._intervals: dict[int, Interval] = {}  # by their bits: digits and what is made of it ask again and again
        self._quick: tuple[float, float] | None = None
        self._sharper: Closed | None = None  # the same number in forms that need fewer bits, once they were asked for
        self._together: Closed | None = None

    def __add__(self, other: Exact | int) -> Exact:
        if not isinstance(other, Closed | Surd | Fraction | int):
            return NotImplemented
        if not isinstance(other, Closed):  # the sum is no plain number either
            unit = dict(self.parts.get(UNIT, {}))
            expsum.accumulate(unit, [(ZERO, ZERO + other)])  # an int becomes a Fraction
            others = {D: N for D, N in self.parts.items() if D != UNIT}
            return Closed({**others, UNIT: unit} if unit else others)
        total = {below: dict(above) for below, above in self.parts.items()}
        for below, above in other.parts.items():
            expsum.accumulate(total.setdefault(below, {}), above.items())
        return _simplest(total)

    def __mul__(self, other: Exact | int) -> Exact:
        if isinstance(other, int | Fraction | Surd):
            if not other:
                return ZERO
            return Closed({D: {s: c * other for s, c in N.items()} for D, N in self.parts.items()})
        if not isinstance(other, Closed):
            return NotImplemented
        total: dict[Denominator, dict[Real, Real]] = {}
        for D1, N1 in self.parts.items():
            for D2, N2 in other.parts.items():
                expsum.accumulate(total.setdefault(expsum.times(D1, D2), {}), expsum.product(N1, N2).items())
        return _simplest(total)

    def __truediv__(self, other: Fraction | Surd | int) -> Exact:
        return self * (ONE / other)

    def __neg__(self) -> Exact:
        return self * -1

    def __sub__(self, other: Exact | int) -> Exact:
        return self + -other

    def __rsub__(self, other: Fraction | Surd | int) -> Exact:
        return -self + other

    __radd__ = __add__
    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Closed):
            return NotImplemented
        return self.parts == other.parts or self - other == ZERO

    __hash__ = None  # type: ignore[assignment]  # equality is decided, not structural: no cheap hash agrees with it

    def __reduce__(self) -> tuple[type[Closed], tuple[Fractions]]:
        return Closed, (self.parts,)

    def enclosers(self) -> Iterator[Encloser]:
        """As it stands; without what cancels; over one denominator, which needs no more bits than its size asks for."""
        yield self.enclosed
        sharper = self._sharper = self._sharper or Closed(expsum.cancelled(self.parts))
        for _ in range(3):
            yield sharper.enclosed
        if self._together is None and (together := expsum.over_one(self.parts, MOST_PRODUCTS)):
            self._together = Closed(together)
        for _ in count() if self._together else range(4):
            yield (self._together or sharper).enclosed

    def enclosed(self, iv: Any) -> Interval:
        """An interval around it, as it stands."""
        if iv.prec not in self._intervals:
            self._intervals[iv.prec] = expsum.enclose_fractions(self.parts, iv)
        return self._intervals[iv.prec]

    def quick(self) -> tuple[float, float]:
        """A float64 and how far off it may be; OverflowError where there is none."""
        if self._quick is None:
            self._quick = quick_fractions(self.parts)
        return self._quick

    def __repr__(self) -> str:
        from headwork.numbers.text import text

        return text(self)


Exact = Fraction | Surd | Closed


def softmax(exponents: Sequence[Real | None]) -> list[Exact]:
    """eˢ/Σeˢ for every exponent; None is −∞ and gets 0, and a row of nothing but −∞ is all 0.

    >>> softmax([Fraction(2), Fraction(2), None])
    [Fraction(1, 2), Fraction(1, 2), Fraction(0, 1)]
    """
    visible = [s for s in exponents if s is not None]
    if not visible:
        return [ZERO] * len(exponents)
    top = largest(visible)
    shifted = [None if s is None else s - top for s in exponents]
    below: dict[Real, Real] = {}
    expsum.accumulate(below, ((s, ONE) for s in shifted if s is not None))
    denominator = expsum.one_factor(below)
    return [ZERO if s is None else _simplest({denominator: {s: ONE}}) for s in shifted]


def power_of_e(exponent: Real | None) -> Exact:
    """eˢ; None is −∞."""
    if exponent is None:
        return ZERO
    return Closed({UNIT: {exponent: ONE}}) if exponent else ONE


def quotient(above: Exact, below: Exact) -> Exact | None:
    """above/below; None unless the divisor is a plain number, or made of a few exponentials with like signs.

    >>> quotient(power_of_e(Fraction(1)), power_of_e(Fraction(1)) + power_of_e(Fraction(2)))
    e^(-1)/(1 + e^(-1))
    """
    if not isinstance(below, Closed):
        return above / below
    together = expsum.over_one(below.parts, MOST_PRODUCTS)
    if together is None:
        return None
    ((under, divisor),) = together.items()
    powers = Counter(dict(under))
    if len({sign(c) for c in divisor.values()}) > 1:
        return None
    top = largest(divisor)
    turned = sign(divisor[top])
    shifted = {s - top: c * turned for s, c in divisor.items()}
    parts: Fractions = above.parts if isinstance(above, Closed) else {UNIT: {ZERO: above}}
    result: dict[Denominator, dict[Real, Real]] = {}
    for D, N in parts.items():
        kept = frozenset((Counter(dict(D)) - powers).items())  # what both have cancels
        missing = expsum.expanded(frozenset((powers - Counter(dict(D))).items()))
        numerator = expsum.product(N, {s - top: c * turned for s, c in missing.items()})
        expsum.accumulate(result.setdefault(expsum.times(kept, expsum.one_factor(shifted)), {}), numerator.items())
    return _simplest(result)


def dot(row: Sequence[Exact], column: Sequence[Exact]) -> Exact:
    """Σ aᵢ·bᵢ, gathered in one place: adding term by term would copy the growing sum every time."""
    total: dict[Denominator, dict[Real, Real]] = {}
    plain: Real = ZERO
    rest: Exact = ZERO
    for a, b in zip(row, column, strict=True):
        if not a or not b:
            continue
        if isinstance(a, Closed) and isinstance(b, Closed):
            rest = rest + a * b
        elif isinstance(a, Closed):
            _gather(total, a, b)  # type: ignore[arg-type]  # b is no Closed here
        elif isinstance(b, Closed):
            _gather(total, b, a)
        else:
            plain = plain + a * b
    if total:
        rest = _simplest(total) + rest if rest else _simplest(total)
    return rest + plain if rest and plain else rest or plain


def _gather(total: dict[Denominator, dict[Real, Real]], number: Closed, factor: Real) -> None:
    for below, above in number.parts.items():
        terms = ((s, factor if c is ONE else c * factor) for s, c in above.items())
        expsum.accumulate(total.setdefault(below, {}), terms)


def _simplest(parts: Fractions) -> Exact:
    """Drop what cancels: a numerator that is a multiple of its denominator is a plain number, and so may the sum be."""
    kept: dict[Denominator, ExpSum] = {}
    plain: Real = ZERO
    for below, above in parts.items():
        multiple = expsum.ratio(above, below)
        if multiple is None:
            kept[below] = above
        else:
            plain = plain + multiple
    if len(kept) > 1 and (hidden := constant(kept)) is not None:
        return hidden + plain
    if not kept:
        return plain
    if plain:
        unit = dict(kept.get(UNIT, {}))
        expsum.accumulate(unit, [(ZERO, plain)])
        kept[UNIT] = unit
    return Closed(kept)
