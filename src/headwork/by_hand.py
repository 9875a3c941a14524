"""By hand, one step at a time: an operation on exact matrices, worked and shown as a sheet would show it.

X = matrix("X", [[1, 2], [3, 4]])
S = step("S", MatMul(), X, X)
"""

from collections.abc import Sequence

from headwork.errors import HeadworkError
from headwork.graph import Step
from headwork.notation import Name
from headwork.numbers.parse import parse_number
from headwork.ops import Given, Op
from headwork.readings.exact import EXACT, HIDDEN, Entry, Matrix
from headwork.readings.shapes import SHAPES
from headwork.working import Equation, Operand, flip

Rows = Sequence[Sequence[int | str]]


def matrix(name: str, rows: Rows) -> Equation:
    """A matrix that is given; numbers are whole or text such as "0.1", "1/3", "sqrt(2)" and, in a mask, "-inf"."""
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise HeadworkError(f"{name} needs rows of equal length, written [[1, 2], [3, 4]]")
    value = tuple(tuple(_entry(x) for x in row) for row in rows)
    shape = (len(value), len(value[0]))
    return Equation(Step(Given(shape), (), name), Name.read(name), (), shape, value)


def step(name: str, op: Op, *inputs: Equation, upright: bool = False) -> Equation:
    """An operation on what is given or was worked out before; `upright` where rows stand as columns."""
    values: list[Matrix] = []
    for source in inputs:
        if source.value is None:
            raise HeadworkError(f"{source.name} has a shape but no value; work it out first")
        values.append(flip(source.value) if upright else source.value)
    made = Step(op, tuple(source.step for source in inputs), name)
    SHAPES[type(op)](made, *((len(value), len(value[0])) for value in values))  # an error where they do not fit
    found = EXACT[type(op)](made, *values)
    value = flip(found) if upright else found
    operands = tuple(Operand(source.name, source.value) for source in inputs)
    return Equation(made, Name.read(name), operands, (len(value), len(value[0])), value, upright=upright)


def _entry(value: int | str) -> Entry:
    return HIDDEN if value == "-inf" else parse_number(value)
