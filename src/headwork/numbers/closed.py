"""Exponentials in closed form: Σ N/D, where N and D are sums c·eˢ with real algebraic c and s.

Softmax makes eˢ/Σeˢ; the products that follow only multiply by known numbers and add, which stays inside.
Why not a general algebra system: here equality is *decided*. Exponentials of different algebraic numbers are
linearly independent over the algebraic numbers (Lindemann-Weierstrass), so N/D is a plain number exactly when
N is a multiple of D, and rounding at rising precision always comes to an end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from headwork.numbers.enclosure import sign
from headwork.numbers.surd import Real, Surd

ExpSum = Mapping[Real, Real]  # exponent → coefficient
Denominator = frozenset[tuple[Real, Real]]

ZERO, ONE = Fraction(0), Fraction(1)
UNIT: Denominator = frozenset({(ZERO, ONE)})  # the denominator 1


class Closed:
    """Σ N/D over distinct D: what a softmax leaves behind. Never a plain number.

    >>> softmax([Fraction(0), Fraction(1)])[1]
    1/(1 + e^(-1))
    """

    __slots__ = ("parts",)
    parts: Mapping[Denominator, ExpSum]

    def __init__(self, parts: Mapping[Denominator, ExpSum]) -> None:
        self.parts = parts

    def __add__(self, other: Exact | int) -> Exact:
        total = {below: dict(above) for below, above in self.parts.items()}
        for below, above in _parts(other).items():
            _accumulate(total.setdefault(below, {}), above.items())
        return _simplest(total)

    def __mul__(self, other: Exact | int) -> Exact:
        if isinstance(other, int | Fraction | Surd):
            if not other:
                return ZERO
            return Closed({D: {s: c * other for s, c in N.items()} for D, N in self.parts.items()})
        total: dict[Denominator, dict[Real, Real]] = {}
        for D1, N1 in self.parts.items():
            for D2, N2 in other.parts.items():
                below = frozenset(_product(dict(D1), dict(D2)).items())
                _accumulate(total.setdefault(below, {}), _product(N1, N2).items())
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
            return False
        return self.parts == other.parts or is_zero(self - other)

    __hash__ = None  # type: ignore[assignment]  # equality is decided, not structural: no cheap hash agrees with it

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
    below: dict[Real, Real] = {}
    _accumulate(below, ((s - top, ONE) for s in visible))
    denominator = frozenset(below.items())
    return [ZERO if s is None else _simplest({denominator: {s - top: ONE}}) for s in exponents]


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
    return _simplest(total) + rest + plain if total or rest else plain


def _gather(total: dict[Denominator, dict[Real, Real]], number: Closed, factor: Real) -> None:
    for below, above in number.parts.items():
        _accumulate(total.setdefault(below, {}), ((s, c * factor) for s, c in above.items()))


def largest(numbers: Sequence[Real]) -> Real:
    """The largest of some real numbers, decided exactly."""
    top = numbers[0]
    for number in numbers[1:]:
        if sign(number - top) > 0:
            top = number
    return top


def is_zero(number: Exact) -> bool:
    """Whether a number is exactly 0: over a common denominator every coefficient must vanish."""
    if not isinstance(number, Closed):
        return not number
    total: dict[Real, Real] = {}
    for D, N in number.parts.items():
        product: ExpSum = N
        for other in number.parts:
            if other != D:
                product = _product(product, dict(other))
        _accumulate(total, product.items())
    return not total


def _parts(number: Exact | int) -> Mapping[Denominator, ExpSum]:
    if isinstance(number, Closed):
        return number.parts
    return {UNIT: {ZERO: Fraction(number) if isinstance(number, int) else number}}


def _accumulate(total: dict[Real, Real], terms: Iterable[tuple[Real, Real]]) -> None:
    for exponent, coefficient in terms:
        summed = total.get(exponent, ZERO) + coefficient
        if summed:
            total[exponent] = summed
        else:
            total.pop(exponent, None)


def _product(left: ExpSum, right: ExpSum) -> ExpSum:
    total: dict[Real, Real] = {}
    _accumulate(total, ((s + t, c * d) for s, c in left.items() for t, d in right.items()))
    return total


def _simplest(parts: Mapping[Denominator, ExpSum]) -> Exact:
    """Drop what cancels: a numerator that is a multiple of its denominator is a plain number."""
    kept: dict[Denominator, ExpSum] = {}
    plain: Real = ZERO
    for below, above in parts.items():
        ratio = _ratio(above, below)
        if ratio is None:
            kept[below] = above
        else:
            plain = plain + ratio
    if not kept:
        return plain
    if plain:
        kept[UNIT] = {ZERO: plain}
    return Closed(kept)


def _ratio(above: ExpSum, below: Denominator) -> Real | None:
    """c when above = c·below, else None."""
    if not above:
        return ZERO
    if len(above) != len(below):
        return None
    ratio: Real | None = None
    for exponent, coefficient in below:
        if exponent not in above:
            return None
        here = above[exponent] / coefficient
        if ratio is not None and here != ratio:
            return None
        ratio = here
    return ratio
