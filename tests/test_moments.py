"""Mean and variance, predicted against drawn."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import headwork
from headwork.configure import configuration
from headwork.errors import HeadworkError
from headwork.graph import Step, in_order
from headwork.inline import sentence
from headwork.ops import Given
from headwork.readings.moments import moments
from headwork.readings.shapes import shapes
from headwork.readings.values import values
from headwork.why_scale import sample


def sampled(last: Step, mean: float, variance: float, draws: int = 20000) -> dict[str, tuple[float, float]]:
    """Entry (0, 1) of every step over many draws of the inputs."""
    generator = np.random.default_rng(1)
    shape = shapes(last)
    handed: dict[Step, Any] = {
        step: generator.normal(mean, variance**0.5, (draws, *shape[step]))
        for step in in_order(last)
        if isinstance(step.op, Given)
    }
    drawn = values(last, handed)
    return {s.role: (float(a[:, 0, 1].mean()), float(a[:, 0, 1].var())) for s, a in drawn.items()}


@pytest.mark.parametrize(("mean", "variance"), [(0, 1), (Fraction(1, 2), 2), (-1, Fraction(1, 4))])
def test_scores_are_as_predicted(mean: Any, variance: Any) -> None:
    last = configuration("scaled_dot_product", tokens=3, d_k=5, d_v=2)
    predicted = {step.role: m for step, m in moments(last, mean, variance).items()}
    for role, (found_mean, found_variance) in sampled(last, float(mean), float(variance)).items():
        if predicted[role].mean is not None:
            spread = 5 * (found_variance / 20000) ** 0.5
            assert found_mean == pytest.approx(float(predicted[role].mean), abs=spread), role
        if predicted[role].variance is not None:
            assert found_variance == pytest.approx(float(predicted[role].variance), rel=0.08), role


def test_projections_of_different_inputs_around_zero_are_as_predicted() -> None:
    """Cross-attention: Q and K share nothing, so the scores have a closed form when the means are 0."""
    last = configuration("single_head", tokens=2, keys=3, d_model=4, d_k=3, d_v=2)
    predicted = {step.role: m for step, m in moments(last, 0, 1).items()}
    assert predicted["scores"].variance == 3 * 4 * 4
    found = sampled(last, 0, 1)
    assert found["scores"][1] == pytest.approx(48, rel=0.08)


def test_what_has_no_closed_form_says_why() -> None:
    last = configuration("single_head", tokens=2, d_model=4)
    table = {step.role: m for step, m in moments(last, 0, 1).items()}
    assert (table["scores"].variance, sentence(table["scores"].why_not)) == (None, "both factors are made of X")
    crossed = configuration("single_head", tokens=2, keys=2, d_model=4)
    off_centre = {step.role: m for step, m in moments(crossed, 1, 1).items()}
    assert sentence(off_centre["scores"].why_not) == "the terms of the sum are correlated unless the means are 0"


def test_the_public_table_prints() -> None:
    page = repr(headwork.moments(d_k="D"))
    assert "D·σ²·(2·μ² + σ²)" in page
    assert "σ²·(2·μ² + σ²)" in page


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (0.5, 2.0)])
def test_what_is_drawn_is_as_if_every_entry_were(mean: float, variance: float) -> None:
    """Only Σq_i and Σq_i² are drawn for a query; here every entry of every query and key is, in NumPy."""
    generator, draws = np.random.default_rng(3), 4000

    def near(each: Any) -> Any:
        """Its mean, and five standard errors of the difference of two such means."""
        return pytest.approx(float(each.mean()), abs=5 * float(each.std()) * (2 / draws) ** 0.5)

    for found in sample(mean, variance, draws=draws, widths=(1, 4, 64)):
        q = generator.normal(mean, variance**0.5, (draws, 1, found.width))
        scores = (q * generator.normal(mean, variance**0.5, (draws, 16, found.width))).sum(-1)
        assert found.sampled == near(((scores - scores.mean()) ** 2).mean(-1))
        for i, scale in enumerate((1.0, found.predicted**0.5)):
            powers = np.exp(scores / scale - (scores / scale).max(-1, keepdims=True))
            weights = powers / powers.sum(-1, keepdims=True)
            jacobian = weights[:, :, None] * (np.eye(16) - weights[:, None, :])
            assert found.largest[i] == near(weights.max(-1))
            assert found.gradient[i] == near(np.linalg.norm(jacobian, axis=(1, 2)))


@pytest.mark.parametrize("variance", [0.0, -1.0])
def test_without_variance_nothing_is_drawn(variance: float) -> None:
    with pytest.raises(HeadworkError, match="give more than 0"):
        sample(0.0, variance)
