"""What stands around attention in a transformer's block: residuals, layer norms, the feed-forward layer.

    residual      X + attention(X)
    post-norm     N = norm(X + attention(X)), then norm(N + feed(N))
    pre-norm      R = X + attention(norm(X)), then R + feed(norm(R))

norm(x) = (x − mean)/√(variance + ε), row by row, times a gain γ and plus a bias β where there are any;
feed(x) = max(x·W_1 + b_1, 0)·W_2 + b_2. The first norm and residual are numbered 1, the second ones 2.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction

from headwork import ops
from headwork.formulas import Projection, checked
from headwork.graph import Step
from headwork.numbers.surd import Real

ARRANGEMENTS = ("none", "residual", "post-norm", "pre-norm")
Attention = Callable[[Step], Step]


def block(
    X: Step,
    attention: Attention,
    arrangement: str,
    *,
    eps: Real = Fraction(0),
    feed: tuple[Projection, Projection] | None = None,
    learned: Mapping[str, Step] | None = None,
) -> Step:
    """Attention in its place, and the feed-forward layer after it where its projections are given.

    `learned` holds the gains and biases of the norms, by role: gamma_1, beta_1, gamma_2, beta_2.
    """
    known = learned or {}
    before, after = arrangement == "pre-norm", arrangement == "post-norm"
    layers: list[Attention] = [attention]
    if feed is not None:
        layers.append(lambda x: feed_forward(x, *feed))
    for number, layer in enumerate(layers, 1):
        inside = layer(layer_norm(X, number, eps, known) if before else X)
        X = Step(ops.Add(), (X, inside), f"residual_{number}")
        X = layer_norm(X, number, eps, known) if after else X
    return checked(X)


def layer_norm(X: Step, number: int, eps: Real, learned: Mapping[str, Step]) -> Step:
    """Every row less its mean, over its standard deviation; γ∘x + β where they are given."""

    def made(role: str, op: ops.Op, *inputs: Step) -> Step:
        return Step(op, inputs, f"{role}_{number}")

    gain, bias = learned.get(f"gamma_{number}"), learned.get(f"beta_{number}")
    less = made("from_mean", ops.Subtract(), X, made("mean", ops.Means(), X))
    variance = made("variance", ops.Means(), made("squares", ops.Multiply(), less, less))
    if eps:
        variance = made("with_eps", ops.Add(), variance, Step(ops.Constant((1, 1), eps), (), "eps"))
    deviation = made("deviation", ops.SquareRoot(), variance)
    normed = made("standard" if gain or bias else "normed", ops.DivideBy(), less, deviation)
    if gain:
        normed = made("stretched" if bias else "normed", ops.Multiply(), normed, gain)
    return made("normed", ops.Add(), normed, bias) if bias else normed


def feed_forward(X: Step, first: Projection, second: Projection) -> Step:
    """max(X·W_1 + b_1, 0)·W_2 + b_2"""
    active = Step(ops.Relu(), (_fed(X, first, 1),), "active")
    return _fed(active, second, 2)


def _fed(X: Step, by: Projection, number: int) -> Step:
    product = Step(ops.MatMul(), (X, by.W), f"fed_{number}" if by.b is None else f"product_{number}")
    return product if by.b is None else Step(ops.Add(), (product, by.b), f"fed_{number}")
