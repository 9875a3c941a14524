"""Why √d_k: the mean and variance of q·k derived line by line, and what sampling shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from operator import mul
from random import Random
from statistics import fmean

import sympy

from headwork.build import Sizes, build
from headwork.errors import HeadworkError
from headwork.maths import MINUS, Above, Letter, Maths, Number, Ratio, Row, Sign, Statement, Words, between, bracketed
from headwork.notation import Name
from headwork.numbers.surd import Real
from headwork.readings.algebra import algebra
from headwork.readings.floats import Floats, softmax_row
from headwork.readings.moments import moments

WIDTHS = (4, 64, 1024)


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
            Statement(
                _mean(dot),
                algebra(scores.mean),
                ("the mean of a sum is the sum of the means: ", Letter("D"), " equal terms"),
            ),
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
                _variance(dot),
                algebra(scores.variance),
                ("the ", Letter("D"), " terms are independent, so their variances add"),
            ),
        )
    s = sympy.Symbol("s", positive=True)
    return (
        Statement(
            _variance(Row((dot, Sign("/"), Letter("s")))),
            algebra(scores.variance / s**2),
            ("a factor ", Ratio(Number("1"), Letter("s")), " comes out squared"),
        ),
        Statement(
            Letter("s"), algebra(sympy.sqrt(scores.variance)), ("the only ", Letter("s"), " > 0 that makes this 1")
        ),
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
    if not variance > 0:
        raise HeadworkError(f"variance {variance:g} draws nothing that differs; give more than 0")
    generator = Random(seed)
    samples = []
    for width in widths:
        rows = [_scores(width, mean, variance, keys, generator) for _ in range(draws)]
        predicted = width * (variance * variance + 2 * mean * mean * variance)
        scale = sqrt(predicted)
        largest, gradient = zip(look(rows), look([[s / scale for s in row] for row in rows]), strict=True)
        samples.append(Sample(width, predicted, _variance_of([s for row in rows for s in row]), largest, gradient))
    return tuple(samples)


def _scores(width: int, mean: float, variance: float, keys: int, generator: Random) -> list[float]:
    """q·k for one q of independent normal entries and some such k.

    Of q only Σq_i and Σq_i² matter: given those, q·k is normal with mean μ·Σq_i and variance σ²·Σq_i². So the two are
    drawn in place of the entries, the sum as a normal number and the scatter about it as a χ² one: the same law.
    """
    total = generator.gauss(width * mean, sqrt(width * variance))
    scatter = variance * generator.gammavariate((width - 1) / 2, 2) if width > 1 else 0.0
    spread = sqrt(variance * (scatter + total * total / width))
    return [generator.gauss(mean * total, spread) for _ in range(keys)]


def look(rows: Floats) -> tuple[float, float]:
    """The mean of the largest weight of a row of scores, and of the size of the softmax's gradient."""
    weights = [softmax_row(row) for row in rows]
    return fmean([max(row) for row in weights]), fmean([gradient_size(row) for row in weights])


def gradient_size(weights: Sequence[float]) -> float:
    """The size of ∂softmax/∂scores = diag(w) − w·wᵀ, as a Frobenius norm."""
    squares = [w * w for w in weights]
    total, cubes = sum(squares), sum(map(mul, squares, weights))
    return sqrt(max(total - 2 * cubes + total * total, 0.0))


def _variance_of(numbers: Sequence[float]) -> float:
    middle = fmean(numbers)
    return fmean([(x - middle) * (x - middle) for x in numbers])  # a list: of others `fmean` counts every number
