"""Decimal digits, each of them certain: the precision rises until the rounding is decided.

Halves are rounded away from zero, as at school: 0.125 is 0.13.
"""

from fractions import Fraction
from functools import lru_cache
from math import floor, inf
from typing import Any

from headwork.numbers.certain import AnyNumber, Certain
from headwork.numbers.closed import Closed
from headwork.numbers.enclosure import Interval, exponential, precision, settled, sign
from headwork.numbers.quick import quick_integer, quick_power
from headwork.numbers.surd import Surd

HALF = Fraction(1, 2)
SPARE_BITS = 64  # beyond what the digits themselves take
LONGEST = 4000  # binary digits of a number that is written out, on either side of the point


def rounded(number: AnyNumber, places: int) -> Fraction:
    """The number to so many decimal places, as an exact fraction.

    >>> rounded(Fraction(1, 8), 2)
    Fraction(13, 100)
    """
    return Fraction(_nearest_integer(number, places), 10**places)


def decimal(number: AnyNumber, places: int) -> str:
    """The number to so many decimal places, as text; never "-0.00".

    >>> decimal(Fraction(2, 3), 2)
    '0.67'
    """
    return _with_point(_nearest_integer(number, places), places)


def significant(number: AnyNumber, figures: int, smallest: int = -5) -> str:
    """The number to so many significant figures; an integer or short decimal is given whole.

    >>> significant(Fraction(2, 3), 4), significant(Fraction(5, 2), 12)
    ('0.6667', '2.5')

    From 10^figures on, and below 10^smallest, a power of ten is split off: 6.90e-13.
    """
    plain = exact_decimal(number, figures)
    if plain is not None and len(plain.strip("-0.").replace(".", "")) <= figures:
        return plain
    digits, power = leading_digits(number, figures)
    if smallest <= power < figures:
        return _with_point(digits, figures - 1 - power)
    return _with_power(digits, power, figures)


def scientific(number: AnyNumber, figures: int) -> str:
    """m·10ᵉ written as "6.90e-13".

    >>> scientific(Fraction(69, 10**14), 3)
    '6.90e-13'
    """
    return _with_power(*leading_digits(number, figures), figures)


def leading_digits(number: AnyNumber, figures: int) -> tuple[int, int]:
    """The leading digits as an integer, and the power of ten of the first of them; 0 has none but 0."""
    if not number:
        return 0, 0
    power = exponent(number) if isinstance(number, Fraction) else _power(number)
    digits = _nearest_integer(number, figures - 1 - power, power)
    if abs(digits) >= 10**figures:  # 9.996 became 10.00, or the power was one too small
        power += 1
        digits = _nearest_integer(number, figures - 1 - power, power)
    return digits, power


def exponent(number: Fraction) -> int:
    """⌊log₁₀|number|⌋, for a number that is not 0."""
    size = abs(number)
    guess = (size.numerator.bit_length() - size.denominator.bit_length() - 1) * 30103 // 100000  # log₁₀2 = 0.30103
    while size >= Fraction(10) ** (guess + 1):
        guess += 1
    while size < Fraction(10) ** guess:
        guess -= 1
    return guess


def _power(number: Surd | Closed | Certain) -> int:
    """The power of ten of the first digit, or one less: next to a power of ten only the digits can tell."""
    quick = quick_power(number)
    return settled(number, _power_of_ten) if quick is None else quick


def _power_of_ten(interval: Interval) -> int | None:
    size = abs(interval)
    if not size.a > 0:
        return 0 if size.b == 0 else None  # what is taken as 0, though it is known to be positive
    iv = size.ctx
    with precision(iv, iv.prec + size._mpi_[0][2].bit_length()):  # as many as stand before the logarithm's point
        logarithm = iv.log(size) / iv.log(10)
    ends = _ends(logarithm)
    return floor(ends[0]) if ends is not None and ends[1] - ends[0] < HALF else None


