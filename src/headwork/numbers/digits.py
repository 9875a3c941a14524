"""Decimal digits, each of them certain: the precision rises until the rounding is decided.

Halves are rounded away from zero, as at school: 0.125 is 0.13.
"""

from fractions import Fraction
from math import floor, inf

from headwork.numbers.certain import AnyNumber, Certain
from headwork.numbers.closed import Closed
from headwork.numbers.enclosure import FIRST_BITS, Interval, exponential, precision, settled, sign
from headwork.numbers.quick import quick_integer, quick_power
from headwork.numbers.surd import Surd

HALF = Fraction(1, 2)
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
        return None
    iv = size.ctx
    with precision(iv, iv.prec + size._mpi_[0][2].bit_length()):  # as many as stand before the logarithm's point
        logarithm = iv.log(size) / iv.log(10)
    ends = _ends(logarithm)
    return floor(ends[0]) if ends is not None and ends[1] - ends[0] < HALF else None


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


def to_float(number: AnyNumber) -> float:
    """A float64 next to it."""
    if isinstance(number, Fraction):
        return float(number)
    return settled(number, _float)


def _float(interval: Interval) -> float | None:
    if not interval.delta <= abs(interval) * 2.0**-60:
        return None
    try:
        return float(interval.mid)
    except OverflowError:
        return inf if interval.mid > 0 else -inf


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
            ends = _ends(interval * exponential(places * iv.log(10), iv))
        if ends is None:
            return None
        low, high = (_away_from_zero(end) for end in ends)
        if high == low + 1 and abs(places) <= LONGEST:
            above = sign(number - Fraction(low + high, 2) / Fraction(10) ** places) or low + high
            return high if above > 0 else low
        return low if low == high else None

    if not number:
        return 0
    digits = places + (_power(number) if power is None else power)
    return settled(number, question, FIRST_BITS + max(0, 10 * digits // 3))


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
