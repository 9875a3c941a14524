"""Exact numbers as a person would write them: 2√3/3, 1/(1 + e^(−√2))."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cmp_to_key, lru_cache
from sys import maxsize

from headwork import maths as m
from headwork.inline import inline
from headwork.numbers.certain import AnyNumber, Certain
from headwork.numbers.closed import Closed
from headwork.numbers.digits import significant
from headwork.numbers.enclosure import compared
from headwork.numbers.expsum import UNIT, Denominator, ExpSum
from headwork.numbers.surd import Real, Surd

LONGEST = 10**4000
FIGURES = 12


def text(number: AnyNumber) -> str:
    """The closed form on one line, with ASCII minus signs, as data has it.

    >>> from headwork.numbers.surd import root
    >>> text(root(2) / 2), text(Fraction(-3, 4))
    ('√2/2', '-3/4')
    """
    return inline(written(number)).replace("−", "-")


def written(number: AnyNumber) -> m.Maths:
    """The closed form as mathematics."""
    if isinstance(number, Certain):  # which has none: its digits, and a sign that says so
        return m.Row((m.Sign("≈"), m.number(significant(number, FIGURES))))
    if isinstance(number, Closed):
        return m.signed_sum(_ratio(N, D) for D, N in _in_order(number))
    return _real(number)


def length(number: AnyNumber) -> int:
    """How many numbers of ordinary length it takes to write the closed form; no end of them where there is none."""
    if isinstance(number, Certain):
        return maxsize
    if isinstance(number, Closed):
        sums = [terms for D, N in number.parts.items() for terms in (N.items(), *(factor for factor, _ in D))]
        return sum(length(s) + length(c) for terms in sums for s, c in terms)
    if isinstance(number, Surd):
        return sum(map(length, number.terms.values()))
    return 1 + (number.numerator.bit_length() + number.denominator.bit_length()) // 64


def _in_order(number: Closed) -> list[tuple[Denominator, ExpSum]]:
    """The plain number, if there is one, before the fractions."""
    return sorted(number.parts.items(), key=lambda part: part[0] != UNIT)


def _ratio(above: Mapping[Real, Real], below: Denominator) -> m.Maths:
    numerator = _exponentials(above.items())
    return numerator if below == UNIT else m.Ratio(numerator, _factors(below))


def _factors(below: Denominator) -> m.Maths:
    """1 + e^(−2), or of several (1 + e^(−2))²·(1 + e^(−1))."""
    each = [(_exponentials(factor), power) for factor, power in below]
    if [power for _, power in each] == [1]:
        return each[0][0]
    factors = [(m.bracketed(sum_), power) for sum_, power in each]
    raised = [factor if power == 1 else m.Above(factor, m.Number(str(power))) for factor, power in factors]
    return m.between(sorted(raised, key=inline), "·")


def _exponentials(terms: Iterable[tuple[Real, Real]]) -> m.Maths:
    """Largest exponent first, which is how a normalised row reads: 1 + e^(−2) + …"""
    return m.signed_sum(_exponential(s, c) for s, c in sorted(terms, key=cmp_to_key(_larger_first)))


def _larger_first(one: tuple[Real, Real], other: tuple[Real, Real]) -> int:
    return compared(other[0], one[0])


def _exponential(exponent: Real, coefficient: Real) -> m.Maths:
    if not exponent:
        return _real(coefficient)
    power = m.power_of_e(_real(exponent))
    if coefficient in (1, -1):
        return power if coefficient == 1 else m.minus(power)
    factor = _real(coefficient)
    if m.is_sum(factor):
        return m.Row((m.bracketed(factor), m.Sign("·"), power))
    return m.Row((*_items(factor), m.Sign("·"), power))


def _items(factor: m.Maths) -> tuple[m.Maths, ...]:
    """A minus at the front stays at the front of the product."""
    return factor.items if isinstance(factor, m.Row) else (factor,)


@lru_cache(maxsize=1024)  # the same few exponents and coefficients stand in every entry of a row
def _real(number: Real) -> m.Maths:
    if isinstance(number, Surd):
        return m.signed_sum(_root(r, c) for r, c in sorted(number.terms.items()))
    return _fraction(number)


def _root(radicand: int, coefficient: Fraction) -> m.Maths:
    if radicand == 1:
        return _fraction(coefficient)
    size = abs(coefficient)
    above = m.RootOf(_integer(radicand))
    over = above if size.numerator == 1 else m.Row((_integer(size.numerator), above))
    root: m.Maths = over if size.denominator == 1 else m.Ratio(over, _integer(size.denominator))
    return root if coefficient > 0 else m.minus(root)


def _fraction(number: Fraction) -> m.Maths:
    size = abs(number)
    over, under = _integer(size.numerator), size.denominator
    fraction = over if under == 1 else m.Ratio(over, _integer(under))
    return fraction if number >= 0 else m.minus(fraction)


def _integer(number: int) -> m.Number:
    """In pieces of 4,000 digits: Python writes no more than 4,300 at once."""
    pieces = []
    while number >= LONGEST:
        number, rest = divmod(number, LONGEST)
        pieces.append(f"{rest:04000d}")
    return m.Number("".join([str(number), *reversed(pieces)]))
