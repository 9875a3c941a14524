"""Entries: how one entry of a step came about, with its numbers in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from headwork import ops
from headwork.graph import Step, StepOf
from headwork.readings.exact import Entry, Matrix, divisor, minus
from headwork.readings.moving import columns_of

Place = tuple[int, int, int]  # which of the step's inputs, a row of it, a column
Terms = tuple[tuple[Entry, ...], ...]


@dataclass(frozen=True)
class Origin:
    """How an entry came about.

    `terms` are the numbers that went in: factor pairs of a product, the terms of a sum, the number divided
    and its divisor, or the exponents of a softmax. `places` are the entries they were read from, in reading order;
    both are empty for an entry that was given or handed over.
    """

    step: Step
    row: int
    column: int
    terms: Terms
    places: tuple[Place, ...]
    result: Entry


def origin(step: Step, row: int, column: int, meaning: Mapping[Step, Matrix]) -> Origin:
    """Where entry (row, column), counted from 0, came from. A step that was handed over came from nowhere."""
    worked_out = all(s in meaning for s in step.inputs)
    terms, places = came_from(step, row, column, [meaning[s] for s in step.inputs]) if worked_out else ((), ())
    return Origin(step, row, column, terms, places, meaning[step][row][column])


CameFrom = tuple[Terms, tuple[Place, ...]]


def came_from(step: Step, row: int, column: int, inputs: Sequence[Matrix]) -> CameFrom:
    """The same for the matrices that the step works on."""
    return ENTRIES[type(step.op)](step, row, column, *inputs)


def _matmul(step: Step, row: int, column: int, left: Matrix, right: Matrix) -> CameFrom:
    inner = range(len(right))
    terms = tuple((left[row][k], right[k][column]) for k in inner)
    return terms, tuple(place for k in inner for place in ((0, row, k), (1, k, column)))


def _with_a_number(step: StepOf[ops.Divide | ops.Softcap], row: int, column: int, scores: Matrix) -> CameFrom:
    """What it is divided by, or capped by."""
    return ((scores[row][column], divisor(step.op.by)),), ((0, row, column),)


def _by_entry(step: Step, row: int, column: int, *matrices: Matrix) -> CameFrom:
    """The entry of each; of a single row or column the one that is spread over it."""
    places = tuple((i, row % len(matrix), column % len(matrix[0])) for i, matrix in enumerate(matrices))
    return (tuple(matrices[i][r][c] for i, r, c in places),), places


def _sums(step: StepOf[ops.Sums], row: int, column: int, matrix: Matrix) -> CameFrom:
    if step.op.axis == -1:
        return _along_the_row(step, row, column, matrix)
    return tuple((line[column],) for line in matrix), tuple((0, i, column) for i in range(len(matrix)))


def _along_the_row(step: Step, row: int, column: int, *parts: Matrix) -> CameFrom:
    """All of a row, in one matrix or in several side by side."""
    places = tuple((number, row, j) for number, part in enumerate(parts) for j in range(len(part[0])))
    return tuple((parts[number][i][j],) for number, i, j in places), places


def _stack(step: Step, row: int, column: int, *parts: Matrix) -> CameFrom:
    for number, part in enumerate(parts):
        if row < len(part):
            return _moved(part, (number, row, column))
        row -= len(part)
    raise AssertionError("a stacked entry lies in one of the parts")


def _softmax(step: StepOf[ops.Softmax], row: int, column: int, scores: Matrix) -> CameFrom:
    """The entry's own exponent first, then all that were summed."""
    rows = range(len(scores)) if step.op.axis in (-2, None) else [row]
    columns = range(len(scores[0])) if step.op.axis in (-1, None) else [column]
    places = tuple((0, i, j) for i in rows for j in columns)
    return ((scores[row][column],), tuple(scores[i][j] for _, i, j in places)), places


def _split(step: StepOf[ops.Split], row: int, column: int, wide: Matrix) -> CameFrom:
    return _moved(wide, (0, row, step.op.part * (len(wide[0]) // step.op.of) + column))


def _join(step: Step, row: int, column: int, *parts: Matrix) -> CameFrom:
    for number, part in enumerate(parts):
        width = len(part[0])
        if column < width:
            return _moved(part, (number, row, column))
        column -= width
    raise AssertionError("a joined entry lies in one of the parts")


def _rotate(step: StepOf[ops.Rotate], row: int, column: int, matrix: Matrix, cos: Matrix, sin: Matrix) -> CameFrom:
    """Of a pair (a, b) a·cos + b·(−sin), or a·sin + b·cos."""
    pairs = len(cos[0])
    pair = next(p for p in range(pairs) if column in columns_of(step.op, p, pairs))
    i, j = columns_of(step.op, pair, pairs)
    tables = ((1, cos), (2, sin)) if column == i else ((2, sin), (1, cos))
    turned: dict[int, Entry] = {number: table[row][pair] for number, table in tables}
    if (column == i) != step.op.back:
        turned[2] = minus(Fraction(0), turned[2])
    terms = tuple((matrix[row][at], turned[number]) for at, (number, _) in zip((i, j), tables, strict=True))
    places = [place for at, (n, _) in zip((i, j), tables, strict=True) for place in ((0, row, at), (n, row, pair))]
    return terms, tuple(places)


def _moved(matrix: Matrix, place: Place) -> CameFrom:
    _, row, column = place
    return ((matrix[row][column],),), (place,)


ENTRIES: Mapping[type[ops.Op], Callable[..., CameFrom]] = {
    **dict.fromkeys((ops.Given, ops.Constant), lambda step, row, column: ((), ())),
    ops.MatMul: _matmul,
    ops.Transpose: lambda step, row, column, matrix: _moved(matrix, (0, column, row)),
    ops.Divide: _with_a_number,
    **dict.fromkeys((ops.Add, ops.Multiply, ops.Subtract, ops.DivideBy), _by_entry),
    ops.Softmax: _softmax,
    ops.Split: _split,
    ops.Join: _join,
    **dict.fromkeys((ops.Exp, ops.SquareRoot, ops.Relu), lambda step, i, j, matrix: _moved(matrix, (0, i, j))),
    ops.Sums: _sums,
    ops.Maxima: _along_the_row,
    ops.Rows: lambda step, row, column, matrix: _moved(matrix, (0, step.op.start + row, column)),
    ops.Stack: _stack,
    ops.Rotate: _rotate,
    ops.Softcap: _with_a_number,
    ops.Means: _along_the_row,
}
