"""Entries: how one entry of a step came about, with its numbers in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headwork.graph import Step
from headwork.ops import Add, Divide, Given, Join, MatMul, Op, Softmax, Split, Transpose
from headwork.readings.exact import Entry, Matrix, divisor

Place = tuple[Step, int, int]  # a step, a row, a column


@dataclass(frozen=True)
class Origin:
    """How an entry came about.

    `terms` are the numbers that went in: factor pairs of a product, the two terms of a sum, the number divided
    and its divisor, or the exponents of a softmax. `places` are the entries they were read from, in reading order.
    """

    step: Step
    row: int
    column: int
    terms: tuple[tuple[Entry, ...], ...]
    places: tuple[Place, ...]
    result: Entry


def origin(step: Step, row: int, column: int, meaning: Mapping[Step, Matrix]) -> Origin:
    """Where entry (row, column), counted from 0, came from. A step that was handed over came from nowhere."""
    worked_out = all(s in meaning for s in step.inputs)
    terms, places = ENTRIES[type(step.op)](step, row, column, meaning) if worked_out else ((), ())
    return Origin(step, row, column, terms, places, meaning[step][row][column])


Found = tuple[tuple[tuple[Entry, ...], ...], tuple[Place, ...]]


def _given(step: Step, row: int, column: int, meaning: Mapping[Step, Matrix]) -> Found:
    return (), ()


def _matmul(step: Step, row: int, column: int, meaning: Mapping[Step, Matrix]) -> Found:
    left, right = step.inputs
    inner = range(len(meaning[right]))
    terms = tuple((meaning[left][row][k], meaning[right][k][column]) for k in inner)
    return terms, tuple(place for k in inner for place in ((left, row, k), (right, k, column)))


def _transpose(step: Step, row: int, column: int, meaning: Mapping[Step, Matrix]) -> Found:
    return _moved((step.inputs[0], column, row), meaning)


def _divide(step: Step, row: int, column: int, meaning: Mapping[Step, Matrix]) -> Found:
    assert isinstance(step.op, Divide)
    (scores,) = step.inputs
    return ((meaning[scores][row][column], divisor(step.op.by)),), ((scores, row, column),)


def _add(step: Step, row: int, column: int, meaning: Mapping[Step, Matrix]) -> Found:
    left, right = step.inputs
    places = ((left, row, column), (right, row % len(meaning[right]), column))
    return (tuple(meaning[s][i][j] for s, i, j in places),), places


def _softmax(step: Step, row: int, column: int, meaning: Mapping[Step, Matrix]) -> Found:
    """The entry's own exponent first, then all that were summed."""
    assert isinstance(step.op, Softmax)
    (scores,) = step.inputs
    rows = range(len(meaning[scores])) if step.op.axis in (-2, None) else [row]
    columns = range(len(meaning[scores][0])) if step.op.axis in (-1, None) else [column]
    places = tuple((scores, i, j) for i in rows for j in columns)
    summed = tuple(meaning[scores][i][j] for _, i, j in places)
    return ((meaning[scores][row][column],), summed), places


def _split(step: Step, row: int, column: int, meaning: Mapping[Step, Matrix]) -> Found:
    assert isinstance(step.op, Split)
    width = len(meaning[step][0])
    return _moved((step.inputs[0], row, step.op.part * width + column), meaning)


def _join(step: Step, row: int, column: int, meaning: Mapping[Step, Matrix]) -> Found:
    for part in step.inputs:
        width = len(meaning[part][0])
        if column < width:
            return _moved((part, row, column), meaning)
        column -= width
    raise AssertionError("a joined entry lies in one of the parts")


def _moved(place: Place, meaning: Mapping[Step, Matrix]) -> Found:
    step, row, column = place
    return ((meaning[step][row][column],),), (place,)


ENTRIES: Mapping[type[Op], Callable[[Step, int, int, Mapping[Step, Matrix]], Found]] = {
    Given: _given,
    MatMul: _matmul,
    Transpose: _transpose,
    Divide: _divide,
    Add: _add,
    Softmax: _softmax,
    Split: _split,
    Join: _join,
}