def about(number: Surd | Closed | Certain, least: int) -> bool:
    """Whether its size may be `least` or more: never said of half as much, and never denied of what is. Whether a
    number is 0 or very small need not be known for it."""
    return settled(number, lambda interval: _may_reach(abs(interval), least))


def _may_reach(size: Interval, least: int) -> bool | None:
    return False if size.b < least else True if 2 * size.a >= least else None


def exact_decimal(number: AnyNumber, places: int) -> str | None:
    """The number written out in full when at most `places` decimals do it, else None.

    >>> exact_decimal(Fraction(5, 2), 2), exact_decimal(Fraction(1, 3), 2)
    ('2.5', None)
    """
    if type(number) is not Fraction:
        return None
    above, below = number.as_integer_ratio()
    if below == 1:
        return str(above)
    scaled, rest = divmod(above * 10**places, below)
    if rest:
        return None
    text = _with_point(scaled, places)
    return text.rstrip("0").rstrip(".") if "." in text else text


def to_float(number: AnyNumber, faint: float = 0.0) -> float:
    """A float64 next to it; ∞ where it is too large for one, 0 where it is nearer to 0 than `faint`."""
    return _within_range(number) if isinstance(number, Fraction) else settled(number, lambda x: _float(x, faint))


def _float(interval: Interval, faint: float) -> float | None:
    if abs(interval).b < faint:
        return 0.0
    return _within_range(interval.mid) if interval.delta <= abs(interval) * 2.0**-60 else None


def _within_range(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def _nearest_integer(number: AnyNumber, places: int, power: int | None = None) -> int:
    """number·10^places to the nearest integer, halves away from zero; `power` is the number's, where it is known."""
    if isinstance(number, Fraction):
        return _away_from_zero(number * Fraction(10) ** places)
    quick = quick_integer(number, places)
    if quick is not None:
        return quick

    def question(interval: Interval) -> int | None:
        iv = interval.ctx
        with precision(iv, iv.prec + places.bit_length()):
            ends = _ends(interval * _ten_to(places, iv.prec))
        if ends is None:
            return None
        low, high = (_away_from_zero(end) for end in ends)
        if high == low + 1 and abs(places) <= LONGEST:
            above = sign(number - Fraction(low + high, 2) / Fraction(10) ** places) or low + high
            return high if above > 0 else low
        return low if low == high else None

    if power is None:
        power = quick_power(number) or 0
    return settled(number, question, SPARE_BITS + 10 * max(0, places + power) // 3)


@lru_cache(maxsize=256)
def _ten_to(places: int, bits: int) -> Interval:
    from mpmath import iv

    assert iv.prec == bits, "bits are there to tell the intervals apart"
    return exponential(places * iv.log(10), iv)


def _away_from_zero(number: Fraction) -> int:
    size = floor(abs(number) + HALF)
    return size if number > 0 else -size


def _ends(interval: Interval) -> tuple[Fraction, Fraction] | None:
    """An interval's ends, binary numbers, as fractions; below 2⁻⁶⁴ only their sign is kept.

    e^(−10¹²) as a fraction would fill the memory, and no caller asks about anything so small. None where an end is as
    large as that.
    """
    ends = []
    for negative, mantissa, power, width in interval._mpi_:
        if power + width > LONGEST or (not mantissa and power):  # mpmath writes ±∞ as 0·2^−456
            return None
        size = int(mantissa) * Fraction(2) ** int(max(power, -64 - width))
        ends.append(-size if negative else size)
    return ends[0], ends[1]


def _with_power(digits: int, power: int, figures: int) -> str:
    return f"{_with_point(digits, figures - 1)}e{power}"


def _with_point(integer: int, places: int) -> str:
    """integer·10^−places as text."""
    if places <= 0:
        return str(integer * 10**-places)
    whole, part = divmod(abs(integer), 10**places)
    return f"{'-' if integer < 0 else ''}{whole}.{part:0{places}d}"
