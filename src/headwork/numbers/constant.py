"""Whether a sum of fractions of exponentials is a plain number, though none of the fractions is one.

A plain number stays what it is when every exponent is multiplied by the same t, for e^(ts) obeys the same laws as eˢ.
So two values of t, in float64, tell almost every sum at once that it is none: t = 0, where every exponential is 1,
and t = ∞, where only e⁰ is left. What still looks like a plain number is looked at in intervals, and then brought over
one denominator, which takes long where there is much to multiply.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import chain

from headwork.numbers import expsum
from headwork.numbers.enclosure import enclose, near, precision, sign
from headwork.numbers.expsum import ZERO, Denominator, Factor, Fractions
from headwork.numbers.quick import quick_fractions
from headwork.numbers.surd import Real

PRECISIONS = (256, 1024)  # bits
MOST_PRODUCTS = 50_000  # a common denominator that takes more is not made


def constant(fractions: Fractions) -> Real | None:
    """The plain number that the sum is; None when it is none."""
    if _changes(fractions):
        return None
    pieces = expsum.apart(fractions)
    if len(pieces) > 1 and (known := _constants(pieces)) is not None:
        return known
    return _over_one(fractions)


def _changes(fractions: Fractions) -> bool:
    """Whether digits show that it is none: the sum is another at another t."""
    try:
        if _moves(fractions):
            return True
    except ArithmeticError:  # too large or too small for float64
        if not _rises(fractions) and _exactly(fractions, far=False) != _exactly(fractions, far=True):
            return True
    return any(_surely_moves(fractions, precise) for precise in PRECISIONS)


def _constants(pieces: Iterable[Fractions]) -> Real | None:
    """Their sum, where each is a plain number, or two are together, as 1/D² is less the same with D² multiplied out:
    the product of all denominators might not fit.
    """
    total: Real = ZERO
    rest: list[Fractions] = []
    for piece in pieces:
        plain = constant(piece) if len(piece) > 1 else _over_one(piece)
        if plain is None:
            rest.append(piece)
        else:
            total = total + plain
    while rest:
        first, *others = rest
        for place, other in enumerate(others):
            both = {**first, **other}
            if not _changes(both) and (plain := _over_one(both)) is not None:
                total = total + plain
                rest = others[:place] + others[place + 1 :]
                break
        else:
            return None
    return total


def _over_one(fractions: Fractions) -> Real | None:
    together = expsum.over_one(fractions, MOST_PRODUCTS)
    if together is None:
        return None
    ((below, above),) = together.items()
    return expsum.ratio(above, below)


def _moves(fractions: Fractions) -> bool:
    """Whether float64 sees the sum change from one t to another."""
    level = level_doubt = far = far_doubt = 0.0
    for below, above in fractions.items():
        level_below, far_below = _coefficients(below)
        total = doubt = 0.0
        for coefficient in above.values():
            value, error = near(coefficient)
            total += value
            doubt += error + abs(value) * 1e-15
        level += total / level_below
        level_doubt += 2 * doubt / level_below
        if ZERO in above:
            value, error = near(above[ZERO])
            far += value / far_below
            far_doubt += 2 * (error + abs(value) * 1e-15) / far_below
    if abs(level - far) > level_doubt + far_doubt and not _rises(fractions):
        return True
    spread = max(abs(near(s)[0]) for below, above in fractions.items() for s in chain(above, *map(dict, _sums(below))))
    between, doubt = quick_fractions(fractions, 1 / spread)
    return abs(level - between) > level_doubt + doubt


def _surely_moves(fractions: Fractions, precise: int) -> bool:
    """Whether intervals of so many bits see the sum change, from t = 0 to where no exponent is larger than about 1."""
    from mpmath import iv

    longest = max(expsum.bits(s) for below, above in fractions.items() for s in chain(above, *map(dict, _sums(below))))
    level = _exactly(fractions, far=False)
    with precision(iv, precise):
        near_level = expsum.enclose_fractions(expsum.stretched(fractions, Fraction(1, 1 << longest)), iv)
        difference = near_level - enclose(level, iv)
    return 0 not in difference


def _sums(below: Denominator) -> list[Factor]:
    return [factor for factor, _ in below]


def _rises(fractions: Fractions) -> bool:
    """Whether a numerator holds a positive exponent: at t = ∞ more than e⁰ is left then."""
    return any(s.numerator > 0 if isinstance(s, Fraction) else sign(s) > 0 for N in fractions.values() for s in N)


@lru_cache(maxsize=4096)
def _coefficients(below: Denominator) -> tuple[float, float]:
    """A denominator at t = 0 and at t = ∞."""
    level = far = 1.0
    for factor, power in below:
        level *= sum(near(c)[0] for _, c in factor) ** power
        far *= near(dict(factor)[ZERO])[0] ** power
    return level, far


def _exactly(fractions: Fractions, far: bool) -> Real:
    """The sum at t = ∞, or at t = 0."""
    total: Real = ZERO
    for below, above in fractions.items():
        upper = above.get(ZERO, ZERO) if far else sum(above.values(), ZERO)
        terms = expsum.expanded(below)
        lower = terms[ZERO] if far else sum(terms.values(), ZERO)
        total = total + upper / lower
    return total
