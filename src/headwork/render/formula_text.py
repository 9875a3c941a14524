"""An equation's right-hand side in names: X·W_Q,1, scores/√d_k, softmax(scaled)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headwork.numbers.text import text
from headwork.ops import Add, Divide, Given, Join, MatMul, Op, Root, Softmax, Split, Transpose
from headwork.working import Equation


def formula_text(equation: Equation) -> str:
    """How the value is made, in names; empty for what is given."""
    return FORMULA[type(equation.op)](equation, *(str(o.name) for o in equation.operands)) if equation.op else ""


def divisor_text(op: Divide) -> str:
    return f"√{op.by.name}" if isinstance(op.by, Root) else text(op.by).replace("-", "−")


def _divide(equation: Equation, scores: str) -> str:
    assert isinstance(equation.op, Divide)
    by = divisor_text(equation.op)
    return f"{scores}/({by})" if " " in by or "/" in by else f"{scores}/{by}"


def _softmax(equation: Equation, scores: str) -> str:
    assert isinstance(equation.op, Softmax)
    along = {-1: "", -2: " down the columns", None: " over everything"}[equation.op.axis]
    return f"softmax({scores}){along}"


def _split(equation: Equation, wide: str) -> str:
    assert isinstance(equation.op, Split)
    if equation.block is None:
        return f"block {equation.name.subscripts[-1]} of {wide}"
    first, last = equation.block
    return f"column {first} of {wide}" if first == last else f"columns {first}–{last} of {wide}"


def _join(equation: Equation, *parts: str) -> str:
    assert isinstance(equation.op, Join)
    if equation.op.of is not None:
        return f"[… | {parts[0]} | …]"
    return f"[{' | '.join(parts)}]"


FORMULA: Mapping[type[Op], Callable[..., str]] = {
    Given: lambda equation: "",
    MatMul: lambda equation, left, right: f"{left}·{right}",
    Transpose: lambda equation, matrix: f"{matrix}ᵀ",
    Divide: _divide,
    Add: lambda equation, left, right: f"{left} + {right}",
    Softmax: _softmax,
    Split: _split,
    Join: _join,
}
