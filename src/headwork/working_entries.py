"""How an entry of a worked equation came about, read off the equation itself."""

from __future__ import annotations

from headwork.graph import Step
from headwork.ops import Given, MatMul
from headwork.readings.entries import Origin, origin
from headwork.readings.exact import Matrix
from headwork.working import Equation


def origin_in(equation: Equation, row: int, column: int) -> Origin:
    """The `entries` reading of an equation's own operation, on the operands as they stand in it.

    A row that is written as a column was worked as a row, so it is laid down, read and stood up again. A product
    needs no such care: as it stands, Wᵀ·x is a product.
    """
    values = [operand.value for operand in equation.operands]
    if equation.op is None or equation.value is None or any(value is None for value in values):
        given = Step(Given(equation.shape), (), equation.role)
        assert equation.value is not None
        return Origin(given, row, column, (), (), equation.value[row][column])
    lay = equation.upright and not isinstance(equation.op, MatMul)
    inputs = tuple(Step(Given(()), (), str(i)) for i in range(len(values)))
    step = Step(equation.op, inputs, equation.role)
    matrices: list[Matrix] = [value for value in (*values, equation.value) if value is not None]
    meaning = dict(zip((*inputs, step), map(_flip, matrices) if lay else matrices, strict=True))
    if not lay:
        return origin(step, row, column, meaning)
    found = origin(step, column, row, meaning)
    return Origin(step, row, column, found.terms, tuple((s, j, i) for s, i, j in found.places), found.result)


def _flip(matrix: Matrix) -> Matrix:
    return tuple(zip(*matrix, strict=True))
