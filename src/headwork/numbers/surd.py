"""Sums of square roots with rational coefficients: 1/2 + 3√2 − √5/7, kept exactly.

A plain rational is always a `Fraction`; a `Surd` is what is left over, so it is irrational by construction.
That is what lets `digits` round without ever meeting a tie it cannot see.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import gcd, isqrt


class Surd:
    """Σ c·√r over distinct square-free r, at least one r > 1.

    >>> root(Fraction(8)) + 1
    1 + 2√2
    """

    __slots__ = ("_hash", "near", "terms")
    terms: Mapping[int, Fraction]

    def __init__(self, terms: Mapping[int, Fraction]) -> None:
        self.terms = terms
        self._hash: int | None = None  # most are never asked for theirs
        self.near: tuple[float, float] | None = None  # a float64 and how far off it may be: see `enclosure.near`

    def __add__(self, other: Real | int) -> Real:
        if not isinstance(other, int | Fraction | Surd):
            return NotImplemented
        total = dict(self.terms)
        for radicand, coefficient in _terms(other).items():
            total[radicand] = total.get(radicand, Fraction(0)) + coefficient
        return _simplest(total)

    def __mul__(self, other: Real | int) -> Real:
        if not isinstance(other, int | Fraction | Surd):
            return NotImplemented
        total: dict[int, Fraction] = {}
        for a, p in self.terms.items():
            for b, q in _terms(other).items():
                common = gcd(a, b)
                radicand = a * b // common**2
                total[radicand] = total.get(radicand, Fraction(0)) + p * q * common
        return _simplest(total)

    def __truediv__(self, other: Real | int) -> Real:
        return self * (other.inverse() if isinstance(other, Surd) else Fraction(1) / other)

    def __rtruediv__(self, other: Fraction | int) -> Real:
        return other * self.inverse()

    def inverse(self) -> Real:
        """1/self, by multiplying above and below with the conjugate in one root at a time."""
        above: Real = Fraction(1)
        below: Real = self
        while isinstance(below, Surd):
            factor = _common_factor(below.terms)
            conjugate = Surd({r: -c if r % factor == 0 else c for r, c in below.terms.items()})
            above, below = above * conjugate, below * conjugate
        return above * (1 / below)

    def __neg__(self) -> Surd:
        return Surd({r: -c for r, c in self.terms.items()})

    def __sub__(self, other: Real | int) -> Real:
        return self + -other

    def __rsub__(self, other: Fraction | int) -> Real:
        return -self + other

    __radd__ = __add__
    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return self.terms == other.terms if isinstance(other, Surd) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __repr__(self) -> str:
        from headwork.numbers.text import text

        return text(self)


Real = Fraction | Surd


def root(of: Fraction | int) -> Real:
    """√of for a rational that is not negative: a `Fraction` when it comes out, a `Surd` when not.

    >>> root(Fraction(9, 4)), root(Fraction(1, 3))
    (Fraction(3, 2), √3/3)
    """
    of = Fraction(of)
    if of < 0:
        raise ValueError(f"no real square root of {of}")
    square, radicand = _square_part(of.numerator * of.denominator)
    return _simplest({radicand: Fraction(square, of.denominator)})


def _square_part(number: int) -> tuple[int, int]:
    """number = square²·radicand with a square-free radicand."""
    square = radicand = 1
    candidate = 2
    while candidate**3 <= number:
        power = 0
        while number % candidate == 0:
            number, power = number // candidate, power + 1
        square *= candidate ** (power // 2)
        radicand *= candidate ** (power % 2)
        candidate += 1
    # What is left has no factor up to its cube root: it is 1, a prime, a prime's square, or two different primes.
    side = isqrt(number)
    return (square * side, radicand) if side**2 == number else (square, radicand * number)


def _common_factor(radicands: Iterable[int]) -> int:
    """A number, not 1, that every radicand has as a factor or shares nothing with. It need not be prime."""
    factor = max(radicands)
    while True:
        shared = min(common for r in radicands if (common := gcd(factor, r)) > 1)
        if shared == factor:
            return factor
        factor = shared


def _terms(number: Real | int) -> Mapping[int, Fraction]:
    return number.terms if isinstance(number, Surd) else {1: Fraction(number)}


def _simplest(terms: Mapping[int, Fraction]) -> Real:
    kept = {r: c for r, c in terms.items() if c}
    if not kept.keys() - {1}:
        return kept.get(1, Fraction(0))
    return Surd(kept)
