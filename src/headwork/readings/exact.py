"""Exact: a step means a matrix of numbers in closed form: rationals, roots, exponentials; certain digits beyond these.

−∞ is allowed where a mask puts it; everything else is a number. Digits are made on demand by `numbers.digits`.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce
from typing import Final

from headwork import ops
from headwork.errors import HeadworkError
from headwork.graph import Last, Rules, Step, StepOf, read
from headwork.notation import PLAIN
from headwork.numbers.certain import AnyNumber
from headwork.numbers.enclosure import largest, sign
from headwork.numbers.functions import DividedByZero, dot, power_of_e, quotient, softmax, square_root, tangent, total
from headwork.numbers.surd import Real, root
from headwork.readings.moving import MOVING, by_entry, by_line, filled, maxima, not_given, sums


class Hidden:
    """−∞, as a mask holds it: added to a score it hides the score."""

    def __repr__(self) -> str:
        return "-inf"


HIDDEN: Final = Hidden()

Entry = AnyNumber | Hidden
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


def _matmul(step: Step, left: Matrix, right: Matrix) -> Matrix:
    check_seen(step, left, right)
    columns = [*zip(*right, strict=True)]
    return tuple(tuple(dot(row, column) for column in columns) for row in left)  # type: ignore[arg-type]  # no Hidden


def check_seen(step: Step, *factors: Matrix) -> None:
    """Factors of a product have no −∞ in them."""
    if any(isinstance(x, Hidden) for matrix in factors for row in matrix for x in row):
        raise HeadworkError(f"step {PLAIN.of(step)}: −∞ belongs in a mask; it cannot be multiplied")


def _divide(step: StepOf[ops.Divide], scores: Matrix) -> Matrix:
    factor = Fraction(1) / divisor(step.op.by)
    return tuple(tuple(x if isinstance(x, Hidden) else factor * x for x in row) for row in scores)


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
    return by_entry(lambda a, b: dot([_number(step, a)], [_number(step, b)]), left, right)


def _divide_by(step: Step, left: Matrix, right: Matrix) -> Matrix:
    assert isinstance(step.op, ops.DivideBy)
    share = _passed_back if step.op.back else quotient
    try:
        return by_entry(lambda a, b: share(_number(step, a), _number(step, b)), left, right)
    except DividedByZero:
        by = step.inputs[1]
        norm = isinstance(by.op, ops.SquareRoot)
        remedy = '; a row of equal entries has no norm: give it an eps, such as "0.00001"' if norm else ""
        raise DividedByZero(
            f"step {PLAIN.of(step)}: {PLAIN.of(by)} holds a 0, and nothing but 0 can be divided by it{remedy}"
        ) from None


def _passed_back(above: AnyNumber, below: AnyNumber) -> AnyNumber:
    return quotient(above, below) if below else Fraction(0)


def _number(step: Step, entry: Entry) -> AnyNumber:
    if isinstance(entry, Hidden):
        raise HeadworkError(f"step {PLAIN.of(step)}: −∞ belongs in a mask; it cannot be multiplied or divided")
    return entry


def _mean(step: Step, row: Sequence[Entry]) -> AnyNumber:
    return total(_number(step, x) for x in row) * Fraction(1, len(row))


def _positive(entry: Entry) -> Entry:
    return Fraction(0) if isinstance(entry, Hidden) or sign(entry) < 0 else entry


def _exp(step: Step, matrix: Matrix) -> Matrix:
    return tuple(tuple(power_of_e(s) for s in _exponents(row)) for row in matrix)


def _softcap(step: StepOf[ops.Softcap], scores: Matrix) -> Matrix:
    """c·tanh(s/c); what is hidden goes as low as it can, and is seen again."""
    cap, share = step.op.by, Fraction(1) / step.op.by
    return tuple(tuple(-cap if isinstance(s, Hidden) else tangent(s * share) * cap for s in row) for row in scores)


def largest_seen(row: Sequence[Entry]) -> Entry:
    """−∞ where all of them are hidden."""
    visible = [x for x in row if not isinstance(x, Hidden)]
    return largest(visible) if visible else HIDDEN


def shared_out(
    share: Callable[[Sequence[AnyNumber | None]], list[AnyNumber]], axis: int | None, scores: Matrix
) -> Matrix:
    """Lines of the matrix shared out by a rule; what is hidden comes as None."""
    return by_line(lambda line: tuple(share(_exponents(line))), axis, scores)


def _exponents(row: Sequence[Entry]) -> list[AnyNumber | None]:
    return [None if isinstance(s, Hidden) else s for s in row]


EXACT: Rules[Matrix] = {
    **MOVING,
    ops.Given: not_given,
    ops.MatMul: _matmul,
    ops.Divide: _divide,
    ops.Add: lambda step, *terms: reduce(partial(by_entry, plus), terms),
    ops.Softmax: lambda step, scores: shared_out(softmax, step.op.axis, scores),
    ops.Constant: lambda step: filled(step.op.shape, step.op.value),
    ops.Multiply: _multiply,
    ops.Subtract: lambda step, left, right: by_entry(minus, left, right),
    ops.DivideBy: _divide_by,
    ops.Exp: _exp,
    ops.Sums: lambda step, matrix: sums(lambda line: total(_number(step, x) for x in line), step.op.axis, matrix),
    ops.Maxima: lambda step, *parts: maxima(largest_seen, *parts),
    ops.Softcap: _softcap,
    ops.Means: lambda step, matrix: sums(lambda row: _mean(step, row), -1, matrix),
    ops.SquareRoot: lambda step, matrix: tuple(tuple(square_root(_number(step, x)) for x in row) for row in matrix),
    ops.Relu: lambda step, matrix: tuple(tuple(_positive(x) for x in row) for row in matrix),
}
