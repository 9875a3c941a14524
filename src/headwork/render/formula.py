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
    is_sum,
    related,
    row,
)
from headwork.notation import Name
from headwork.numbers.text import written
from headwork.ops import Add, Divide, Given, Join, MatMul, Op, Root, Softmax, Split, Transpose
from headwork.readings.shapes import size_maths
from headwork.working import Equation


def formula(equation: Equation, operands: tuple[Maths, ...] = ()) -> Maths:
    """How the value is made, of operands that are names unless matrices are handed in."""
    named = operands or tuple(operand.name.maths for operand in equation.operands)
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


def _divide(equation: Equation, scores: Maths) -> Maths:
    assert isinstance(equation.step.op, Divide)
    return Row((scores, Sign("/"), divisor(equation.step.op, in_numbers=isinstance(scores, Grid))))


def _softmax(equation: Equation, scores: Maths) -> Maths:
    assert isinstance(equation.step.op, Softmax)
    along = {-1: "", -2: " down the columns", None: " over everything"}[equation.step.op.axis]
    weights = applied("softmax", scores)
    return row(weights, Words(along)) if along else weights


def part(equation: Equation) -> str:
    """Which part of a wide matrix: columns 3–4."""
    if equation.block is None:
        return f"block {equation.name.subscripts[-1]}"
    first, last = equation.block
    return f"column {first}" if first == last else f"columns {first}–{last}"


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
}
