"""Matrices as rows of entries, whatever an entry is: what only moves or turns entries, and how a rule for entries, or
for a line of them, becomes one for matrices. Readings in exact numbers, in floats and in symbols share these."""

from collections.abc import Callable, Sequence
from itertools import chain, starmap
from typing import Any, TypeVar

from headwork import ops
from headwork.errors import HeadworkError
from headwork.graph import Rules, Step, StepOf
from headwork.notation import PLAIN
from headwork.ops import Shape

T = TypeVar("T")
Lines = Sequence[Sequence[T]]


def by_entry(rule: Callable[[T, T], T], left: Lines[T], right: Lines[T]) -> tuple[tuple[T, ...], ...]:
    """Entry by entry; on the right a single row meets every row, and a column every entry of its row."""
    rows = [right[0]] * len(left) if len(right) == 1 else right
    if len(right[0]) == 1 < len(left[0]):
        return tuple(tuple(rule(a, other[0]) for a in one) for one, other in zip(left, rows, strict=True))
    return tuple(tuple(starmap(rule, zip(*pair, strict=True))) for pair in zip(left, rows, strict=True))


def by_line(rule: Callable[[Any], Any], axis: int | None, matrix: Any) -> tuple[Any, ...]:
    """Rows (axis −1), columns (−2) or the whole matrix (None), each made into another line by a rule."""
    if axis == -1:
        return tuple(map(rule, matrix))
    if axis == -2:
        return tuple(zip(*map(rule, zip(*matrix, strict=True)), strict=True))
    whole, width = rule([*chain(*matrix)]), len(matrix[0])
    return tuple(whole[start : start + width] for start in range(0, len(whole), width))


def sums(total: Callable[[Any], T], axis: int, matrix: Any) -> tuple[tuple[T, ...], ...]:
    """A column with the sum of every row (axis −1), or a row with the sum of every column (−2)."""
    if axis == -1:
        return tuple((total(row),) for row in matrix)
    return (tuple(map(total, zip(*matrix, strict=True))),)


def maxima(largest: Callable[[Any], T], *parts: Any) -> tuple[tuple[T], ...]:
    """A column with the largest entry of every row, over matrices side by side."""
    return tuple((largest([*chain(*rows)]),) for rows in zip(*parts, strict=True))


def filled(shape: Shape, value: T) -> tuple[tuple[T, ...], ...]:
    rows, columns = map(int, shape)
    return ((value,) * columns,) * rows


def not_given(step: Step) -> Any:
    raise HeadworkError(f"no matrix was given for {PLAIN.of(step)}; hand one over")


def _split(step: StepOf[ops.Split], wide: Lines[Any]) -> Any:
    width = len(wide[0]) // step.op.of
    start = step.op.part * width
    return tuple(row[start : start + width] for row in wide)


def columns_of(op: ops.Rotate, pair: int, pairs: int) -> tuple[int, int]:
    """Which two columns are turned together."""
    return (2 * pair, 2 * pair + 1) if op.pairs == "neighbours" else (pair, pair + pairs)


def _rotate(step: StepOf[ops.Rotate], matrix: Lines[Any], cos: Lines[Any], sin: Lines[Any]) -> Any:
    rows = []
    for row, cosines, sines in zip(matrix, cos, sin, strict=True):
        turned = list(row)
        for pair, (c, s) in enumerate(zip(cosines, sines, strict=True)):
            i, j = columns_of(step.op, pair, len(cosines))
            a, b = row[i], row[j]
            turned[i], turned[j] = (a * c + b * s, b * c - a * s) if step.op.back else (a * c - b * s, a * s + b * c)
        rows.append(tuple(turned))
    return tuple(rows)


MOVING: Rules[Any] = {
    ops.Transpose: lambda step, matrix: tuple(zip(*matrix, strict=True)),
    ops.Split: _split,
    ops.Join: lambda step, *parts: tuple(tuple(chain(*rows)) for rows in zip(*parts, strict=True)),
    ops.Rows: lambda step, matrix: matrix[step.op.start : step.op.stop],
    ops.Stack: lambda step, *parts: tuple(chain(*parts)),
    ops.Rotate: _rotate,
}
