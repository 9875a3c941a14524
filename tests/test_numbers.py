"""Exact numbers: arithmetic, closed forms, and digits that are certain."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from time import perf_counter

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwork.errors import HeadworkError
from headwork.numbers.closed import Closed, Exact, dot, power_of_e, quotient, softmax
from headwork.numbers.digits import decimal, exact_decimal, exponent, leading_digits, scientific, significant, to_float
from headwork.numbers.enclosure import sign
from headwork.numbers.expsum import Denominator, over_one
from headwork.numbers.parse import NumberError, parse_number
from headwork.numbers.quick import quick_integer
from headwork.numbers.surd import Real, Surd, root
from headwork.numbers.text import length, text

rationals = st.fractions(min_value=-20, max_value=20, max_denominator=12)
surds = st.lists(st.tuples(rationals, st.sampled_from([1, 2, 3, 5, 6, 8])), min_size=1, max_size=3).map(
    lambda terms: sum((c * root(r) for c, r in terms), Fraction(0))
)


mpmath.mp.dps = 90


def reference(number: Exact) -> mpmath.mpf:
    """The number by a separate route: plain floating point at 90 digits."""
    if isinstance(number, Closed):
        return mpmath.fsum(exponentials(N.items()) / below(D) for D, N in number.parts.items())
    if isinstance(number, Surd):
        return mpmath.fsum(reference(c) * mpmath.sqrt(r) for r, c in number.terms.items())
    return mpmath.mpf(number.numerator) / number.denominator


def below(factors: Denominator) -> mpmath.mpf:
    return mpmath.fprod(exponentials(factor) ** power for factor, power in factors)


def exponentials(terms: Iterable[tuple[Real, Real]]) -> mpmath.mpf:
    return mpmath.fsum(reference(c) * mpmath.exp(reference(s)) for s, c in terms)


@given(surds, surds)
def test_roots_add_and_multiply_like_real_numbers(a: Real, b: Real) -> None:
    assert abs(reference(a + b) - (reference(a) + reference(b))) < 1e-40
    assert abs(reference(a * b) - reference(a) * reference(b)) < 1e-38
    assert a + b == b + a
    assert a * b == b * a
    assert not a - a


@given(surds, surds)
def test_dividing_and_multiplying_back_is_exact(a: Real, b: Real) -> None:
    if b:
        assert (a / b) * b == a


def test_a_root_that_comes_out_is_a_fraction() -> None:
    assert root(Fraction(9, 4)) == Fraction(3, 2)
    assert root(2) * root(2) == Fraction(2)
    assert root(2) * root(8) == Fraction(4)
    with pytest.raises(ValueError, match="no real square root"):
        root(-1)


@given(st.lists(surds, min_size=1, max_size=4))
@settings(max_examples=50)
def test_softmax_sums_to_exactly_one(row: list[Real]) -> None:
    weights = softmax(row)
    total: Exact = Fraction(0)
    for weight in weights:
        total = total + weight
    assert total == Fraction(1)


def test_equal_scores_share_equally_and_exactly() -> None:
    assert softmax([root(2), root(2), None]) == [Fraction(1, 2), Fraction(1, 2), Fraction(0)]


def test_a_row_of_hidden_scores_is_zero() -> None:
    assert softmax([None, None]) == [Fraction(0), Fraction(0)]


@given(st.lists(surds, min_size=2, max_size=4), st.lists(rationals, min_size=4, max_size=4), st.integers(0, 30))
@settings(max_examples=60)
def test_every_printed_digit_is_right(row: list[Real], values: list[Fraction], places: int) -> None:
    total: Exact = Fraction(0)
    for weight, value in zip(softmax(row), values, strict=False):
        total = total + weight * value
    shown = Fraction(decimal(total, places))
    assert abs(reference(total) - reference(shown)) <= mpmath.mpf(10) ** -places / 2 * (1 + mpmath.mpf(10) ** -50)


@given(st.lists(surds, min_size=2, max_size=4), st.lists(rationals, min_size=4, max_size=4), st.integers(0, 12))
@settings(max_examples=60)
def test_the_quick_way_never_disagrees_with_intervals(row: list[Real], values: list[Fraction], places: int) -> None:
    total: Exact = Fraction(0)
    for weight, value in zip(softmax(row), values, strict=False):
        total = total + weight * value
    if not isinstance(total, Fraction):
        quick = quick_integer(total, places)
        assert quick in (None, int(mpmath.nint(reference(total) * 10**places)))


def test_the_quick_way_knows_when_it_cannot_tell() -> None:
    """√2/2 to 15 places and more is beyond float64's certain digits, and so is a weight next to a tie."""
    number = root(2) / 2
    assert isinstance(number, Surd)
    assert quick_integer(number, 8) == 70710678
    assert quick_integer(number, 16) is None
    tie = softmax([Fraction(0), Fraction(-60)])[0] * Fraction(1, 8)
    assert isinstance(tie, Closed)
    assert quick_integer(tie, 2) is None
    assert decimal(tie, 2) == "0.12"


