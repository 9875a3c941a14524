"""The operations that only mistakes need, and the tables that have a rule for them beside the eight.

A mistaken graph is read with these tables wherever it is read: for its shapes, its values, its exact numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nan
from typing import Literal, TypeVar

from headwork.errors import HeadworkError, ShapeError
from headwork.graph import Last, Rules, Step, StepOf, read
from headwork.numbers.certain import AnyNumber
from headwork.numbers.functions import quotient, total
from headwork.ops import Add, Op, Shape, Softmax
from headwork.readings import exact, floats
from headwork.readings import shapes as readings
from headwork.readings.exact import HIDDEN, Entry, Hidden, Matrix
from headwork.readings.floats import Floats
from headwork.readings.moving import by_entry, by_line

NOISE = 1e-13  # of float64, where numbers cancel


@dataclass(frozen=True)
class ZeroHidden(Op):
    """left + mask, with a 0 in place of what the mask hides."""

    takes = 2


@dataclass(frozen=True)
class HideOthers(Op):
    """left + mask, with everything hidden but what the mask hides."""

    takes = 2


@dataclass(frozen=True)
class Share(Op):
    """s/Σs along an axis: what is left of a softmax without the exponential."""

    axis: int | None = -1


@dataclass(frozen=True)
class LaterRow(Op):
    """A mask read `by` rows further down (1) or up (−1): past its end everything may be read, before it nothing."""

    by: int


@dataclass(frozen=True)
class LaterColumn(Op):
    """A mask read `by` columns further to the right: past its end everything is hidden."""

    by: int


@dataclass(frozen=True)
class LessMaximum(Op):
    """s less a maximum that is not its row's: the column's, or the one of the row that has the column's number."""

    of: Literal["columns", "rows"]


OPERATIONS: tuple[type[Op], ...] = (ZeroHidden, HideOthers, Share, LaterRow, LaterColumn, LessMaximum)


def shapes(last: Last) -> dict[Step, Shape]:
    """The shape of every step of a graph that may hold mistakes."""
    return read(last, SHAPES)


def _exact_shares(numbers: Sequence[AnyNumber | None]) -> list[AnyNumber]:
    whole = total(s for s in numbers if s is not None)
    if not whole:
        raise HeadworkError("without the exponential these scores cannot be shared out: they sum to 0")
    return [Fraction(0) if s is None else quotient(s, whole) for s in numbers]


def _shares(scores: Sequence[float]) -> list[float]:
    """A sum of 0 leaves no number, so NaN. What rounding leaves of a sum of 0, such as of 1/√3 − 1/√3, is 0."""
    visible = [0.0 if s == -inf else s for s in scores]
    total = sum(visible)
    if not abs(total) > NOISE * sum(map(abs, visible)):
        return [nan] * len(visible)
    return [s / total for s in visible]


T = TypeVar("T")


def _rows(step: StepOf[LaterRow], mask: Sequence[Sequence[T]], seen: T, hidden: T) -> list[Sequence[T]]:
    width = len(mask[0])
    return [*mask[1:], [seen] * width] if step.op.by == 1 else [[hidden] * width, *mask[:-1]]


def _exact_rows(step: StepOf[LaterRow], mask: Matrix) -> Matrix:
    return tuple(map(tuple, _rows(step, mask, Fraction(0), HIDDEN)))


def _columns(step: StepOf[LaterColumn], mask: Sequence[Sequence[T]], hidden: T) -> tuple[tuple[T, ...], ...]:
    return tuple((*row[step.op.by :], *[hidden] * step.op.by) for row in mask)


def _shape_less_maximum(step: StepOf[LessMaximum], scores: Shape) -> Shape:
    if step.op.of == "rows" and scores[-2] != scores[-1]:
        raise ShapeError(
            f"{scores[-2]} row maxima cannot be taken off {scores[-1]} columns. Give as many rows as columns."
        )
    return scores


def _less_maximum(step: StepOf[LessMaximum], scores: Floats) -> Floats:
    tops = [max(line) for line in (zip(*scores, strict=True) if step.op.of == "columns" else scores)]
    return [[s if s == -inf else s - top for s, top in zip(row, tops, strict=True)] for row in scores]


def _exact_less_maximum(step: StepOf[LessMaximum], scores: Matrix) -> Matrix:
    lines = zip(*scores, strict=True) if step.op.of == "columns" else scores
    tops = [*map(exact.largest_seen, lines)]
    return tuple(tuple(_less(s, top) for s, top in zip(row, tops, strict=True)) for row in scores)


def _less(s: Entry, top: Entry) -> Entry:
    return s if isinstance(s, Hidden) or isinstance(top, Hidden) else s - top


SHAPES: Rules[Shape] = {
    **readings.SHAPES,
    ZeroHidden: readings.SHAPES[Add],
    HideOthers: readings.SHAPES[Add],
    Share: readings.SHAPES[Softmax],
    LaterRow: readings.SHAPES[Softmax],
    LaterColumn: readings.SHAPES[Softmax],
    LessMaximum: _shape_less_maximum,
}
FLOATS: Rules[Floats] = {
    **floats.FLOATS,
    ZeroHidden: lambda step, left, mask: by_entry(lambda a, b: 0.0 if b == -inf else a + b, left, mask),
    HideOthers: lambda step, left, mask: by_entry(lambda a, b: a if b == -inf else -inf, left, mask),
    Share: lambda step, scores: by_line(_shares, step.op.axis, scores),
    LaterRow: lambda step, mask: _rows(step, mask, 0.0, -inf),
    LaterColumn: lambda step, mask: _columns(step, mask, -inf),
    LessMaximum: _less_maximum,
}
EXACT: Rules[Matrix] = {
    **exact.EXACT,
    ZeroHidden: lambda step, left, mask: by_entry(
        lambda a, b: Fraction(0) if isinstance(b, Hidden) else exact.plus(a, b), left, mask
    ),
    HideOthers: lambda step, left, mask: by_entry(lambda a, b: a if isinstance(b, Hidden) else HIDDEN, left, mask),
    Share: lambda step, scores: exact.shared_out(_exact_shares, step.op.axis, scores),
    LaterRow: _exact_rows,
    LaterColumn: lambda step, mask: _columns(step, mask, HIDDEN),
    LessMaximum: _exact_less_maximum,
}
