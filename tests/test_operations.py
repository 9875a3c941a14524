"""The operations that take the softmax apart: every reading says the same of each, and NumPy agrees."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy

from headwork.errors import HeadworkError, ShapeError
from headwork.formulas import given
from headwork.graph import Step, in_order
from headwork.numbers.digits import to_float
from headwork.numbers.functions import power_of_e, quotient
from headwork.numbers.surd import root
from headwork.ops import (
    Add,
    Constant,
    DivideBy,
    Exp,
    Maxima,
    Multiply,
    Op,
    Rows,
    Stack,
    Subtract,
    Sums,
)
from headwork.readings.counts import FLOPS, Count, counts
from headwork.readings.entries import origin
from headwork.readings.exact import HIDDEN, Hidden, Matrix, exact
from headwork.readings.floats import floats
from headwork.readings.moments import moments
from headwork.readings.shapes import shapes
from headwork.readings.symbols import symbols
from headwork.readings.values import values

A: Matrix = ((Fraction(1), Fraction(-2), root(2)), (Fraction(1, 3), Fraction(0), Fraction(5, 2)))
B: Matrix = ((Fraction(3), Fraction(1, 2), Fraction(-1)), (Fraction(2), Fraction(-3), Fraction(4)))
COLUMN: Matrix = ((Fraction(2),), (Fraction(-4),))
ROW: Matrix = ((Fraction(2), Fraction(-4), Fraction(1, 2)),)
ONE: Matrix = ((Fraction(1, 10),),)
Case = tuple[Op, tuple[Matrix, ...], Callable[..., Any]]
CASES: dict[str, Case] = {
    "product": (Multiply(), (A, B), lambda a, b: a * b),
    "product with a column": (Multiply(), (A, COLUMN), lambda a, b: a * b),
    "product with a row": (Multiply(), (A, ROW), lambda a, b: a * b),
    "product with a number": (Multiply(), (A, ONE), lambda a, b: a * b),
    "difference": (Subtract(), (A, B), lambda a, b: a - b),
    "difference from a column": (Subtract(), (A, COLUMN), lambda a, b: a - b),
    "quotient": (DivideBy(), (A, B), lambda a, b: a / b),
    "quotient by a column": (DivideBy(), (A, COLUMN), lambda a, b: a / b),
    "exponential": (Exp(), (A,), np.exp),
    "row sums": (Sums(), (A,), lambda a: a.sum(1, keepdims=True)),
    "column sums": (Sums(-2), (A,), lambda a: a.sum(0, keepdims=True)),
    "maxima": (Maxima(), (A,), lambda a: a.max(1, keepdims=True)),
    "maxima of two": (Maxima(), (COLUMN, A), lambda c, a: np.maximum(a.max(1, keepdims=True), c)),
    "rows": (Rows(1, 2), (A,), lambda a: a[1:2]),
    "stack": (Stack(), (A, ROW, B), lambda *parts: np.concatenate(parts)),
    "constant": (Constant((2, 3), Fraction(7, 2)), (), lambda: np.full((2, 3), 3.5)),
    "three terms": (Add(), (A, B, ROW), lambda a, b, c: a + b + c),
}


def as_array(matrix: Matrix) -> Any:
    return np.array([[-np.inf if isinstance(x, Hidden) else to_float(x) for x in row] for row in matrix])


def made(op: Op, inputs: tuple[Matrix, ...]) -> tuple[Step, dict[Step, Matrix]]:
    sources = [given(f"M_{i}", (len(m), len(m[0]))) for i, m in enumerate(inputs)]
    return Step(op, tuple(sources), "result"), dict(zip(sources, inputs, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_every_reading_agrees_with_numpy(name: str) -> None:
    op, inputs, by_numpy = CASES[name]
    step, handed = made(op, inputs)
    near = {s: as_array(m) for s, m in handed.items()}
    expected = by_numpy(*near.values())
    closed = exact(step, handed)[step]
    assert shapes(step)[step] == expected.shape
    np.testing.assert_allclose(as_array(closed), expected, rtol=1e-14)
    np.testing.assert_allclose(values(step, near)[step], expected, rtol=1e-14)
    np.testing.assert_allclose(np.array(floats(step, near)[step]), expected, rtol=1e-14)
    named = symbols(step)
    numbers = {
        symbol: sympy.Float(to_float(x), 17)  # type: ignore[arg-type]  # nothing is hidden here
        for s, m in handed.items()
        for symbols_row, row in zip(named[s], m, strict=True)
        for symbol, x in zip(symbols_row, row, strict=True)
    }
    found = [[float(e.subs(numbers)) if numbers else float(e) for e in row] for row in named[step]]
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_every_entry_is_told_from_where_it_came(name: str) -> None:
    op, inputs, _ = CASES[name]
    step, handed = made(op, inputs)
    meaning = exact(step, handed)
    for i, row in enumerate(meaning[step]):
        for j, entry in enumerate(row):
            came = origin(step, i, j, meaning)
            assert came.result == entry
            read = [meaning[step.inputs[n]][r][c] for n, r, c in came.places]
            assert [x for term in came.terms for x in term] == read
    assert isinstance(op, Constant) == (came.places == ())


@pytest.mark.parametrize(
    ("name", "by_hand", "flops"),
    [
        ("product with a column", Count(6, bytes=14), Count(6, bytes=14)),
        ("difference", Count(additions=6, bytes=18), Count(additions=6, bytes=18)),
        ("quotient by a column", Count(divisions=6, bytes=14), Count(divisions=6, bytes=14)),
        ("exponential", Count(exponentials=6, bytes=12), Count(exponentials=6, bytes=12)),
        ("row sums", Count(additions=4, bytes=8), Count(additions=6, bytes=8)),
        ("column sums", Count(additions=3, bytes=9), Count(additions=6, bytes=9)),
        ("maxima of two", Count(bytes=10), Count(bytes=10)),
        ("rows", Count(), Count()),
        ("stack", Count(bytes=30), Count(bytes=30)),
        ("three terms", Count(additions=12, bytes=21), Count(additions=12, bytes=21)),
    ],
)
def test_what_each_costs(name: str, by_hand: Count, flops: Count) -> None:
    step, _ = made(*CASES[name][:2])
    assert counts(step, item_bytes=1)[step] == by_hand
    assert counts(step, FLOPS, item_bytes=1)[step] == flops


def test_what_is_hidden_has_no_weight() -> None:
    """−∞ less a maximum is −∞ whatever the maximum, e to it is 0, and 0/0 is 0: as the softmax has it."""
    scores = given("scores", (2, 2))
    top = Step(Maxima(), (scores,), "top")
    shifted = Step(Subtract(), (scores, top), "shifted")
    powers = Step(Exp(), (shifted,), "powers")
    weights = Step(DivideBy(), (powers, Step(Sums(), (powers,), "sums")), "weights")
    matrix: Matrix = ((HIDDEN, Fraction(3)), (HIDDEN, HIDDEN))
    expected = [[0, 1], [0, 0]]
    assert [[*row] for row in exact(weights, {scores: matrix})[weights]] == expected
    near = {scores: as_array(matrix)}
    np.testing.assert_array_equal(values(weights, near)[weights], expected)
    np.testing.assert_array_equal(np.array(floats(weights, near)[weights]), expected)


def test_on_the_way_back_what_is_divided_by_nothing_is_nothing() -> None:
    """What passes through the weights of a row in which nothing may be read; elsewhere it is an error."""
    passed: Matrix = ((Fraction(3), Fraction(1)), (Fraction(2), Fraction(0)))
    sums: Matrix = ((Fraction(2),), (Fraction(0),))
    step, handed = made(DivideBy(back=True), (passed, sums))
    expected = [[1.5, 0.5], [0, 0]]
    assert [[*row] for row in exact(step, handed)[step]] == expected
    near = {s: as_array(m) for s, m in handed.items()}
    np.testing.assert_array_equal(values(step, near)[step], expected)
    np.testing.assert_array_equal(np.array(floats(step, near)[step]), expected)
    plain, handed = made(DivideBy(), (passed, sums))
    with pytest.raises(HeadworkError, match=r"step result: .* holds a 0, and nothing but 0 can be divided by it$"):
        exact(plain, handed)


@pytest.mark.parametrize(
    ("op", "shapes_given", "message"),
    [
        (Multiply(), [(2, 3), (2, 2)], "M_0 is 2×3 but M_1 is 2×2, and they meet entry by entry. Make M_1 2×3, or"),
        (DivideBy(), [(1, 3), (2, 3)], "entry by entry"),
        (Maxima(), [(2, 1), (3, 3)], "All need the same number of rows"),
        (Stack(), [(2, 2), (2, 3)], "All need the same number of columns"),
        (Rows(1, 4), [(3, 3)], "rows 2 to 4 are asked for, but M_0 has 3. Ask for rows from 1 to 3."),
        (Add(), [(2, 2), (2, 2), (3, 2)], "M_0 is 2×2 but M_2 is 3×2"),
    ],
)
def test_what_does_not_fit_is_said(op: Op, shapes_given: list[tuple[int, int]], message: str) -> None:
    step = Step(op, tuple(given(f"M_{i}", shape) for i, shape in enumerate(shapes_given)), "result")
    with pytest.raises(ShapeError) as error:
        shapes(step)
    assert message in str(error.value)


def test_quotients_of_exponentials_are_decided() -> None:
    one, two = power_of_e(Fraction(1)), power_of_e(Fraction(2))
    assert quotient(one * 3, one) == 3
    assert quotient(one + two, two * 2) == quotient(power_of_e(Fraction(-1)) + 1, Fraction(2))
    assert quotient(one, quotient(one, one + two)) == one + two
    assert quotient(one, two) + quotient(two, one) - two * power_of_e(Fraction(-1)) == power_of_e(Fraction(-1))
    assert quotient(-one, -two) == power_of_e(Fraction(-1))
    assert quotient(Fraction(0), Fraction(0)) == 0
    with pytest.raises(HeadworkError, match="divided by 0"):
        quotient(one, Fraction(0))
    assert str(quotient(one, one - 1)) == "≈ 1.58197670687"  # a divisor with different signs: certain digits


def test_a_plain_number_is_seen_among_rising_exponentials() -> None:
    """e³/(1 + e⁻¹) + e²/(1 + e⁻¹) is e³; no limit at infinity tells it."""
    below = power_of_e(Fraction(-1)) + 1
    rising = quotient(power_of_e(Fraction(3)) * 2 + 7, below)
    falling = quotient(power_of_e(Fraction(2)) * 2 + power_of_e(Fraction(-1)) * 7, below)
    assert rising + falling - power_of_e(Fraction(3)) * 2 == 7


def test_moments_are_exact_or_say_why_not() -> None:
    left, right = given("A", (2, 3)), given("B", (2, 3))
    product = Step(Multiply(), (left, right), "product")
    table = moments(product, 1, 4)[product]
    assert (table.mean, table.variance) == (1, 24)
    sums = Step(Sums(), (left,), "sums")
    assert (moments(sums, 1, 4)[sums].mean, moments(sums, 1, 4)[sums].variance) == (3, 12)
    difference = Step(Subtract(), (left, right), "difference")
    assert (moments(difference, 1, 4)[difference].mean, moments(difference, 1, 4)[difference].variance) == (0, 8)
    for op, reason in ((Maxima(), "a maximum"), (Exp(), "an exponential")):
        step = Step(op, (left,), "step")
        assert reason in str(moments(step, 0, 1)[step].why_not)
    square = Step(Multiply(), (left, left), "square")
    assert "one input" in str(moments(square, 0, 1)[square].why_not)
    total = Step(Sums(), (product,), "total")
    assert "correlated" in str(moments(total, 0, 1)[total].why_not)


def test_a_step_counts_its_inputs() -> None:
    with pytest.raises(HeadworkError, match="Multiply takes 2"):
        Step(Multiply(), (given("A", (1, 1)),), "product")
    assert len(list(in_order(Step(Constant((1, 1), Fraction(1)), (), "one")))) == 1
