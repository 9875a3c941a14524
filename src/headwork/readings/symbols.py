"""Symbols: a step means a matrix of SymPy expressions in named entries. Equal expressions are a proof."""

import dataclasses
import operator
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

import sympy

from headwork import ops
from headwork.errors import HeadworkError
from headwork.graph import Last, Rules, Step, in_order, read
from headwork.notation import PLAIN, Notation
from headwork.readings.algebra import as_sympy

SymbolMatrix = tuple[tuple[Any, ...], ...]  # of sympy.Expr, which has no types


def symbols(
    last: Last, handed: Mapping[Step, SymbolMatrix] | None = None, notation: Notation = PLAIN
) -> dict[Step, SymbolMatrix]:
    """Every step in named entries; what is given has entries called after it: x_1,1 and so on."""
    givens = {s: named(s, s.op.shape, notation) for s in in_order(last) if isinstance(s.op, ops.Given)}
    return read(last, SYMBOLS, {**givens, **(handed or {})})


def named(step: Step, shape: ops.Shape, notation: Notation = PLAIN) -> SymbolMatrix:
    """A matrix of fresh symbols, called after the step in small letters: W_Q,1 has w_Q,1,1,1 …"""
    if not all(isinstance(size, int) for size in shape):
        raise HeadworkError(f"{PLAIN.of(step)} needs sizes in numbers to have entries; give tokens, d_model …")
    rows, columns = shape[-2:]
    name = notation.of(step)
    small = dataclasses.replace(name, base=name.base[0].lower() + name.base[1:])
    first = notation.first_index
    return tuple(
        tuple(sympy.Symbol(str(small.with_subscripts(i + first, j + first)), real=True) for j in range(int(columns)))
        for i in range(int(rows))
    )


def _given(step: Step) -> SymbolMatrix:
    assert isinstance(step.op, ops.Given)
    return named(step, step.op.shape)


def _matmul(step: Step, left: SymbolMatrix, right: SymbolMatrix) -> SymbolMatrix:
    columns = [*zip(*right, strict=True)]
    return tuple(
        tuple(sympy.Add(*(a * b for a, b in zip(row, column, strict=True))) for column in columns) for row in left
    )


def _divide(step: Step, scores: SymbolMatrix) -> SymbolMatrix:
    assert isinstance(step.op, ops.Divide)
    by = step.op.by
    number = sympy.sqrt(by.of) if isinstance(by, ops.Root) else as_sympy(by)
    return tuple(tuple(s / number for s in row) for row in scores)


def _by_entry(rule: Callable[[Any, Any], Any], left: SymbolMatrix, right: SymbolMatrix) -> SymbolMatrix:
    """On the right a single row meets every row, and a column every entry of its row."""
    rows = right * len(left) if len(right) == 1 else right
    rows = tuple(row * len(left[0]) for row in rows) if len(right[0]) == 1 else rows
    return tuple(
        tuple(rule(a, b) for a, b in zip(one, other, strict=True)) for one, other in zip(left, rows, strict=True)
    )


def _sums(step: Step, matrix: SymbolMatrix) -> SymbolMatrix:
    assert isinstance(step.op, ops.Sums)
    if step.op.axis == -1:
        return tuple((sympy.Add(*row),) for row in matrix)
    return (tuple(sympy.Add(*column) for column in zip(*matrix, strict=True)),)


def _constant(step: Step) -> SymbolMatrix:
    assert isinstance(step.op, ops.Constant)
    rows, columns = map(int, step.op.shape)
    return ((as_sympy(step.op.value),) * columns,) * rows


def _rows(step: Step, matrix: SymbolMatrix) -> SymbolMatrix:
    assert isinstance(step.op, ops.Rows)
    return matrix[step.op.start : step.op.stop]


def _softmax(step: Step, scores: SymbolMatrix) -> SymbolMatrix:
    assert isinstance(step.op, ops.Softmax)
    powers = tuple(tuple(sympy.exp(s) for s in row) for row in scores)
    if step.op.axis == -2:
        return tuple(zip(*map(_shares, zip(*powers, strict=True)), strict=True))
    if step.op.axis is None:
        total = sympy.Add(*(p for row in powers for p in row))
        return tuple(tuple(p / total for p in row) for row in powers)
    return tuple(_shares(row) for row in powers)


def _shares(row: tuple[Any, ...]) -> tuple[Any, ...]:
    total = sympy.Add(*row)
    return tuple(p / total for p in row)


def _split(step: Step, wide: SymbolMatrix) -> SymbolMatrix:
    assert isinstance(step.op, ops.Split)
    assert isinstance(step.op.of, int)
    width = len(wide[0]) // step.op.of
    return tuple(row[step.op.part * width : (step.op.part + 1) * width] for row in wide)


SYMBOLS: Rules[SymbolMatrix] = {
    ops.Given: _given,
    ops.MatMul: _matmul,
    ops.Transpose: lambda step, matrix: tuple(zip(*matrix, strict=True)),
    ops.Divide: _divide,
    ops.Add: lambda step, *terms: reduce(partial(_by_entry, operator.add), terms),
    ops.Softmax: _softmax,
    ops.Split: _split,
    ops.Join: lambda step, *parts: tuple(sum(rows, ()) for rows in zip(*parts, strict=True)),
    ops.Constant: _constant,
    ops.Multiply: lambda step, left, right: _by_entry(operator.mul, left, right),
    ops.Subtract: lambda step, left, right: _by_entry(operator.sub, left, right),
    ops.DivideBy: lambda step, left, right: _by_entry(operator.truediv, left, right),
    ops.Exp: lambda step, matrix: tuple(tuple(sympy.exp(s) for s in row) for row in matrix),
    ops.Sums: _sums,
    ops.Maxima: lambda step, *parts: tuple((sympy.Max(*sum(rows, ())),) for rows in zip(*parts, strict=True)),
    ops.Rows: _rows,
    ops.Stack: lambda step, *parts: sum(parts, ()),
}
