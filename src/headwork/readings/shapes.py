"""Shapes: a step means its lengths, in numbers or in symbols."""

from headwork import ops
from headwork.errors import ShapeError
from headwork.graph import Last, Rules, Step, StepOf, read
from headwork.inline import inline
from headwork.maths import Maths, Number, between, factor
from headwork.notation import PLAIN


def shapes(last: Last) -> dict[Step, ops.Shape]:
    """The shape of every step: (…batches, rows, columns).

    A mismatch is an error that names the step, both shapes and the remedy.
    """
    return read(last, SHAPES)


def shape_text(shape: ops.Shape) -> str:
    """2×3, B×n×d/h."""
    return inline(shape_maths(shape))


def size_text(size: ops.Size) -> str:
    return inline(size_maths(size))


def shape_maths(shape: ops.Shape) -> Maths:
    return between((factor(size_maths(size)) for size in shape), "×")


def size_maths(size: ops.Size) -> Maths:
    if isinstance(size, int | ops.Untold):
        return Number(str(size))
    from headwork.readings.algebra import algebra  # symbols only: SymPy is loaded already

    return algebra(size)


def _given(step: StepOf[ops.Given | ops.Constant]) -> ops.Shape:
    if len(step.op.shape) < 2:
        raise ShapeError(f"{PLAIN.of(step)} needs rows and columns, but its shape is {step.op.shape}")
    return step.op.shape


def _matmul(step: Step, left: ops.Shape, right: ops.Shape) -> ops.Shape:
    if left[-1] != right[-2]:
        a, b = (PLAIN.of(s) for s in step.inputs)
        raise ShapeError(
            f"step {PLAIN.of(step)} = {a}·{b} cannot be multiplied: {a} is {shape_text(left)} "
            f"but {b} is {shape_text(right)}. {a} needs {size_text(right[-2])} columns."
        )
    return (*_batches(step, left, right), left[-2], right[-1])


def _same(step: Step, shape: ops.Shape) -> ops.Shape:
    return shape


def _add(step: Step, left: ops.Shape, *others: ops.Shape) -> ops.Shape:
    shape = left
    for source, right in zip(step.inputs[1:], others, strict=True):
        rows_fit = right[-2] in (1, left[-2])
        if not rows_fit or left[-1] != right[-1]:
            a, b = PLAIN.of(step.inputs[0]), PLAIN.of(source)
            raise ShapeError(
                f"step {PLAIN.of(step)} = {a} + {b} cannot be added: {a} is {shape_text(left)} "
                f"but {b} is {shape_text(right)}. Make {b} {shape_text(left[-2:])}."
            )
        shape = (*_batches(step, shape, right), *left[-2:])
    return shape


def _by_entry(step: Step, left: ops.Shape, right: ops.Shape) -> ops.Shape:
    """A column, a row or a single entry on the right is spread."""
    if any(one not in (1, other) for one, other in zip(right[-2:], left[-2:], strict=True)):
        a, b = (PLAIN.of(s) for s in step.inputs)
        raise ShapeError(
            f"step {PLAIN.of(step)}: {a} is {shape_text(left)} but {b} is {shape_text(right)}, and they meet entry by "
            f"entry. Make {b} {shape_text(left[-2:])}, or a column {shape_text((left[-2], 1))}."
        )
    return (*_batches(step, left, right), *left[-2:])


def _maxima(step: Step, first: ops.Shape, *others: ops.Shape) -> ops.Shape:
    if any(other[:-1] != first[:-1] for other in others):
        found = ", ".join(shape_text(shape) for shape in (first, *others))
        raise ShapeError(f"step {PLAIN.of(step)}: {found} have no rows in common. All need the same number of rows.")
    return (*first[:-1], 1)


