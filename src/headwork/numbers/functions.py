"""Functions of numbers: in closed form where there is one, else by certain digits."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm

from headwork.errors import HeadworkError
from headwork.numbers import closed
from headwork.numbers.certain import AnyNumber, Certain
from headwork.numbers.closed import Closed
from headwork.numbers.enclosure import largest, sign
from headwork.numbers.expsum import ONE, ZERO
from headwork.numbers.surd import Real, Surd, root

LARGEST_RADICAND = 10**15  # the largest whole number that is searched for squares
MOST_TERMS = 60  # of a closed form: more than anybody reads
MOST_ROOTS = 4  # of a divisor: each may double the terms of what it divides
LONG = 256  # bits of a fraction that count as one term more
MOST_BITS = 1024  # of a fraction's denominator: about 300 digits
TWELFTHS: dict[Fraction | int, Real] = {  # the cosines of twelfths of a half turn
    0: ONE,
    1: (root(6) + root(2)) / 4,
    2: root(3) / 2,
    3: root(2) / 2,
    4: Fraction(1, 2),
    5: (root(6) - root(2)) / 4,
    6: ZERO,
}


def dot(row: Sequence[AnyNumber], column: Sequence[AnyNumber]) -> AnyNumber:
    """Σ aᵢ·bᵢ; what would be too long to write down is held by its digits."""
    kinds = {*map(type, row), *map(type, column)}
    if kinds == {Fraction}:
        return _shortened(_rational_dot(row, column))  # type: ignore[arg-type]  # all of them are fractions
    if Certain not in kinds:
        if sum(_terms(a) * _terms(b) for a, b in zip(row, column, strict=True)) > MOST_TERMS:
            return _added([Certain("product", a, b) for a, b in zip(row, column, strict=True) if a and b])
        return closed.dot(row, column)  # type: ignore[arg-type]  # all of them have closed forms
    pairs = [pair for pair in zip(row, column, strict=True) if all(isinstance(x, Certain) or x for x in pair)]
    exact = [pair for pair in pairs if not any(isinstance(x, Certain) for x in pair)]
    others = [a * b for a, b in pairs if isinstance(a, Certain) or isinstance(b, Certain)]
    if exact and (plain := closed.dot(*zip(*exact, strict=True))):
        others.append(plain)
    return _added(others)


def _rational_dot(row: Sequence[Fraction], column: Sequence[Fraction]) -> Fraction:
    """Over one denominator, in whole numbers: a `Fraction` for every product and sum takes many times as long."""
    pairs = [(*a.as_integer_ratio(), *b.as_integer_ratio()) for a, b in zip(row, column, strict=True)]
    below = lcm(*(a_below * b_below for _, a_below, _, b_below in pairs))
    return Fraction(sum(a * b * (below // (a_below * b_below)) for a, a_below, b, b_below in pairs), below)


def _shortened(number: Fraction) -> AnyNumber:
    return Certain("sum", number) if number.denominator.bit_length() > MOST_BITS else number


def _terms(number: AnyNumber) -> int:
    """How many terms its closed form has, those of exponents and coefficients too; long numbers count for more."""
    if isinstance(number, Closed):
        if number.terms is None:
            each = (max(_terms(s), _terms(c)) for above in number.parts.values() for s, c in above.items())
            number.terms = sum(each)
        return number.terms
    if isinstance(number, Surd):
        return sum(map(_terms, number.terms.values()))
    if isinstance(number, Fraction):
        return 1 + (number.numerator.bit_length() + number.denominator.bit_length()) // LONG
    return 1


def total(numbers: Iterable[AnyNumber]) -> AnyNumber:
    """Their sum."""
    each = list(numbers)
    return dot(each, [ONE] * len(each))


def _added(terms: Sequence[AnyNumber]) -> AnyNumber:
    return Certain("sum", *terms) if len(terms) > 1 else terms[0] if terms else ZERO


class DividedByZero(HeadworkError):
    """What is not 0 was to be divided by 0."""


def quotient(above: AnyNumber, below: AnyNumber) -> AnyNumber:
    """above/below; 0/0 is 0.

    >>> quotient(Fraction(1), power_of_e(Fraction(1)) - 2)
    ≈ 1.39221119118
    """
    if not below:
        if above:
            raise DividedByZero("a number that is not 0 cannot be divided by 0")
        return ZERO
    if isinstance(above, Certain) or isinstance(below, Certain) or _of_many_roots(below):
        return Certain("quotient", above, below)
    exact = closed.quotient(above, below)
    return Certain("quotient", above, below) if exact is None else exact


def _of_many_roots(divisor: Real | Closed) -> bool:
    """Whether a coefficient is a sum of so many roots that dividing by it, conjugate after conjugate, has no end."""
    sums = divisor.parts.values() if isinstance(divisor, Closed) else [{ZERO: divisor}]
    each = (coefficient for terms in sums for coefficient in terms.values())
    return any(isinstance(x, Surd) and len(x.terms) > MOST_ROOTS for x in each)


def power_of_e(exponent: AnyNumber | None) -> AnyNumber:
    """eˢ; None is −∞."""
    if isinstance(exponent, Closed | Certain):
        return Certain("power of e", exponent)
    return closed.power_of_e(exponent)


def softmax(exponents: Sequence[AnyNumber | None]) -> list[AnyNumber]:
    """eˢ/Σeˢ for every exponent; None is −∞ and gets 0, and a row of nothing but −∞ is all 0."""
    if not any(isinstance(s, Closed | Certain) for s in exponents):
        return [*closed.softmax(exponents)]  # type: ignore[arg-type]  # all of them are real
    top = largest(s for s in exponents if s is not None)
    below = [None if s is None else s - top for s in exponents]
    if not any(isinstance(s, Closed | Certain) for s in below):  # what has no closed form was the same in all of them
        return [*closed.softmax(below)]  # type: ignore[arg-type]  # all of them are real
    powers = [power_of_e(s) for s in below]
    whole = total(powers)
    return [quotient(power, whole) for power in powers]


def square_root(of: AnyNumber) -> AnyNumber:
    """√of, for a number that is not negative.

    >>> square_root(Fraction(1, 2)), square_root(root(2))
    (√2/2, ≈ 1.18920711500)
    """
    side = sign(of)
    if side < 0:
        raise HeadworkError(f"{of!r} is negative: it has no real square root")
    if isinstance(of, Fraction) and of.numerator * of.denominator <= LARGEST_RADICAND:
        return root(of)
    return Certain("root", of) if side else ZERO


def tangent(of: AnyNumber) -> AnyNumber:
    """tanh: (eˢ − e⁻ˢ)/(eˢ + e⁻ˢ), which is a closed form of a real number.

    >>> tangent(Fraction(0)), tangent(root(2))
    (Fraction(0, 1), (1 - e^(-2√2))/(1 + e^(-2√2)))
    """
    if sign(of) < 0:  # so that what grows stands below the line only
        return -tangent(-of)
    shrinking = power_of_e(of * -2)
    return quotient(ONE - shrinking, ONE + shrinking)


def sine(angle: AnyNumber) -> AnyNumber:
    """Of an angle in radians."""
    return Certain("sine", angle) if angle else ZERO


def cosine(angle: AnyNumber) -> AnyNumber:
    """Of an angle in radians."""
    return Certain("cosine", angle) if angle else ONE


def sine_of_pi(times: Fraction) -> AnyNumber:
    """Of so many half turns."""
    return cosine_of_pi(Fraction(1, 2) - times)


def cosine_of_pi(times: Fraction) -> AnyNumber:
    """Of so many half turns; with roots where twelfths of a half turn do.

    >>> cosine_of_pi(Fraction(3, 4)), cosine_of_pi(Fraction(1, 7))
    (-√2/2, ≈ 0.900968867902)
    """
    within = times % 2
    within = min(within, 2 - within)
    if within > Fraction(1, 2):
        return -cosine_of_pi(1 - within)
    known = TWELFTHS.get(within * 12)
    return Certain("cosine", Certain("pi") * within) if known is None else known


def power(base: Fraction, exponent: Fraction) -> AnyNumber:
    """base^exponent, for a base that is positive.

    >>> power(Fraction(10000), Fraction(-1, 4)), power(Fraction(10000), Fraction(-1, 3))
    (Fraction(1, 10), ≈ 0.0464158883361)
    """
    if base <= 0:
        raise HeadworkError(f"{base} is not positive: only powers of positive numbers are worked out")
    raised, degree = base**exponent.numerator, exponent.denominator
    above, below = (_whole_root(x, degree) for x in (raised.numerator, raised.denominator))
    if above and below:
        return Fraction(above, below)
    return square_root(raised) if degree == 2 else power_of_e(Certain("logarithm", raised) * Fraction(1, degree))


def _whole_root(number: int, degree: int) -> int | None:
    """The whole number whose power it is, if there is one and float64 finds it."""
    try:
        guess = round(number ** (1 / degree))
    except OverflowError:
        return None
    return guess if guess**degree == number else None
