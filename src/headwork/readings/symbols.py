"""Symbols: a step means a matrix of SymPy expressions in named entries. Equal expressions are a proof."""

import dataclasses
import operator
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial, reduce
from typing import Any

import sympy

from headwork import ops
from headwork.errors import HeadworkError
from headwork.graph import Last, Rules, Step, StepOf, in_order, read
from headwork.notation import PLAIN, Name, Notation
from headwork.readings.algebra import as_sympy
from headwork.readings.moving import MOVING, by_entry, by_line, filled, maxima, sums

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
    return _entries(notation.of(step), int(rows), int(columns), notation.first_index)


@lru_cache(maxsize=256)
def _entries(name: Name, rows: int, columns: int, first: int) -> SymbolMatrix:
    """A proof asks for the same names again at every step, and SymPy's symbols of one name are one."""
    name = small(name)
    return tuple(
        tuple(sympy.Symbol(str(name.with_subscripts(i + first, j + first)), real=True) for j in range(columns))
        for i in range(rows)
    )


def small(name: Name) -> Name:
    """What the entries of a matrix are called: w_Q,1 of W_Q,1."""
    return dataclasses.replace(name, base=name.base[0].lower() + name.base[1:])


def _matmul(step: Step, left: SymbolMatrix, right: SymbolMatrix) -> SymbolMatrix:
    columns = [*zip(*right, strict=True)]
    return tuple(
        tuple(sympy.Add(*(a * b for a, b in zip(row, column, strict=True))) for column in columns) for row in left
    )


def _divide(step: StepOf[ops.Divide], scores: SymbolMatrix) -> SymbolMatrix:
    by = step.op.by
    number = sympy.sqrt(by.of) if isinstance(by, ops.Root) else as_sympy(by)
    return tuple(tuple(s / number for s in row) for row in scores)


def _exp(step: Step, matrix: SymbolMatrix) -> SymbolMatrix:
    return tuple(tuple(map(sympy.exp, row)) for row in matrix)


def _shares(row: Sequence[Any]) -> tuple[Any, ...]:
    total = sympy.Add(*row)
    return tuple(p / total for p in row)


def _softcap(step: StepOf[ops.Softcap], scores: SymbolMatrix) -> SymbolMatrix:
    cap = as_sympy(step.op.by)
    return tuple(tuple(cap * sympy.tanh(s / cap) for s in row) for row in scores)


SYMBOLS: Rules[SymbolMatrix] = {
    **MOVING,
    ops.Given: lambda step: named(step, step.op.shape),
    ops.MatMul: _matmul,
    ops.Divide: _divide,
    ops.Add: lambda step, *terms: reduce(partial(by_entry, operator.add), terms),
    ops.Softmax: lambda step, scores: by_line(_shares, step.op.axis, _exp(step, scores)),
    ops.Constant: lambda step: filled(step.op.shape, as_sympy(step.op.value)),
    ops.Multiply: lambda step, left, right: by_entry(operator.mul, left, right),
    ops.Subtract: lambda step, left, right: by_entry(operator.sub, left, right),
    ops.DivideBy: lambda step, left, right: by_entry(operator.truediv, left, right),
    ops.Exp: _exp,
    ops.Sums: lambda step, matrix: sums(lambda line: sympy.Add(*line), step.op.axis, matrix),
    ops.Maxima: lambda step, *parts: maxima(lambda row: sympy.Max(*row), *parts),
    ops.Softcap: _softcap,
    ops.Means: lambda step, matrix: sums(lambda row: sympy.Add(*row) / len(row), -1, matrix),
    ops.SquareRoot: lambda step, matrix: tuple(tuple(map(sympy.sqrt, row)) for row in matrix),
    ops.Relu: lambda step, matrix: tuple(tuple(sympy.Max(x, 0) for x in row) for row in matrix),
}
