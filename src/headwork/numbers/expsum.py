"""Sums of exponentials, Σ c·eˢ, and sums of their fractions, Σ N/D; c and s are real and algebraic.

Exponentials of different algebraic numbers are linearly independent over the algebraic numbers (Lindemann-Weierstrass).
So a sum of them, like terms collected, is 0 only when nothing is left in it; and N/D is a plain number exactly when
N is a multiple of D. A denominator is a product of powers of such sums, kept as such: Z³·Y. The exponent 0 is the
largest of every factor, as the softmax has it, and its coefficients are positive.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from headwork.numbers.enclosure import FLOAT_DOUBT, Interval, enclose, exponential, largest, near, precision
from headwork.numbers.surd import Real

ExpSum = Mapping[Real, Real]  # exponent → coefficient
Factor = frozenset[tuple[Real, Real]]  # the same sum, as one factor of a denominator
Denominator = frozenset[tuple[Factor, int]]  # factors with their powers
Fractions = Mapping[Denominator, ExpSum]  # Σ N/D

ZERO, ONE = Fraction(0), Fraction(1)
UNIT: Denominator = frozenset()  # the denominator 1

MOST_ROUNDS = 8  # of taking out exponentials that cancel
SPARE_BITS = 64  # below the last one that counts


def accumulate(total: dict[Real, Real], terms: Iterable[tuple[Real, Real]]) -> None:
    for exponent, coefficient in terms:
        before = total.get(exponent)
        summed = coefficient if before is None else before + coefficient
        if summed:
            total[exponent] = summed
        else:
            total.pop(exponent, None)


def product(left: ExpSum, right: ExpSum) -> dict[Real, Real]:
    total: dict[Real, Real] = {}
    accumulate(total, ((s + t, c * d) for s, c in left.items() for t, d in right.items()))
    return total


def one_factor(terms: ExpSum) -> Denominator:
    return frozenset({(frozenset(terms.items()), 1)})


@lru_cache(maxsize=4096)
def times(left: Denominator, right: Denominator) -> Denominator:
    """The product of two denominators; powers of a factor they share are added."""
    powers = Counter(dict(left))
    powers.update(dict(right))
    return frozenset(powers.items())


@lru_cache(maxsize=4096)
def expanded(below: Denominator) -> ExpSum:
    """A denominator multiplied out."""
    total: ExpSum = {ZERO: ONE}
    for factor, power in below:
        for _ in range(power):
            total = product(total, dict(factor))
    return total


def ratio(above: ExpSum, below: Denominator) -> Real | None:
    """c when above = c·below, else None."""
    if not above:
        return ZERO
    terms = expanded(below)
    if above.keys() != terms.keys():
        return None
    first = above[ZERO], terms[ZERO]
    if not all(_proportional(first, (above[exponent], terms[exponent])) for exponent in terms):
        return None
    return first[0] / first[1]


def _proportional(one: tuple[Real, Real], other: tuple[Real, Real]) -> bool:
    """Whether a/b = c/d, as far as float64 tells, and then crosswise: a sum of many roots takes long to divide by."""
    (a, b), (c, d) = one, other
    if b is d is ONE:
        return a == c
    try:
        (left, left_doubt), (right, right_doubt) = _near_product(a, d), _near_product(c, b)
    except OverflowError:
        left = right = left_doubt = right_doubt = 0.0
    return not abs(left - right) > left_doubt + right_doubt and a * d == c * b  # of ∞ float64 tells nothing


def _near_product(a: Real, b: Real) -> tuple[float, float]:
    (x, doubt_x), (y, doubt_y) = near(a), near(b)
    return x * y, abs(x) * doubt_y + abs(y) * doubt_x + doubt_x * doubt_y + abs(x * y) * FLOAT_DOUBT + 1e-300


def over_one(fractions: Fractions, most: int) -> Fractions | None:
    """The same sum over one denominator, with every factor in its highest power; None where that takes more than
    so many products."""
    powers: Counter[Factor] = Counter()
    for denominator in fractions:
        powers |= Counter(dict(denominator))
    below = frozenset(powers.items())
    above: dict[Real, Real] = {}
    for denominator, numerator in fractions.items():
        missing = powers - Counter(dict(denominator))
        raised = numerator
        for factor, power in missing.items():
            for _ in range(power):
                most -= len(raised) * len(factor)
                if most < 0:
                    return None
                raised = product(raised, dict(factor))
        accumulate(above, raised.items())
    return {below: above}


def apart(fractions: Fractions) -> list[dict[Denominator, ExpSum]]:
    """The sum cut into sums whose denominators have no factor in common."""
    groups: list[tuple[set[Factor], dict[Denominator, ExpSum]]] = []
    for below, above in fractions.items():
        factors, together = {factor for factor, _ in below}, {below: above}
        for group in [group for group in groups if group[0] & factors]:
            groups.remove(group)
            factors |= group[0]
            together |= group[1]
        groups.append((factors, together))
    return [together for _, together in groups]


def stretched(fractions: Fractions, by: Fraction) -> Fractions:
    """The sum with every exponent multiplied by a positive number."""
    return {
        frozenset((frozenset((s * by, c) for s, c in factor), power) for factor, power in below): {
            s * by: c for s, c in above.items()
        }
        for below, above in fractions.items()
    }


def cancelled(fractions: Fractions) -> Fractions:
    """The same sum, the largest exponential taken out of all fractions as long as it adds up to 0.

    1 − 1/(1 + e⁻⁹) becomes e⁻⁹/(1 + e⁻⁹): no precision is spent on digits that cancel.
    """
    for _ in range(MOST_ROUNDS):
        top = largest(s for above in fractions.values() for s in above)
        shares = {D: N[top] / expanded(D)[ZERO] for D, N in fractions.items() if top in N}
        if sum(shares.values(), ZERO):
            break
        fractions = {D: _without(N, D, top, shares.get(D, ZERO)) for D, N in fractions.items()}
        fractions = {D: N for D, N in fractions.items() if N}
    return fractions


def _without(above: ExpSum, below: Denominator, exponent: Real, share: Real) -> ExpSum:
    """N − c·eˢ·D, which over D is N/D − c·eˢ."""
    rest = dict(above)
    if share:
        accumulate(rest, ((s + exponent, -c * share) for s, c in expanded(below).items()))
    return rest


def enclose_fractions(fractions: Fractions, iv: Any) -> Interval:
    """An interval around the sum: e^top·Σ (N/e^top)/D, top being the largest exponent of all N."""
    top = largest(s for above in fractions.values() for s in above)
    scaled = iv.mpf(0)
    for below, above in fractions.items():
        share = _enclose(above.items(), top, iv)
        for factor, power in below:
            share /= _enclose_factor(factor, iv.prec) ** power
        scaled += share
    if not top:
        return scaled
    with precision(iv, iv.prec + bits(top)):  # so that e^top is as certain as the rest, however far from 0 top is
        largest_power = exponential(enclose(top, iv), iv)
    return scaled * largest_power


def _enclose(terms: Iterable[tuple[Real, Real]], top: Real, iv: Any) -> Interval:
    """Σ c·e^(s − top), where top is at least as large as every s."""
    total = iv.mpf(0)
    for s, c in terms:
        power = _exponential(s - top if top else s, iv.prec)
        total += power if c == 1 else enclose(c, iv) * power
    return total


@lru_cache(maxsize=4096)  # a row of weights has one denominator, and all that is made of them has it too
def _enclose_factor(factor: Factor, bits: int) -> Interval:
    from mpmath import iv

    assert iv.prec == bits, "bits are there to tell the intervals apart"
    return _enclose(factor, ZERO, iv)


@lru_cache(maxsize=4096)  # a column of values has one set of numerators
def _exponential(exponent: Real, bits: int) -> Interval:
    """e to something that is not positive; what is far below the precision is just that."""
    from mpmath import iv, ldexp

    assert iv.prec == bits, "bits are there to tell the exponentials apart"
    lowest = -(bits + SPARE_BITS)
    try:
        value, doubt = near(exponent)
        far = value + doubt < lowest
    except OverflowError:
        far = True
    return iv.mpf([0, ldexp(1, lowest)]) if far else iv.exp(enclose(exponent, iv))


def bits(number: Real) -> int:
    """About how many binary digits stand before the point."""
    if isinstance(number, Fraction):
        return max(0, number.numerator.bit_length() - number.denominator.bit_length() + 1)
    return max(bits(c) + r.bit_length() for r, c in number.terms.items())
