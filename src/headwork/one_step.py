"""One step at a time: an operation on exact matrices, worked and shown as a sheet would show it.

X = matrix("X", [[1, 2], [3, 4]])
S = step("S", MatMul(), X, X)
"""

from __future__ import annotations

from collections.abc import Sequence

from headwork.errors import HeadworkError
from headwork.graph import Head, Step
from headwork.notation import Name
from headwork.numbers.parse import parse_number
from headwork.ops import Given, Op
from headwork.readings.exact import EXACT, HIDDEN, Entry, Matrix
from headwork.readings.shapes import shapes
from headwork.working import Equation, Operand

Rows = Sequence[Sequence[int | str]]


def matrix(name: str, rows: Rows) -> Equation:
    """A matrix that is given; numbers are whole or text such as "0.1", "1/3", "sqrt(2)" and, in a mask, "-inf"."""
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise HeadworkError(f"{name} needs rows of equal length, written [[1, 2], [3, 4]]")
    value = tuple(tuple(_entry(x) for x in row) for row in rows)
    return Equation(_name(name), "given", None, None, (), (len(value), len(value[0])), value)


def step(name: str, op: Op, *inputs: Equation, role: str = "step", head: Head = None) -> Equation:
    """An operation on what is given or was worked out before."""
    values: list[Matrix] = []
    for source in inputs:
        if source.value is None:
            raise HeadworkError(f"{source.name} has a shape but no value; work it out first")
        values.append(source.value)
    given = tuple(Step(Given((len(v), len(v[0]))), (), str(s.name)) for v, s in zip(values, inputs, strict=True))
    made = Step(op, given, role, head)
    shape = shapes(made)[made]
    value = EXACT[type(op)](made, *values)
    operands = tuple(Operand(source.name, v) for source, v in zip(inputs, values, strict=True))
    return Equation(_name(name), role, head, op, operands, shape, value)


def _name(text: str) -> Name:
    upright = text.removesuffix("ᵀ")
    base, _, below = upright.partition("_")
    return Name(base, tuple(below.split(",")) if below else (), upright != text)


def _entry(value: int | str) -> Entry:
    return HIDDEN if value == "-inf" else parse_number(value)