def test_rounding_that_is_hard_to_decide_is_decided() -> None:
    """1 − 2·10⁻⁶² needs more than the first precision to be told from 1."""
    almost = softmax([Fraction(0), Fraction(-142)])[0]
    assert decimal(almost, 62) == "0." + "9" * 61 + "8"
    assert decimal(almost, 61) == "1." + "0" * 61


def test_a_tie_hidden_in_exponentials_is_found() -> None:
    """Two rows whose denominators differ add up to exactly 1/8: no precision decides that, algebra does."""
    first = softmax([Fraction(0), Fraction(1)])
    second = softmax([Fraction(0), Fraction(2)])
    number = first[0] * second[0] + first[0] * second[1] + first[1] * second[0] + first[1] * second[1]
    assert number == Fraction(1)
    assert decimal(number * Fraction(1, 8), 2) == "0.13"


x = Fraction(-1)
PAIR = softmax([Fraction(0), x])  # 1/(1 + x), x = e⁻¹
TWICE = softmax([Fraction(0), Fraction(0), x, x])
FOUR = softmax([Fraction(0), x, 2 * x, 3 * x])  # …/(1 + x)(1 + x²)
ROOTS = softmax([Fraction(0), root(2) * x, root(3) * x, (root(2) + root(3)) * x])


def test_a_plain_number_is_seen_through_its_exponentials() -> None:
    """2/(2 + 2e⁻¹) − (1 + e⁻²)/(1 + e⁻¹ + e⁻² + e⁻³) is 0, and what is built on it is rational, or a root."""
    nothing = 2 * TWICE[0] - (FOUR[0] + FOUR[2])
    assert nothing == Fraction(0)
    assert nothing + 3 == Fraction(3)
    assert root(3) * TWICE[0] * 2 + root(3) * (FOUR[1] + FOUR[3]) == root(3)
    assert dot([*PAIR, *FOUR], [*map(Fraction, (3, 1, -1, 1, -1, 1))]) == Fraction(2)
    assert softmax([Fraction(0), root(2) * x])[1] - ROOTS[1] - ROOTS[3] == Fraction(0)
    assert softmax([Fraction(0), root(3) * x])[1] - ROOTS[1] - ROOTS[3] != Fraction(0)


def test_equal_closed_forms_are_equal_however_they_are_written() -> None:
    assert PAIR[0] == FOUR[0] + FOUR[2]
    assert PAIR[0] != FOUR[0] + FOUR[1]
    assert FOUR[0] + FOUR[2] != Fraction(1, 2)


def test_a_square_is_equal_to_itself_multiplied_out_however_many_stand_together() -> None:
    """Σ 1/D² over one denominator would take all D² with all of them multiplied out: two by two they cancel."""
    kept: Exact = Fraction(0)
    multiplied: Exact = Fraction(0)
    for n in range(1, 5):
        first = softmax([Fraction(0), Fraction(-n), Fraction(-3 * n - 1), -n * root(2)])[0]
        below = 1 + power_of_e(Fraction(-n)) + power_of_e(Fraction(-3 * n - 1)) + power_of_e(-n * root(2))
        kept += n * first * first
        inverse = quotient(Fraction(1), below * below)
        assert inverse is not None
        multiplied += n * inverse
    assert isinstance(kept, Closed)
    assert isinstance(multiplied, Closed)
    assert kept.parts != multiplied.parts
    assert kept == multiplied
    assert kept - multiplied + 3 == Fraction(3)
    assert kept != multiplied + Fraction(1, 10**30)


