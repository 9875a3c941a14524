"""Floats: a step means rows of Python floats. For matrices of pencil size, read over and over; without NumPy."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce
from math import copysign, exp, inf, isfinite, isnan, nan, sqrt, tanh
from operator import add, mul

from headwork import ops
from headwork.graph import Last, Rules, Step, StepOf, read
from headwork.numbers.certain import AnyNumber, Certain
from headwork.numbers.closed import Closed
from headwork.numbers.digits import to_float
from headwork.readings.exact import Hidden, Matrix
from headwork.readings.moving import MOVING, by_entry, by_line, filled, maxima, not_given, sums

Floats = Sequence[Sequence[float]]
CLOSE = 2.0**-40  # of a number
FAINT = 2.0**-200  # about 1e-60: what is nearer to 0 is not worked out further
EXACT = 2**53  # whole numbers up to it are float64
LARGEST_EXPONENT = 709.0  # beyond it e^s is no float64


def floats(last: Last, handed: Mapping[Step, Floats]) -> dict[Step, Floats]:
    """Every step in float64; `handed` gives the inputs and any step that is not to be worked out."""
    return read(last, FLOATS, handed)


def to_floats(matrix: Matrix) -> Floats:
    """Exact numbers next to their float64, or off by so little that no answer shows it."""
    return [[-inf if isinstance(x, Hidden) else _near(x) for x in row] for row in matrix]


def _near(number: AnyNumber) -> float:
    """Intervals only where float64 by itself is in doubt: they take a thousand times as long."""
    if type(number) is Fraction and number.denominator == 1 and abs(number.numerator) <= EXACT:
        return float(number.numerator)
    if isinstance(number, Closed | Certain):
        try:
            value, error = number.quick()
        except OverflowError:
            return to_float(number, FAINT)
        if error <= abs(value) * CLOSE:
            return value
    return to_float(number, FAINT)


def flat(matrix: Floats) -> list[float]:
    """Row after row."""
    return [x for row in matrix for x in row]


def _matmul(step: Step, left: Floats, right: Floats) -> Floats:
    columns = [*zip(*right, strict=True)]
    return [[sum(map(mul, row, column)) for column in columns] for row in left]


def _divide(step: StepOf[ops.Divide], scores: Floats) -> Floats:
    by = step.op.by
    number = float(by.of) ** 0.5 if isinstance(by, ops.Root) else to_float(by)
    return [[s / number for s in row] for row in scores]


def _minus(a: float, b: float) -> float:
    """−∞ less anything is −∞, −∞ included."""
    return a if a == -inf else a - b


def _share_of(a: float, b: float) -> float:
    """0/0 is 0, as in `headwork.ops.DivideBy`."""
    if b:
        return a / b
    return 0.0 if not a else nan if isnan(a) else copysign(inf, a)


def _passed_back(a: float, b: float) -> float:
    return a / b if b else 0.0


def _power(s: float) -> float:
    return exp(s) if not s > LARGEST_EXPONENT else inf


def _softcap(step: StepOf[ops.Softcap], scores: Floats) -> Floats:
    cap = to_float(step.op.by)
    return [[cap * tanh(s / cap) for s in row] for row in scores]


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


FLOATS: Rules[Floats] = {
    **MOVING,
    ops.Given: not_given,
    ops.MatMul: _matmul,
    ops.Divide: _divide,
    ops.Add: lambda step, *terms: reduce(partial(by_entry, add), terms),
    ops.Softmax: lambda step, scores: by_line(softmax_row, step.op.axis, scores),
    ops.Constant: lambda step: filled(step.op.shape, to_float(step.op.value)),
    ops.Multiply: lambda step, left, right: by_entry(mul, left, right),
    ops.Subtract: lambda step, left, right: by_entry(_minus, left, right),
    ops.DivideBy: lambda step, left, right: by_entry(_passed_back if step.op.back else _share_of, left, right),
    ops.Exp: lambda step, matrix: [[_power(s) for s in row] for row in matrix],
    ops.Sums: lambda step, matrix: sums(sum, step.op.axis, matrix),
    ops.Maxima: lambda step, *parts: maxima(max, *parts),
    ops.Softcap: _softcap,
    ops.Means: lambda step, matrix: sums(lambda row: sum(row) / len(row), -1, matrix),
    ops.SquareRoot: lambda step, matrix: [[sqrt(x) if x >= 0 else nan for x in row] for row in matrix],
    ops.Relu: lambda step, matrix: [[x if isnan(x) else max(x, 0.0) for x in row] for row in matrix],
}
