"""An equation's right-hand side: X·W_Q,1, scores/√d_k, softmax(scaled). One rule for names and for matrices."""

from collections.abc import Callable, Mapping

from headwork.maths import (
    TRANSPOSED,
    Above,
    Grid,
    Maths,
    Ratio,
    RootOf,
    Row,
    Sign,
    Words,
    applied,
    between,
    bracketed,
    factor,
    is_sum,
    minus,
    related,
    row,
)
from headwork.notation import Name
from headwork.numbers.text import written
from headwork.ops import (
    Add,
    Constant,
    Divide,
    DivideBy,
    Exp,
    Given,
    Join,
    MatMul,
    Maxima,
    Multiply,
    Op,
    Root,
    Rows,
    Softmax,
    Split,
    Stack,
    Subtract,
    Sums,
    Transpose,
)
from headwork.readings.shapes import size_maths
from headwork.working import Equation


def formula(equation: Equation, operands: tuple[Maths, ...] = ()) -> Maths:
    """How the value is made, of operands that are names unless matrices are handed in."""
    named = operands or tuple(operand.name.maths for operand in equation.operands)
    if equation.operands:
        named = tuple(_number(source.op) or shown for source, shown in zip(equation.step.inputs, named, strict=False))
    return FORMULA[type(equation.step.op)](equation, *named)


def made_of(equation: Equation) -> Maths | None:
    """= X·W; nothing for what is given."""
    return None if equation.given else related("=", formula(equation))


def divisor(op: Divide, *, in_numbers: bool = False) -> Maths:
    """√d_k, or with its number √3."""
    if isinstance(op.by, Root):
        return RootOf(size_maths(op.by.of) if in_numbers else Name.read(op.by.name).maths)
    by = written(op.by)
    return bracketed(by) if is_sum(by) or isinstance(by, Ratio) else by


def _number(op: Op) -> Maths | None:
    """A constant that is a single number is written as that number."""
    return factor(written(op.value)) if isinstance(op, Constant) and op.shape == (1, 1) else None


def _multiply(equation: Equation, left: Maths, right: Maths) -> Maths:
    number = _number(equation.step.inputs[1].op)
    return between((left, right), "∘") if number is None else between((number, left), "·")


def _divide(equation: Equation, scores: Maths) -> Maths:
    assert isinstance(equation.step.op, Divide)
    if equation.step.op.by == -1:
        return minus(scores)
    return Row((scores, Sign("/"), divisor(equation.step.op, in_numbers=isinstance(scores, Grid))))


def _softmax(equation: Equation, scores: Maths) -> Maths:
    assert isinstance(equation.step.op, Softmax)
    along = {-1: "", -2: " down the columns", None: " over everything"}[equation.step.op.axis]
    weights = applied("softmax", scores)
    return row(weights, Words(along)) if along else weights


def part(equation: Equation) -> str:
    """Which part of a matrix: columns 3–4, rows 1–2."""
    if equation.block is None:
        return f"block {equation.name.subscripts[-1]}"
    first, last = equation.block
    lines = "row" if isinstance(equation.step.op, Rows) else "column"
    return f"{lines} {first}" if first == last else f"{lines}s {first}–{last}"


def _sums(equation: Equation, matrix: Maths) -> Maths:
    assert isinstance(equation.step.op, Sums)
    return Row((Words("row sums of " if equation.step.op.axis == -1 else "column sums of "), matrix))


def _maxima(equation: Equation, *parts: Maths) -> Maths:
    return Row((Words("row maxima of "), parts[0] if len(parts) == 1 else side_by_side(parts)))


def _stack(equation: Equation, *parts: Maths) -> Maths:
    under = between(parts, ";")
    return under if all(isinstance(p, Grid) for p in parts) else bracketed(under, "[", "]")


def _split(equation: Equation, wide: Maths) -> Maths:
    return Row((Words(f"{part(equation)} of "), wide))


def _join(equation: Equation, *parts: Maths) -> Maths:
    assert isinstance(equation.step.op, Join)
    typical = equation.step.op.of is not None or len(parts) < len(equation.step.inputs)  # of all heads
    return side_by_side((Sign("…"), parts[0], Sign("…")) if typical else parts)


def side_by_side(parts: tuple[Maths, ...]) -> Maths:
    """[Q_1 | Q_2]; matrices have brackets of their own."""
    joined = between(parts, "|")
    return joined if all(isinstance(p, Grid) for p in parts) else bracketed(joined, "[", "]")


FORMULA: Mapping[type[Op], Callable[..., Maths]] = {
    Given: lambda equation: equation.name.maths,
    MatMul: lambda equation, *factors: between(factors, "·"),
    Transpose: lambda equation, matrix: Above(matrix, TRANSPOSED),
    Divide: _divide,
    Add: lambda equation, *terms: between(terms, "+"),
    Softmax: _softmax,
    Split: _split,
    Join: _join,
    Constant: lambda equation: equation.name.maths,
    Multiply: _multiply,
    Subtract: lambda equation, *terms: between(terms, "−"),
    DivideBy: lambda equation, *sides: between(sides, "/"),
    Exp: lambda equation, matrix: applied("exp", matrix),
    Sums: _sums,
    Maxima: _maxima,
    Rows: _split,
    Stack: _stack,
}
