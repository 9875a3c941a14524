"""Why √d_k: the mean and variance of q·k derived line by line, and what sampling shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from headwork.build import Sizes, build
from headwork.maths import MINUS, Above, Letter, Maths, Number, Prose, Ratio, Row, Sign, Words, between, bracketed
from headwork.notation import Name
from headwork.numbers.surd import Real
from headwork.readings.algebra import algebra
from headwork.readings.moments import moments

WIDTHS = (4, 64, 1024)


@dataclass(frozen=True)
class Statement:
    """One line of a derivation: left = right, because."""

    left: Maths
    right: Maths
    because: Prose = ()


@dataclass(frozen=True)
class Sample:
    """What drawing q and k of one width shows, beside what was predicted."""

    width: int
    predicted: float  # Var[q·k]
    sampled: float
    largest: tuple[float, float]  # mean of a row's largest weight, without and with the scale
    gradient: tuple[float, float]  # mean Frobenius norm of the softmax's Jacobian, likewise


def derive(find: str, mean: Real | None = None, variance: Real | None = None) -> tuple[Statement, ...]:
    """The derivation of the "mean" or "variance" of q·k, or of the "scale" that makes the variance 1.

    The last line of each is what the `moments` reading says of the scores.
    """
    D = sympy.Symbol("D", positive=True)
    unscaled = build("dot_product", Sizes(D, D, 1, 1, 1, 1, D, D, 1))
    table = moments(unscaled, mean, variance)
    drawn = next(m for step, m in table.items() if step.role == "Q")
    scores = next(m for step, m in table.items() if step.role == "scores")
    mu, var = drawn.mean, drawn.variance
    q_i, k_i, q, k = (Name.read(name).maths for name in ("q_i", "k_i", "q", "k"))
    term, dot = between((q_i, k_i), "·"), between((q, k), "·")
    if find == "mean":
        until = (Words(", "), Letter("i"), Sign("="), Number("1"), Words(" … "), Letter("D"))
        terms = Row((Sign("Σ"), Words(" "), term, *until))
        return (
            Statement(dot, terms),
            Statement(
                _mean(term),
                algebra(mu**2),
                (q_i, " and ", k_i, " are independent: ", between((_mean(q_i), _mean(k_i)), "·")),
            ),
            Statement(_mean(dot), algebra(scores.mean), ("the mean of a sum is the sum of the means: D equal terms",)),
        )
    if find == "variance":
        one = sympy.expand((var + mu**2) ** 2 - mu**4)
        squares = [_mean(_squared(letter)) for letter in (q_i, k_i)]
        product = _mean(_squared(bracketed(term)))
        return (
            Statement(
                squares[0],
                algebra(var + mu**2),
                ("Var = ", Row((squares[0], MINUS, _squared(_mean(q_i)))), ", and ", k_i, " likewise"),
            ),
            Statement(product, algebra((var + mu**2) ** 2), ("independent: ", between(squares, "·"))),
            Statement(_variance(term), algebra(one), (Row((product, MINUS, _squared(_mean(term)))),)),
            Statement(
                _variance(dot), algebra(scores.variance), ("the D terms are independent, so their variances add",)
            ),
        )
    s = sympy.Symbol("s", positive=True)
    return (
        Statement(
            _variance(Row((dot, Sign("/"), Letter("s")))),
            algebra(scores.variance / s**2),
            ("a factor ", Ratio(Number("1"), Letter("s")), " comes out squared"),
        ),
        Statement(Letter("s"), algebra(sympy.sqrt(scores.variance)), ("the only s > 0 that makes this 1",)),
    )


def _mean(of: Maths) -> Maths:
    return Row((Letter("E"), bracketed(of, "[", "]")))


def _variance(of: Maths) -> Maths:
    return Row((Letter("Var"), bracketed(of, "[", "]")))


def _squared(of: Maths) -> Maths:
    return Above(of, Number("2"))


def sample(
    mean: float = 0.0,
    variance: float = 1.0,
    *,
    keys: int = 16,
    draws: int = 400,
    seed: int = 0,
    widths: Sequence[int] = WIDTHS,
) -> tuple[Sample, ...]:
    """Draw queries and keys of some widths and look at q·k, its softmax and the softmax's gradient.

    The scale is the one that `derive("scale")` finds: the root of the predicted variance.
    """
    generator = np.random.default_rng(seed)
    samples = []
    for width in widths:
        q = generator.normal(mean, variance**0.5, (draws, 1, width))
        k = generator.normal(mean, variance**0.5, (draws, keys, width))
        scores = (q * k).sum(-1)
        predicted = width * (variance**2 + 2 * mean**2 * variance)
        plain, scaled = softmax_rows(scores), softmax_rows(scores / predicted**0.5)
        samples.append(
            Sample(
                width,
                predicted,
                float(scores.var()),
                (float(plain.max(-1).mean()), float(scaled.max(-1).mean())),
                (gradient_size(plain), gradient_size(scaled)),
            )
        )
    return tuple(samples)


def softmax_rows(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def gradient_size(weights: Any) -> float:
    """The mean size of ∂softmax/∂scores = diag(w) − w·wᵀ, as a Frobenius norm."""
    squares = (weights**2).sum(-1)
    norm = squares - 2 * (weights**3).sum(-1) + squares**2
    return float(np.sqrt(np.maximum(norm, 0)).mean())
