"""Numbers without a closed form: every digit certain, mixed with exact ones, and never asked about for ever."""

import pickle
from collections.abc import Callable
from fractions import Fraction
from time import process_time

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwork.errors import HeadworkError
from headwork.graph import Step
from headwork.numbers.certain import AnyNumber, Certain
from headwork.numbers.closed import Closed
from headwork.numbers.digits import decimal, leading_digits, scientific, significant, to_float
from headwork.numbers.enclosure import enclose, largest, precision, sign
from headwork.numbers.functions import (
    cosine,
    cosine_of_pi,
    dot,
    power,
    power_of_e,
    quotient,
    sine,
    sine_of_pi,
    softmax,
    square_root,
    tangent,
    total,
)
from headwork.numbers.surd import root
from headwork.numbers.text import length, text
from headwork.ops import Given, MatMul, Softmax
from headwork.readings.exact import exact

rationals = st.fractions(min_value=-9, max_value=9, max_denominator=12)
mp = mpmath.mp.clone()
mp.dps = 90


def reference(number: AnyNumber) -> mpmath.mpf:
    """The number by a separate route: plain floating point at 90 digits."""
    if isinstance(number, Certain):
        parts = [reference(x) for x in number.inputs]
        return OTHERWISE[number.rule](*parts)
    if isinstance(number, Closed):
        return mp.fsum(
            mp.fsum(reference(c) * mp.exp(reference(s)) for s, c in N.items())
            / mp.fprod(mp.fsum(reference(c) * mp.exp(reference(s)) for s, c in f) ** p for f, p in D)
            for D, N in number.parts.items()
        )
    if isinstance(number, Fraction):
        return mp.mpf(number.numerator) / number.denominator
    return mp.fsum(reference(c) * mp.sqrt(r) for r, c in number.terms.items())


OTHERWISE: dict[str, Callable[..., mpmath.mpf]] = {
    "sum": lambda *terms: mp.fsum(terms),
    "product": lambda a, b: a * b,
    "quotient": lambda a, b: a / b,
    "root": mp.sqrt,
    "power of e": mp.exp,
    "logarithm": mp.log,
    "sine": mp.sin,
    "cosine": mp.cos,
    "pi": lambda: +mp.pi,
}


def grown(numbers: st.SearchStrategy[AnyNumber]) -> st.SearchStrategy[AnyNumber]:
    pairs = st.tuples(numbers, numbers)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        numbers.map(lambda x: square_root(x * x + 1)),
        numbers.map(sine),
        numbers.map(lambda x: power_of_e(cosine(x))),
        numbers.map(tangent),
        pairs.map(lambda p: quotient(p[0], p[1] * p[1] + 1)),
    )


numbers: st.SearchStrategy[AnyNumber] = st.recursive(rationals, grown, max_leaves=6)


@given(numbers)
@settings(max_examples=150, deadline=None)
def test_every_digit_is_that_of_another_arithmetic(number: AnyNumber) -> None:
    other = reference(number)
    if abs(other) < 1e-60:
        return
    digits, exponent = leading_digits(number, 25)
    assert abs(mp.mpf(digits) * mp.mpf(10) ** (exponent - 24) / other - 1) < mp.mpf(10) ** -24
    assert abs(to_float(number) - other) <= abs(other) * 2.0**-52
    assert sign(number) == (1 if other > 0 else -1)
    assert abs(mp.mpf(decimal(number, 6)) - other) <= mp.mpf("0.5e-6") + mp.mpf(10) ** -50


def test_it_meets_every_kind_of_number_on_either_side() -> None:
    made = square_root(root(2))
    for other in (3, Fraction(1, 3), root(5), power_of_e(Fraction(-1)), sine(Fraction(2))):
        value = reference(made)
        plain = reference(other if not isinstance(other, int) else Fraction(other))
        for here, there in (
            (made + other, value + plain),
            (other + made, value + plain),
            (made - other, value - plain),
            (other - made, plain - value),
            (made * other, value * plain),
            (other * made, value * plain),
            (quotient(made, Fraction(0) + other), value / plain),
            (quotient(Fraction(0) + other, made), plain / value),
        ):
            assert abs(to_float(here) - there) < 1e-15 * (1 + abs(there)), other


def test_what_is_exact_stays_exact() -> None:
    assert square_root(Fraction(9, 4)) == Fraction(3, 2)
    assert isinstance(tangent(Fraction(1)), Closed)
    assert (sine(Fraction(0)), cosine(Fraction(0)), tangent(Fraction(0))) == (Fraction(0), Fraction(1), Fraction(0))
    assert cosine_of_pi(Fraction(1, 12)) == (root(6) + root(2)) / 4
    assert [sine_of_pi(Fraction(k, 6)) for k in range(7)] == [0, Fraction(1, 2), root(3) / 2, 1, root(3) / 2, 0.5, 0]
    assert cosine_of_pi(Fraction(-9, 4)) == root(2) / 2
    assert power(Fraction(10000), Fraction(-2, 4)) == Fraction(1, 100)
    assert power(Fraction(8, 27), Fraction(-2, 3)) == Fraction(9, 4)
    made = square_root(root(2))
    assert made - made == 0
    assert made * 0 == 0
    weights = softmax([made, made + 1])  # what they share cancels only to the eye: the digits say so
    assert decimal(total(weights), 12) == "1.000000000000"