def _rows(step: StepOf[ops.Rows], shape: ops.Shape) -> ops.Shape:
    start, stop, rows = step.op.start, step.op.stop, shape[-2]
    if not 0 <= start < stop or (isinstance(rows, int) and stop > rows):
        raise ShapeError(
            f"step {PLAIN.of(step)}: rows {start + 1} to {stop} are asked for, but {PLAIN.of(step.inputs[0])} has "
            f"{size_text(rows)}. Ask for rows from 1 to {size_text(rows)}."
        )
    return (*shape[:-2], stop - start, shape[-1])


def _stack(step: Step, *parts: ops.Shape) -> ops.Shape:
    if any((*part[:-2], part[-1]) != (*parts[0][:-2], parts[0][-1]) for part in parts):
        found = ", ".join(shape_text(part) for part in parts)
        raise ShapeError(
            f"step {PLAIN.of(step)} cannot be stacked: its parts are {found}. All need the same number of columns."
        )
    total: ops.Size = sum(part[-2] for part in parts)
    return (*parts[0][:-2], total, parts[0][-1])


def _rotate(step: Step, matrix: ops.Shape, *angles: ops.Shape) -> ops.Shape:
    for source, table in zip(step.inputs[1:], angles, strict=True):
        if table[-2] != matrix[-2] or 2 * table[-1] != matrix[-1]:
            a, b = PLAIN.of(step.inputs[0]), PLAIN.of(source)
            raise ShapeError(
                f"step {PLAIN.of(step)}: {a} is {shape_text(matrix)} but {b} is {shape_text(table)}. {b} needs a "
                "row for every row, and a column for every two columns, that are turned."
            )
    return matrix


def _split(step: StepOf[ops.Split], shape: ops.Shape) -> ops.Shape:
    columns, of = shape[-1], step.op.of
    if isinstance(columns, int) and isinstance(of, int) and columns % of:
        raise ShapeError(
            f"step {PLAIN.of(step)}: {columns} columns of {PLAIN.of(step.inputs[0])} cannot be split "
            f"into {of} equal heads. The number of columns must be a multiple of {of}."
        )
    part = columns // of if isinstance(columns, int) and isinstance(of, int) else columns / of
    return (*shape[:-1], part)


def _join(step: StepOf[ops.Join], *parts: ops.Shape) -> ops.Shape:
    if any(part[:-1] != parts[0][:-1] for part in parts):
        found = ", ".join(shape_text(part) for part in parts)
        raise ShapeError(
            f"step {PLAIN.of(step)} cannot be joined: its parts are {found}. All need the same number of rows."
        )
    total: ops.Size = sum(part[-1] for part in parts)
    return (*parts[0][:-1], total if step.op.of is None else total * step.op.of)


def _batches(step: Step, left: ops.Shape, right: ops.Shape) -> ops.Shape:
    """Two batches must agree, or one side has none."""
    a, b = left[:-2], right[:-2]
    if a and b and a != b:
        raise ShapeError(
            f"step {PLAIN.of(step)}: the batches {shape_text(a)} and {shape_text(b)} differ. Give both the same."
        )
    return a or b


SHAPES: Rules[ops.Shape] = {
    **dict.fromkeys((ops.Given, ops.Constant), _given),
    **dict.fromkeys((ops.Divide, ops.Softmax, ops.Exp, ops.Softcap, ops.SquareRoot, ops.Relu), _same),
    **dict.fromkeys((ops.Multiply, ops.Subtract, ops.DivideBy), _by_entry),
    ops.MatMul: _matmul,
    ops.Transpose: lambda step, shape: (*shape[:-2], shape[-1], shape[-2]),
    ops.Add: _add,
    ops.Split: _split,
    ops.Join: _join,
    ops.Sums: lambda step, shape: (*shape[:-1], 1) if step.op.axis == -1 else (*shape[:-2], 1, shape[-1]),
    ops.Maxima: _maxima,
    ops.Rows: _rows,
    ops.Stack: _stack,
    ops.Rotate: _rotate,
    ops.Means: lambda step, shape: (*shape[:-1], 1),
}
