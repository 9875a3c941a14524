"""Exact, values, shapes and counts against routes that share no code with them."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from headwork import formulas
from headwork.build import Sizes, build
from headwork.errors import HeadworkError
from headwork.graph import Step, in_order
from headwork.numbers.digits import to_float
from headwork.numbers.parse import parse_number
from headwork.ops import Given, Softmax, Transpose
from headwork.readings.counts import FLOPS, Count, counts, total
from headwork.readings.entries import origin
from headwork.readings.exact import HIDDEN, Hidden, Matrix, exact
from headwork.readings.floats import floats, to_floats
from headwork.readings.shapes import shapes
from headwork.readings.values import values
from headwork.sheets.ready import Ready
from tests.strategies import Drawn, problems


def as_floats(matrix: Matrix) -> Any:
    return np.array([[-np.inf if isinstance(x, Hidden) else to_float(x) for x in row] for row in matrix])


def written(value: Any) -> Any:
    """A sheet's own entry as a float, read without the sheet's reader of matrices."""
    if isinstance(value, bool):
        return 0.0 if value else -np.inf
    return -np.inf if value == "-inf" else to_float(parse_number(value))


def array(value: Any) -> Any:
    return np.array([[written(x) for x in row] for row in value])


def by_einsum(table: dict[str, Any]) -> Any:
    """The whole layer in float64, written again from the textbook with one einsum a line."""
    given = table["given"]
    X = array(given["X"])
    C = array(given["context"]) if "context" in given else X
    heads, kv = table.get("heads", 1), table.get("kv_heads", 1)

    def project(letter: str, source: Any, number: int) -> Any:
        W = given[f"W_{letter}"]
        if table["formula"] == "multi_head":
            W = np.stack([array(w) for w in W])
        else:
            W = np.stack(np.split(array(W), number, axis=1))
        out = np.einsum("td,hdk->htk", source, W)
        if f"b_{letter}" in given:
            b = given[f"b_{letter}"]
            flat = array(b) if table["formula"] == "multi_head" else array([b]).reshape(number, -1)
            out = out + flat[:, None, :]
        return out

    Q, K, V = project("Q", X, heads), project("K", C, kv), project("V", C, kv)
    K, V = np.repeat(K, heads // kv, 0), np.repeat(V, heads // kv, 0)
    scores = np.einsum("hik,hjk->hij", Q, K)
    scale = {"none": 1.0, "sqrt(d_k)": Q.shape[-1] ** 0.5, 2: 2.0, "sqrt(3)": 3**0.5}[table["scale"]]
    scores = scores / scale
    mask = table["mask"]
    if mask == "causal":
        scores = np.where(np.tri(len(X), dtype=bool), scores, -np.inf)
    elif mask != "none":
        scores = scores + array(mask)
    top = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isinf(top), 0, top))
    sums = powers.sum(-1, keepdims=True)
    weights = powers / np.where(sums == 0, 1, sums)
    joined = np.concatenate(list(np.einsum("hij,hjv->hiv", weights, V)), axis=-1)
    output = np.einsum("tj,jo->to", joined, array(given["W_O"]))
    return output + array([given["b_O"]]) if "b_O" in given else output


@given(problems())
@settings(max_examples=120)
def test_exact_values_and_an_independent_einsum_agree(drawn: Drawn) -> None:
    ready = Ready(drawn.problem)
    closed = exact(ready.last, ready.handed)
    floats = values(ready.last, {step: as_floats(matrix) for step, matrix in ready.handed.items()})
    for step, matrix in closed.items():
        np.testing.assert_allclose(floats[step], as_floats(matrix), rtol=1e-9, atol=1e-9, err_msg=step.role)
    np.testing.assert_allclose(floats[ready.last], by_einsum(drawn.table), rtol=1e-9, atol=1e-9)


@given(problems())
@settings(max_examples=60)
def test_floats_without_numpy_are_those_with_it(drawn: Drawn) -> None:
    ready = Ready(drawn.problem)
    handed = {step: to_floats(matrix) for step, matrix in ready.handed.items()}
    arrays = values(ready.last, handed)
    for step, rows in floats(ready.last, handed).items():
        np.testing.assert_allclose(np.array(rows), arrays[step], rtol=1e-12, atol=1e-12, err_msg=step.role)


@pytest.mark.parametrize("axis", [-1, -2, None])
@pytest.mark.parametrize(
    "scores",
    [
        [[-inf, -inf], [1.0, -inf]],
        [[inf, 1.0], [800.0, inf]],
        [[1e308, -1e308], [0.0, 1e-308]],
        [[nan, 1.0], [2.0, 3.0]],
        [[1000.0, 999.0], [-1000.0, 2.0]],
    ],
)
def test_scores_that_float64_can_hardly_hold_are_shared_out_alike(scores: Any, axis: int | None) -> None:
    given_scores = formulas.given("scores", (2, 2))
    weights = Step(Softmax(axis), (given_scores,), "weights")
    with np.errstate(all="ignore"):
        expected = values(weights, {given_scores: scores})[weights]
    np.testing.assert_allclose(np.array(floats(weights, {given_scores: scores})[weights]), expected, rtol=1e-12)


@given(problems())
@settings(max_examples=60)
def test_shapes_are_those_of_the_arrays(drawn: Drawn) -> None:
    ready = Ready(drawn.problem)
    floats = values(ready.last, {step: as_floats(matrix) for step, matrix in ready.handed.items()})
    assert {step: array.shape for step, array in floats.items()} == shapes(ready.last)


class Tally(float):
    """A float that counts what is done with it."""

    done: Count

    def __mul__(self, other: float) -> Tally:
        Tally.done += Count(multiplications=1)
        return Tally(float(self) * float(other))

    def __add__(self, other: float) -> Tally:
        Tally.done += Count(additions=1)
        return Tally(float(self) + float(other))

    def __truediv__(self, other: float) -> Tally:
        Tally.done += Count(divisions=1)
        return Tally(float(self) / float(other))

    def exp(self) -> Tally:
        Tally.done += Count(exponentials=1)
        return Tally(np.exp(float(self)))


def summed(terms: list[Tally]) -> Tally:
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def worked_by_loops(op: Any, inputs: list[Any]) -> Any:
    """One step in plain loops, the way a person would do it."""
    name = type(op).__name__
    if name == "MatMul":
        left, right = inputs
        return [
            [summed([a * row[k] for a, row in zip(line, right, strict=True)]) for k in range(len(right[0]))]
            for line in left
        ]
    if name == "Add":
        left, right = inputs
        return [[a + b for a, b in zip(line, right[i % len(right)], strict=True)] for i, line in enumerate(left)]
    if name == "Divide":
        return [[a / 2.0 for a in line] for line in inputs[0]]
    if name == "Softmax":
        powers = [[a.exp() for a in line] for line in inputs[0]]
        return [[p / s for p in line] for line, s in zip(powers, [summed(line) for line in powers], strict=True)]
    return None


@given(problems())
@settings(max_examples=60)
def test_counts_are_what_loops_do(drawn: Drawn) -> None:
    """Every step done in plain Python on numbers that count their own operations."""
    ready = Ready(drawn.problem)
    shape = shapes(ready.last)
    predicted = counts(ready.last, item_bytes=1)
    for step in in_order(ready.last):
        Tally.done = Count()
        inputs = [[[Tally(0.1)] * shape[s][1] for _ in range(shape[s][0])] for s in step.inputs]
        result = worked_by_loops(step.op, inputs)
        found = predicted[step]
        assert Tally.done == Count(found.multiplications, found.additions, found.divisions, found.exponentials)
        if result is not None:
            entries = sum(len(m) * len(m[0]) for m in (*inputs, result))
            assert found.bytes == entries


def test_counts_match_the_hand_count() -> None:
    """3 tokens, d_k = 4, d_v = 2: 3·3·4 for the scores, 3·3 divisions, 3·3·2 for the head output."""
    last = build("scaled_dot_product", Sizes(3, 3, 1, 1, 1, 1, 4, 2, 1))
    each = {step.role: count for step, count in counts(last).items()}
    assert [each["scores"].multiplications, each["scaled"].divisions, each["head_output"].multiplications] == [
        36,
        9,
        18,
    ]
    assert total(last, counts(last)).operations() == 36 + 27 + 9 + (9 + 6) + 18 + 12


def test_flops_count_two_for_every_multiply_and_add() -> None:
    last = build("dot_product", Sizes(3, 3, 1, 1, 1, 1, 4, 2, 1))
    each = {step.role: count for step, count in counts(last, FLOPS).items()}
    assert each["scores"].operations(FLOPS) == 2 * 3 * 3 * 4
    assert each["weights"].operations(FLOPS) == 9 + 9 + 9


@pytest.mark.parametrize(("axis", "sums"), [(-1, 1), (-2, 2), (None, 3)])
def test_softmax_runs_along_any_axis(axis: int | None, sums: int) -> None:
    scores = formulas.given("scores", (2, 3))
    weights = Step(Softmax(axis), (scores,), "weights")
    matrix: Matrix = ((Fraction(1), Fraction(2), Fraction(0)), (Fraction(3), HIDDEN, Fraction(1)))
    closed = as_floats(exact(weights, {scores: matrix})[weights])
    floats = values(weights, {scores: as_floats(matrix)})[weights]
    np.testing.assert_allclose(closed, floats, rtol=1e-12)
    along = {-1: (1,), -2: (0,), None: (0, 1)}[axis]
    np.testing.assert_allclose(floats.sum(axis=along), 1)


@given(problems())
@settings(max_examples=40)
def test_every_entry_is_told_from_where_it_came(drawn: Drawn) -> None:
    """The numbers that an entry names are the ones at the places it names, and lead to its value."""
    ready = Ready(drawn.problem)
    meaning = exact(ready.last, ready.handed)
    for step, matrix in meaning.items():
        for i, row in enumerate(matrix):
            for j in range(len(row)):
                came = origin(step, i, j, meaning)
                assert came.result is row[j]
                read_off = [meaning[step.inputs[number]][r][c] for number, r, c in came.places]
                named = [x for term in came.terms for x in term]
                if isinstance(step.op, Given):
                    assert not came.terms
                elif isinstance(step.op, Softmax):
                    assert named[1:] == read_off
                elif isinstance(step.op, Transpose):
                    assert named == read_off == [row[j]]
                elif type(step.op).__name__ == "Divide":
                    assert named[:1] == read_off
                else:
                    assert named == read_off
                if type(step.op).__name__ == "MatMul":
                    total_value: Any = Fraction(0)
                    for pair in came.terms:
                        a, b = (x for x in pair if not isinstance(x, Hidden))
                        total_value = total_value + a * b
                    assert total_value == row[j]


def test_a_missing_matrix_is_named() -> None:
    last = build("dot_product", Sizes(2, 2, 1, 1, 1, 1, 2, 2, 1))
    with pytest.raises(HeadworkError, match="no matrix was given for Q"):
        exact(last, {})
    with pytest.raises(HeadworkError, match="no matrix was given for Q"):
        values(last, {})