@given(st.lists(st.tuples(rationals, rationals), min_size=2, max_size=4), st.integers(0, 10**6))
@settings(max_examples=60)
def test_a_hidden_number_is_found_whatever_the_scores(pairs: list[tuple[Fraction, Fraction]], far: int) -> None:
    """Scores aᵢ + bⱼ share the weights of the aᵢ out among the bⱼ: summed over j they are those weights again."""
    a, b = ([score * (1 + far) for score in column] for column in zip(*pairs, strict=True))
    alone = softmax(a)
    spread = softmax([s + t for s in a for t in b])
    for i, weight in enumerate(alone):
        together = dot(spread[i * len(b) : (i + 1) * len(b)], [Fraction(1)] * len(b))
        assert together == weight
        assert together - weight + 7 == Fraction(7)
        assert together != weight + Fraction(1, 10**30)


def test_a_number_next_to_a_plain_one_is_not_taken_for_it() -> None:
    """float64 sees no difference between these and a plain number; the algebra does."""
    beside = dot([*PAIR, *FOUR], [Fraction(3), Fraction(1), *map(Fraction, (-1, 1, -1, 1))])
    assert beside == Fraction(2)
    barely = dot([*PAIR, *FOUR], [3 + Fraction(1, 10**60), Fraction(1), *map(Fraction, (-1, 1, -1, 1))])
    assert isinstance(barely, Closed)
    assert sign(barely - 2) == 1
    assert scientific(barely - 2, 3) == "7.31e-61"
    assert sign(PAIR[0] - softmax([Fraction(0), x, 2 * x, 3 * x, Fraction(-(10**6))])[0] - FOUR[2]) == 1


