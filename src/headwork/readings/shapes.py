"""Shapes: a step means its lengths, in numbers or in symbols."""

from headwork.errors import ShapeError
from headwork.graph import Rules, Step, read
from headwork.inline import inline
from headwork.maths import Maths, Number, between
from headwork.notation import PLAIN
from headwork.ops import Add, Divide, Given, Join, MatMul, Shape, Size, Softmax, Split, Transpose, Untold


def shapes(last: Step) -> dict[Step, Shape]:
    """The shape of every step: (…batches, rows, columns).

    A mismatch is an error that names the step, both shapes and the remedy.
    """
    return read(last, SHAPES)


def shape_text(shape: Shape) -> str:
    """2×3, B×n×d/h."""
    return inline(shape_maths(shape))


def size_text(size: Size) -> str:
    return inline(size_maths(size))


def shape_maths(shape: Shape) -> Maths:
    return between(map(size_maths, shape), "×")


def size_maths(size: Size) -> Maths:
    if isinstance(size, int | Untold):
        return Number(str(size))
    from headwork.readings.algebra import algebra  # symbols only: SymPy is loaded already

    return algebra(size)


def _given(step: Step) -> Shape:
    assert isinstance(step.op, Given)
    if len(step.op.shape) < 2:
        raise ShapeError(f"{PLAIN.of(step)} needs rows and columns, but its shape is {step.op.shape}")
    return step.op.shape


def _matmul(step: Step, left: Shape, right: Shape) -> Shape:
    if left[-1] != right[-2]:
        a, b = (PLAIN.of(s) for s in step.inputs)
        raise ShapeError(
            f"step {PLAIN.of(step)} = {a}·{b} cannot be multiplied: {a} is {shape_text(left)} "
            f"but {b} is {shape_text(right)}. {a} needs {size_text(right[-2])} columns."
        )
    return (*_batches(step, left, right), left[-2], right[-1])


def _transpose(step: Step, shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2])


def _same(step: Step, shape: Shape) -> Shape:
    return shape


def _add(step: Step, left: Shape, right: Shape) -> Shape:
    rows_fit = right[-2] in (1, left[-2])
    if not rows_fit or left[-1] != right[-1]:
        a, b = (PLAIN.of(s) for s in step.inputs)
        raise ShapeError(
            f"step {PLAIN.of(step)} = {a} + {b} cannot be added: {a} is {shape_text(left)} "
            f"but {b} is {shape_text(right)}. Make {b} {shape_text(left[-2:])}."
        )
    return (*_batches(step, left, right), *left[-2:])


def _split(step: Step, shape: Shape) -> Shape:
    assert isinstance(step.op, Split)
    columns, of = shape[-1], step.op.of
    if isinstance(columns, int) and isinstance(of, int) and columns % of:
        raise ShapeError(
            f"step {PLAIN.of(step)}: {columns} columns of {PLAIN.of(step.inputs[0])} cannot be split "
            f"into {of} equal heads. The number of columns must be a multiple of {of}."
        )
    part = columns // of if isinstance(columns, int) and isinstance(of, int) else columns / of
    return (*shape[:-1], part)


def _join(step: Step, *parts: Shape) -> Shape:
    assert isinstance(step.op, Join)
    if any(part[:-1] != parts[0][:-1] for part in parts):
        found = ", ".join(shape_text(part) for part in parts)
        raise ShapeError(
            f"step {PLAIN.of(step)} cannot be joined: its parts are {found}. All need the same number of rows."
        )
    total: Size = sum(part[-1] for part in parts)
    return (*parts[0][:-1], total if step.op.of is None else total * step.op.of)


def _batches(step: Step, left: Shape, right: Shape) -> Shape:
    """Two batches must agree, or one side has none."""
    a, b = left[:-2], right[:-2]
    if a and b and a != b:
        raise ShapeError(
            f"step {PLAIN.of(step)}: the batches {shape_text(a)} and {shape_text(b)} differ. Give both the same."
        )
    return a or b


SHAPES: Rules[Shape] = {
    Given: _given,
    MatMul: _matmul,
    Transpose: _transpose,
    Divide: _same,
    Add: _add,
    Softmax: _same,
    Split: _split,
    Join: _join,
}
