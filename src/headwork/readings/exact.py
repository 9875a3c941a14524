"""Exact: a step means a matrix of numbers in closed form: rationals, roots, exponentials.

−∞ is allowed where a mask puts it; everything else is a number. Digits are made on demand by `numbers.digits`.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce
from typing import Final

from headwork import ops
from headwork.errors import HeadworkError
from headwork.graph import Last, Rules, Step, read
from headwork.notation import PLAIN
from headwork.numbers.closed import Closed, Exact, dot, power_of_e, quotient, softmax, total
from headwork.numbers.enclosure import largest
from headwork.numbers.surd import Real, root


class Hidden:
    """−∞, as a mask holds it: added to a score it hides the score."""

    def __repr__(self) -> str:
        return "-inf"


HIDDEN: Final = Hidden()

Entry = Exact | Hidden
Matrix = tuple[tuple[Entry, ...], ...]


def exact(last: Last, handed: Mapping[Step, Matrix]) -> dict[Step, Matrix]:
    """Every step in closed form; `handed` gives the inputs and any step that is not to be worked out."""
    return read(last, EXACT, handed)


def divisor(by: ops.Root | Real) -> Real:
    """What a `Divide` divides by, as a number."""
    if not isinstance(by, ops.Root):
        return by
    if not isinstance(by.of, int):
        raise HeadworkError(f"{by.name} is not known, so nothing can be divided by √{by.name}; add it under [sizes]")
    return root(by.of)


def _given(step: Step) -> Matrix:
    raise HeadworkError(f"no matrix was given for {PLAIN.of(step)}; hand one over")


def _matmul(step: Step, left: Matrix, right: Matrix) -> Matrix:
    if any(isinstance(x, Hidden) for matrix in (left, right) for row in matrix for x in row):
        raise HeadworkError(f"step {PLAIN.of(step)}: −∞ belongs in a mask; it cannot be multiplied")
    columns = [*zip(*right, strict=True)]
    return tuple(tuple(dot(row, column) for column in columns) for row in left)  # type: ignore[arg-type]  # no Hidden


def _divide(step: Step, scores: Matrix) -> Matrix:
    assert isinstance(step.op, ops.Divide)
    factor = Fraction(1) / divisor(step.op.by)
    return tuple(tuple(x if isinstance(x, Hidden) else x * factor for x in row) for row in scores)


def _add(step: Step, left: Matrix, *others: Matrix) -> Matrix:
    return reduce(partial(by_entry, plus), others, left)


def by_entry(rule: Callable[[Entry, Entry], Entry], left: Matrix, right: Matrix) -> Matrix:
    """Entry by entry; on the right a single row meets every row, and a column every entry of its row."""
    rows = right * len(left) if len(right) == 1 else right
    if len(right[0]) == 1:
        rows = tuple(row * len(left[0]) for row in rows)
    return tuple(
        tuple(rule(a, b) for a, b in zip(one, other, strict=True)) for one, other in zip(left, rows, strict=True)
    )


def plus(a: Entry, b: Entry) -> Entry:
    return HIDDEN if isinstance(a, Hidden) or isinstance(b, Hidden) else a + b


def minus(a: Entry, b: Entry) -> Entry:
    """What is hidden stays hidden."""
    if isinstance(a, Hidden):
        return a
    if isinstance(b, Hidden):
        raise HeadworkError("−∞ belongs in a mask; it cannot be taken from a number")
    return a - b


def _multiply(step: Step, left: Matrix, right: Matrix) -> Matrix:
    return by_entry(lambda a, b: _number(step, a) * _number(step, b), left, right)


def _divide_by(step: Step, left: Matrix, right: Matrix) -> Matrix:
    return by_entry(lambda a, b: quotient(_number(step, a), _number(step, b)), left, right)


def _number(step: Step, entry: Entry) -> Exact:
    if isinstance(entry, Hidden):
        raise HeadworkError(f"step {PLAIN.of(step)}: −∞ belongs in a mask; it cannot be multiplied or divided")
    return entry


def _exp(step: Step, matrix: Matrix) -> Matrix:
    return tuple(tuple(power_of_e(s) for s in _exponents(row)) for row in matrix)


def _sums(step: Step, matrix: Matrix) -> Matrix:
    assert isinstance(step.op, ops.Sums)
    lines = matrix if step.op.axis == -1 else tuple(zip(*matrix, strict=True))
    sums = tuple(total(_number(step, x) for x in line) for line in lines)
    return tuple((x,) for x in sums) if step.op.axis == -1 else (sums,)


def _maxima(step: Step, *parts: Matrix) -> Matrix:
    return tuple((_largest(sum(rows, ())),) for rows in zip(*parts, strict=True))


def _largest(row: tuple[Entry, ...]) -> Entry:
    visible = [x for x in row if not isinstance(x, Hidden)]
    return largest(visible) if visible else HIDDEN


def _constant(step: Step) -> Matrix:
    assert isinstance(step.op, ops.Constant)
    rows, columns = map(int, step.op.shape)
    return ((step.op.value,) * columns,) * rows


def _rows(step: Step, matrix: Matrix) -> Matrix:
    assert isinstance(step.op, ops.Rows)
    return matrix[step.op.start : step.op.stop]


def _softmax(step: Step, scores: Matrix) -> Matrix:
    assert isinstance(step.op, ops.Softmax)
    return shared_out(softmax, step.op.axis, scores)


def shared_out(share: Callable[[Sequence[Real | None]], list[Exact]], axis: int | None, scores: Matrix) -> Matrix:
    """Rows (axis −1), columns (−2) or the whole matrix (None) shared out by a rule; what is hidden comes as None."""
    if axis == -1:
        return tuple(tuple(share(_exponents(row))) for row in scores)
    if axis == -2:
        columns = [share(_exponents(column)) for column in zip(*scores, strict=True)]
        return tuple(zip(*columns, strict=True))
    flat = share([s for row in scores for s in _exponents(row)])
    width = len(scores[0])
    return tuple(tuple(flat[start : start + width]) for start in range(0, len(flat), width))


def _exponents(row: tuple[Entry, ...]) -> list[Real | None]:
    exponents: list[Real | None] = []
    for s in row:
        if isinstance(s, Closed):
            raise HeadworkError("the softmax of a softmax has no closed form here; ask for values instead")
        exponents.append(None if isinstance(s, Hidden) else s)
    return exponents


def _split(step: Step, wide: Matrix) -> Matrix:
    assert isinstance(step.op, ops.Split)
    assert isinstance(step.op.of, int)
    width = len(wide[0]) // step.op.of
    start = step.op.part * width
    return tuple(row[start : start + width] for row in wide)


EXACT: Rules[Matrix] = {
    ops.Given: _given,
    ops.MatMul: _matmul,
    ops.Transpose: lambda step, matrix: tuple(zip(*matrix, strict=True)),
    ops.Divide: _divide,
    ops.Add: _add,
    ops.Softmax: _softmax,
    ops.Split: _split,
    ops.Join: lambda step, *parts: tuple(sum(rows, ()) for rows in zip(*parts, strict=True)),
    ops.Constant: _constant,
    ops.Multiply: _multiply,
    ops.Subtract: lambda step, left, right: by_entry(minus, left, right),
    ops.DivideBy: _divide_by,
    ops.Exp: _exp,
    ops.Sums: _sums,
    ops.Maxima: _maxima,
    ops.Rows: _rows,
    ops.Stack: lambda step, *parts: sum(parts, ()),
}