def test_it_never_pretends_to_be_exact() -> None:
    made = square_root(root(2))
    assert text(made) == repr(made) == "≈ 1.18920711500"
    assert length(made) > 10**6
    with pytest.raises(TypeError):
        hash(made)


def test_what_may_be_zero_is_taken_as_zero_soon() -> None:
    """√(3 + 2√2) is 1 + √2, and sin² + cos² is 1; no interval tells, so the rule does."""
    start = process_time()
    nothing = square_root(Fraction(3) + root(2) * 2) - root(2) - 1
    assert (sign(nothing), bool(nothing), to_float(nothing)) == (0, False, 0.0)
    assert (decimal(nothing, 4), significant(nothing, 4), scientific(nothing, 3)) == ("0.0000", "0.000", "0.00e0")
    one = sine(Fraction(1)) * sine(Fraction(1)) + cosine(Fraction(1)) * cosine(Fraction(1))
    assert one == 1
    assert Fraction(1) == one
    assert one != 2
    assert decimal(one * Fraction(1, 8), 2) == "0.13"
    assert decimal(one * Fraction(-1, 8), 2) == "-0.13"
    assert largest([one, Fraction(1)]) == 1
    assert quotient(Fraction(0), nothing) == 0
    with pytest.raises(HeadworkError, match="divided by 0"):
        quotient(one, nothing)
    with pytest.raises(HeadworkError, match="negative"):
        square_root(-one)
    assert square_root(nothing) == 0
    assert process_time() - start < 2


def test_very_large_and_very_small_numbers() -> None:
    large = power_of_e(power_of_e(Fraction(9)))
    assert significant(large, 6) == "1.33240e3519"
    assert significant(quotient(Fraction(1), large), 6) == "7.50523e-3520"
    assert decimal(tangent(power_of_e(Fraction(9))), 5) == "1.00000"
    assert significant(tangent(power_of_e(Fraction(-900))), 3) == "1.36e-391"
    assert softmax([None, None]) == [0, 0]
    assert [decimal(w, 3) for w in softmax([power_of_e(Fraction(8)), None, Fraction(5)])] == ["1.000", "0.000", "0.000"]


def test_long_chains_are_read_without_recursion() -> None:
    number: AnyNumber = sine(Fraction(1))
    for _ in range(3000):
        number = number + sine(Fraction(1))
    assert decimal(number, 2) == "2525.25"
    assert decimal(pickle.loads(pickle.dumps(dot([sine(Fraction(1))] * 9, [root(2)] * 9))), 6) == "10.710177"


def test_the_softmax_of_a_softmax_has_certain_digits() -> None:
    X = Step(Given((2, 2)), (), "X")
    first = Step(Softmax(), (X,), "weights")
    second = Step(Softmax(), (Step(MatMul(), (first, first), "scores"),), "weights")
    meaning = exact(second, {X: ((Fraction(1), Fraction(2)), (Fraction(0), Fraction(0)))})
    a, b = mp.exp(1) / (mp.exp(1) + mp.exp(2)), mp.exp(2) / (mp.exp(1) + mp.exp(2))
    scores = [[a * a + b / 2, a * b + b / 2], [a / 2 + mp.mpf(1) / 4, b / 2 + mp.mpf(1) / 4]]
    for row, expected in zip(meaning[second], scores, strict=True):
        below = sum(map(mp.exp, expected))
        for entry, score in zip(row, expected, strict=True):
            assert isinstance(entry, Certain)
            assert abs(to_float(entry) - mp.exp(score) / below) < 1e-16


def test_a_positive_number_of_which_no_precision_tells_more_has_an_end() -> None:
    """x + (1 − (1 − x)): its interval goes from x to what rounding leaves, and was narrowed for ever."""
    for far, digits in ((1000, "1.02e-434"), (8000, "8.81e-3475"), (10**100, "0.00")):
        x = Certain("power of e", Fraction(-far))
        number = x + (1 - (1 - x))
        assert significant(number, 3) == digits
        assert decimal(number, 2) == "0.00"


def test_an_interval_holds_its_number_at_any_precision() -> None:
    """At few bits a part of a root loses nearly all of its last unit when it is rounded down."""
    for bits in (4, 9, 40):
        for above in range(-12, 13):
            number = Fraction(above, 7) * root(2) + Fraction(5, 11) * root(3)
            with precision(mpmath.iv, bits):
                interval = enclose(number, mpmath.iv)
            with precision(mpmath.iv, 200):
                true = mpmath.iv.mpf(above) / 7 * mpmath.iv.sqrt(2) + mpmath.iv.mpf(5) / 11 * mpmath.iv.sqrt(3)
                assert interval.a <= true.b >= true.a <= interval.b, (bits, above)
