"""Floats: a step means rows of Python floats. For matrices of pencil size, read over and over; without NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from itertools import chain
from math import copysign, exp, inf, isfinite, isnan, nan
from operator import add, mul

from headwork import ops
from headwork.errors import HeadworkError
from headwork.graph import Last, Rules, Step, read
from headwork.notation import PLAIN
from headwork.numbers.digits import to_float
from headwork.readings.exact import Hidden, Matrix

Floats = Sequence[Sequence[float]]
LARGEST_EXPONENT = 709.0  # beyond it e^s is no float64


def floats(last: Last, handed: Mapping[Step, Floats]) -> dict[Step, Floats]:
    """Every step in float64; `handed` gives the inputs and any step that is not to be worked out."""
    return read(last, FLOATS, handed)


def to_floats(matrix: Matrix) -> Floats:
    """Exact numbers next to their float64."""
    return [[-inf if isinstance(x, Hidden) else to_float(x) for x in row] for row in matrix]


def flat(matrix: Floats) -> list[float]:
    """Row after row."""
    return [x for row in matrix for x in row]


def _given(step: Step) -> Floats:
    raise HeadworkError(f"no matrix was given for {PLAIN.of(step)}; hand one over")


def _matmul(step: Step, left: Floats, right: Floats) -> Floats:
    columns = [*zip(*right, strict=True)]
    return [[sum(map(mul, row, column)) for column in columns] for row in left]


def _divide(step: Step, scores: Floats) -> Floats:
    assert isinstance(step.op, ops.Divide)
    by = step.op.by
    number = float(by.of) ** 0.5 if isinstance(by, ops.Root) else to_float(by)
    return [[s / number for s in row] for row in scores]


def _add(step: Step, left: Floats, *others: Floats) -> Floats:
    return reduce(partial(by_entry, add), others, left)


def by_entry(rule: Callable[[float, float], float], left: Floats, right: Floats) -> Floats:
    """Entry by entry; on the right a single row meets every row, and a column every entry of its row."""
    rows = [right[0]] * len(left) if len(right) == 1 else right
    if len(right[0]) == 1 < len(left[0]):
        return [[rule(a, other[0]) for a in one] for one, other in zip(left, rows, strict=True)]
    return [[*map(rule, one, other)] for one, other in zip(left, rows, strict=True)]


def _minus(a: float, b: float) -> float:
    """−∞ less anything is −∞, −∞ included."""
    return a if a == -inf else a - b


def _share_of(a: float, b: float) -> float:
    """0/0 is 0, as in `headwork.ops.DivideBy`."""
    if b:
        return a / b
    return 0.0 if not a else nan if isnan(a) else copysign(inf, a)


def _power(s: float) -> float:
    return exp(s) if not s > LARGEST_EXPONENT else inf


def _constant(step: Step) -> Floats:
    assert isinstance(step.op, ops.Constant)
    rows, columns = step.op.shape
    return [[to_float(step.op.value)] * columns] * rows


def _sums(step: Step, matrix: Floats) -> Floats:
    assert isinstance(step.op, ops.Sums)
    return [[sum(row)] for row in matrix] if step.op.axis == -1 else [[sum(c) for c in zip(*matrix, strict=True)]]


def _rows(step: Step, matrix: Floats) -> Floats:
    assert isinstance(step.op, ops.Rows)
    return matrix[step.op.start : step.op.stop]


def _softmax(step: Step, scores: Floats) -> Floats:
    assert isinstance(step.op, ops.Softmax)
    return shared_out(softmax_row, step.op.axis, scores)


def shared_out(share: Callable[[Sequence[float]], list[float]], axis: int | None, scores: Floats) -> Floats:
    """Rows (axis −1), columns (−2) or the whole matrix (None) shared out by a rule."""
    if axis == -1:
        return [share(row) for row in scores]
    if axis == -2:
        return [*zip(*(share(column) for column in zip(*scores, strict=True)), strict=True)]
    all_of_it, width = share(flat(scores)), len(scores[0])
    return [all_of_it[start : start + width] for start in range(0, len(all_of_it), width)]


def softmax_row(scores: Sequence[float]) -> list[float]:
    """eˢ/Σeˢ. Where nothing may be read the weights are zeros, not NaN."""
    top = max(scores)
    if not isfinite(top) or any(map(isnan, scores)):
        return _without_a_top(scores)
    powers = [exp(s - top) for s in scores]
    total = sum(powers)
    return [p / total for p in powers]


def _without_a_top(scores: Sequence[float]) -> list[float]:
    """Scores that are all hidden, or too large for float64: no weight, or none that could be told."""
    overflow = inf in scores and not any(map(isnan, scores))
    return [nan if overflow and s > LARGEST_EXPONENT else 0.0 for s in scores]


def _split(step: Step, wide: Floats) -> Floats:
    assert isinstance(step.op, ops.Split)
    width = len(wide[0]) // step.op.of
    start = step.op.part * width
    return [row[start : start + width] for row in wide]


FLOATS: Rules[Floats] = {
    ops.Given: _given,
    ops.MatMul: _matmul,
    ops.Transpose: lambda step, matrix: [*zip(*matrix, strict=True)],
    ops.Divide: _divide,
    ops.Add: _add,
    ops.Softmax: _softmax,
    ops.Split: _split,
    ops.Join: lambda step, *parts: [[*chain(*rows)] for rows in zip(*parts, strict=True)],
    ops.Constant: _constant,
    ops.Multiply: lambda step, left, right: by_entry(mul, left, right),
    ops.Subtract: lambda step, left, right: by_entry(_minus, left, right),
    ops.DivideBy: lambda step, left, right: by_entry(_share_of, left, right),
    ops.Exp: lambda step, matrix: [[_power(s) for s in row] for row in matrix],
    ops.Sums: _sums,
    ops.Maxima: lambda step, *parts: [[max(chain(*rows))] for rows in zip(*parts, strict=True)],
    ops.Rows: _rows,
    ops.Stack: lambda step, *parts: [*chain(*parts)],
}