def test_numbers_too_long_to_compare_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no common denominator can be made the precision does not rise for ever."""
    for module in ("constant", "closed"):
        monkeypatch.setattr(f"headwork.numbers.{module}.MOST_PRODUCTS", 3)
    hidden = PAIR[0] - FOUR[0] - FOUR[2]
    assert isinstance(hidden, Closed)
    assert over_one(hidden.parts, 3) is None
    with pytest.raises(HeadworkError, match="too close and too long to be told apart"):
        sign(hidden)


def test_halves_are_rounded_away_from_zero() -> None:
    assert [decimal(Fraction(n, 8), 2) for n in (1, -1, 3)] == ["0.13", "-0.13", "0.38"]
    assert decimal(Fraction(-1, 1000), 2) == "0.00"


def test_significant_figures() -> None:
    assert significant(Fraction(2, 3), 12) == "0.666666666667"
    assert significant(Fraction(5, 2), 12) == "2.5"
    assert significant(Fraction(999999, 1000000), 3) == "1.00"
    assert significant(softmax([Fraction(0), Fraction(-28)])[1], 3) == "6.91e-13"
    assert scientific(Fraction(99996, 10), 3) == "1.00e4"
    assert [exponent(Fraction(n)) for n in (1, 9, 10, -1000)] == [0, 0, 1, 3]


def test_an_exponential_too_small_for_any_float_has_digits() -> None:
    tiny = softmax([Fraction(0), Fraction(-(10**12))])[1]
    assert scientific(tiny, 4) == "5.600e-434294481904"
    assert decimal(tiny, 2) == "0.00"


ASKED = [lambda w: scientific(1 - w, 3), lambda w: decimal(w / 8, 2), lambda w: significant(w, 12)]


@pytest.mark.parametrize("far", [30_000, 10**6, 10**12, 10**80, Fraction(10**160, 7), 10**200 * root(2)])
@pytest.mark.parametrize("ask", ASKED)
def test_scores_far_apart_take_no_time(far: Real | int, ask: Callable[[Exact], str]) -> None:
    """1 − e^(−10⁶) is told from 1 by what is left of it, not by half a million digits."""
    start = perf_counter()
    assert ask(softmax([Fraction(0), -far * Fraction(1)])[0])
    assert perf_counter() - start < 0.5


def test_what_is_left_of_1_has_digits() -> None:
    almost = softmax([Fraction(0), Fraction(-(10**6))])[0]
    assert scientific(1 - almost, 5) == "3.2968e-434295"
    assert (decimal(almost / 8, 2), decimal(Fraction(1, 8) * almost + (1 - almost), 2)) == ("0.12", "0.13")
    assert to_float(1 - softmax([Fraction(0), Fraction(-600)])[0]) == pytest.approx(float(mpmath.exp(-600)), rel=1e-15)


@given(surds.filter(bool), st.integers(1, 20))
def test_leading_digits_are_right(number: Real, figures: int) -> None:
    digits, power = leading_digits(number, figures)
    assert 10 ** (figures - 1) <= abs(digits) < 10**figures
    error = reference(number) - mpmath.mpf(digits) * mpmath.mpf(10) ** (power + 1 - figures)
    assert abs(error) <= mpmath.mpf(10) ** (power + 1 - figures) / 2 * (1 + mpmath.mpf(10) ** -50)


def test_short_decimals_are_exact() -> None:
    assert exact_decimal(Fraction(5, 2), 1) == "2.5"
    assert exact_decimal(Fraction(-3), 2) == "-3"
    assert exact_decimal(Fraction(1, 3), 6) is None
    assert exact_decimal(root(2), 6) is None


@given(surds)
def test_the_sign_is_decided(a: Real) -> None:
    assert sign(a) == (reference(a) > 0) - (reference(a) < 0)


@given(surds)
def test_what_is_printed_reads_back(a: Real) -> None:
    assert parse_number(text(a)) == a


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("3", Fraction(3)),
        ("-0.25", Fraction(-1, 4)),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("1e-3", Fraction(1, 1000)),
        ("1/3", Fraction(1, 3)),
        ("−2", Fraction(-2)),
        ("2*sqrt(3)/3", root(Fraction(4, 3))),
        ("√8", 2 * root(2)),
        ("(1+sqrt(2))*(1-sqrt(2))", Fraction(-1)),
        ("+1", Fraction(1)),
    ],
)
def test_numbers_are_read_exactly(written: str, meant: Real) -> None:
    assert parse_number(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        *(
            "",
            " ",
            "nan",
            "inf",
            "x",
            "1/0",
            "__import__('os')",
            "1;2",
            "sqrt(-1)",
            "sqrt(sqrt(2))",
            "1e400",
            "9" * 100,
        ),
        *(".", "-."),
        *("(1", "1)", "1..2", "2**3", "0x10", "1_000", "sqrt", "--1", "٣", "1e", "sqrt(" * 15 + "4" + ")" * 15),
    ],
)
def test_anything_else_is_refused_with_a_reason(written: str) -> None:
    with pytest.raises(NumberError, match=r"\w"):
        parse_number(written)


def test_floats_agree() -> None:
    number = softmax([root(2), root(3)])[0] * 7
    assert to_float(number) == pytest.approx(float(reference(number)), rel=1e-15)


def test_a_closed_form_says_how_long_it_is() -> None:
    """What a page writes out and what it rounds: a fraction, three roots, 1/(1 + e⁻¹), an integer of 10,000 digits."""
    assert length(Fraction(1, 3)) == 1
    assert length(root(2) + root(3) + root(5)) == 3
    assert length(PAIR[0]) == 6
    assert length(Fraction(10**10_000)) > 500


def test_an_integer_of_any_length_is_written() -> None:
    digits = "7" * 3999 + "0" * 5000 + "3"
    number = Fraction(sum(int(digit) * 10**place for place, digit in enumerate(reversed(digits))))
    assert text(number) == digits
    assert text(-1 / number) == f"-1/{digits}"
