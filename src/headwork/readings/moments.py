"""Moments: a step means the mean and variance of its entries when the inputs are independent draws.

Exact where it says so. Where two factors share an input, or a softmax stands between, there is no such closed
form, and the reading says that instead of guessing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import sympy

from headwork import ops
from headwork.graph import Step, StepOf, read
from headwork.maths import Prose, listed
from headwork.notation import PLAIN
from headwork.readings.algebra import as_sympy
from headwork.readings.shapes import shapes


@dataclass(frozen=True)
class Moments:
    """Mean and variance of one entry, in numbers or symbols; None where there is no closed form."""

    mean: Any  # sympy.Expr | None
    variance: Any  # sympy.Expr | None
    sources: frozenset[Step] = frozenset()  # the inputs that its randomness comes from
    independent: bool = False  # whether the entries of one row are independent of each other
    why_not: Prose = ()


@dataclass(frozen=True)
class Draws:
    """How the inputs are drawn, and the shape of every step."""

    mean: Any
    variance: Any
    shape: Mapping[Step, Any]


def moments(last: Step, mean: Any = None, variance: Any = None) -> dict[Step, Moments]:
    """Mean and variance of every step's entries, for inputs drawn with this mean and variance (μ, σ² if not given).

    scores = Q·Kᵀ over D columns: mean D·μ², variance D·(σ⁴ + 2μ²σ²).
    """
    draws = Draws(
        sympy.Symbol("μ", real=True) if mean is None else as_sympy(mean),
        sympy.Symbol("σ", positive=True) ** 2 if variance is None else as_sympy(variance),
        shapes(last),
    )
    return read(last, {op: partial(rule, draws) for op, rule in MOMENTS.items()})


def of_product(left: Moments, right: Moments, terms: Any) -> tuple[Any, Any]:
    """Mean and variance of Σ aᵢbᵢ over so many terms, a and b independent.

    E = D·μ_a·μ_b,  Var = D·(σ_a²σ_b² + μ_a²σ_b² + μ_b²σ_a²)
    """
    mean = terms * left.mean * right.mean
    spread = left.variance * right.variance + left.mean**2 * right.variance + right.mean**2 * left.variance
    return sympy.simplify(mean), sympy.factor(terms * spread)


def _given(draws: Draws, step: Step) -> Moments:
    if step.role == "mask":
        return Moments(sympy.S.Zero, sympy.S.Zero)  # fixed, not drawn
    return Moments(draws.mean, draws.variance, frozenset({step}), independent=True)


def _matmul(draws: Draws, step: Step, left: Moments, right: Moments) -> Moments:
    if why_not := left.why_not or right.why_not or _dependence(left, right):
        return _unknown(why_not, left, right)
    return Moments(*of_product(left, right, draws.shape[step.inputs[0]][-1]), left.sources | right.sources)


def _dependence(left: Moments, right: Moments) -> Prose:
    """Why the terms of a sum of products are not independent enough for a closed form, or nothing."""
    if shared := left.sources & right.sources:
        return (
            "both factors are made of ",
            *listed(PLAIN.of_role(role).maths for role in sorted({s.role for s in shared})),
        )
    # Entries of X·W in one row share X: they are uncorrelated, which is enough, only around 0.
    if (left.mean or right.mean) and not (left.independent and right.independent):
        return ("the terms of the sum are correlated unless the means are 0",)
    return ()


def _divide(draws: Draws, step: StepOf[ops.Divide], scores: Moments) -> Moments:
    if scores.why_not:
        return scores
    by = sympy.sqrt(step.op.by.of) if isinstance(step.op.by, ops.Root) else as_sympy(step.op.by)
    return Moments(scores.mean / by, sympy.simplify(scores.variance / by**2), scores.sources)


def _unknown(why_not: Prose, *inputs: Moments) -> Moments:
    return Moments(None, None, frozenset().union(*(each.sources for each in inputs)), why_not=why_not)


def _sum(sign: int, left: Moments, right: Moments) -> Moments:
    shared: Prose = ("both terms are made of one input",) if left.sources & right.sources else ()
    if why_not := left.why_not or right.why_not or shared:
        return _unknown(why_not, left, right)
    return Moments(left.mean + sign * right.mean, left.variance + right.variance, left.sources | right.sources)


def _multiply(draws: Draws, step: Step, left: Moments, right: Moments) -> Moments:
    shared: Prose = ("both factors are made of one input",) if left.sources & right.sources else ()
    if why_not := left.why_not or right.why_not or shared:
        return _unknown(why_not, left, right)
    return Moments(*of_product(left, right, 1), left.sources | right.sources)


def _sums(draws: Draws, step: Step, matrix: Moments) -> Moments:
    correlated: Prose = () if matrix.independent else ("the terms of the sum may be correlated",)
    if why_not := matrix.why_not or correlated:
        return _unknown(why_not, matrix)
    axis = step.op.axis if isinstance(step.op, ops.Sums) else -1
    terms = draws.shape[step.inputs[0]][axis]
    return Moments(terms * matrix.mean, terms * matrix.variance, matrix.sources, independent=True)


def _rotate(draws: Draws, step: Step, matrix: Moments, *angles: Moments) -> Moments:
    """Turning keeps a² + b²: around 0 no entry's variance changes, whatever the angle."""
    uneven: Prose = ("a mean that is not 0 turns with the angle",) if matrix.mean else ()
    if why_not := matrix.why_not or uneven:
        return _unknown(why_not, matrix)
    return Moments(matrix.mean, matrix.variance, matrix.sources)


def _means(draws: Draws, step: Step, matrix: Moments) -> Moments:
    whole = _sums(draws, step, matrix)
    if whole.why_not:
        return whole
    terms = draws.shape[step.inputs[0]][-1]
    return replace(whole, mean=whole.mean / terms, variance=whole.variance / terms**2)


def _without(what: str) -> Callable[..., Moments]:
    """The moments of these have no closed form, whatever goes in."""
    why_not = (f"the moments of {what} have no closed form: sample them",)
    return lambda draws, step, *inputs: _unknown(why_not, *inputs)


def _softmax(draws: Draws, step: Step, scores: Moments) -> Moments:
    # Unmasked keys that are drawn alike each get, by symmetry, the same share of the weight on average.
    alike = not scores.why_not and step.inputs[0].role != "masked"
    mean = 1 / sympy.sympify(draws.shape[step][-1]) if alike else None
    return Moments(mean, None, scores.sources, why_not=("the variance of a softmax has no closed form: sample it",))


def _same(draws: Draws, step: Step, first: Moments, *others: Moments) -> Moments:
    """Moving entries about changes no entry's moments; joined heads are drawn alike."""
    return replace(first, sources=first.sources.union(*(other.sources for other in others)))


MOMENTS: Mapping[type[ops.Op], Callable[..., Moments]] = {
    ops.Given: _given,
    ops.MatMul: _matmul,
    **dict.fromkeys((ops.Transpose, ops.Split, ops.Join, ops.Rows, ops.Stack), _same),
    ops.Divide: _divide,
    ops.Add: lambda draws, step, *terms: reduce(partial(_sum, 1), terms),
    ops.Softmax: _softmax,
    ops.Constant: lambda draws, step: Moments(as_sympy(step.op.value), sympy.S.Zero, independent=True),
    ops.Multiply: _multiply,
    ops.Subtract: lambda draws, step, left, right: _sum(-1, left, right),
    ops.DivideBy: _without("a quotient"),
    ops.Exp: _without("an exponential"),
    ops.Sums: _sums,
    ops.Maxima: _without("a maximum"),
    ops.Means: _means,
    ops.SquareRoot: _without("a square root"),
    ops.Relu: _without("a maximum with 0"),
    ops.Rotate: _rotate,
    ops.Softcap: _without("a tanh"),
}
