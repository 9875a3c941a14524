"""The graph is the kernel's judge: its float64 and its exact reading of the same formula."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headwork.engine import attention
from headwork.formulas import given, scaled_dot_product
from headwork.numbers.digits import to_float
from headwork.readings.exact import HIDDEN, Hidden, Matrix, exact
from headwork.readings.values import values
from tests.engine.cases import draws

SIZES = [1, 2, 3, 7, 24, 25, 59, 97, 128, 1025]


def worked(q: Any, k: Any, v: Any, mask: Any = None) -> NDArray[np.float64]:
    """The formula's last step, read in float64."""
    Q, K, V = given("Q", q.shape), given("K", k.shape), given("V", v.shape)
    M = None if mask is None else given("mask", mask.shape)
    last = scaled_dot_product(Q, K, V, mask=M)
    handed = {Q: q, K: k, V: v} | ({} if M is None else {M: mask})
    return values(last, handed)[last]


@pytest.mark.parametrize("tokens", SIZES)
def test_the_float64_reading(tokens: int) -> None:
    q, k, v = draws(np.random.default_rng(tokens), (tokens, 16), (tokens, 16), (tokens, 5), dtype=np.float64)
    assert np.abs(attention(q, k, v) - worked(q, k, v)).max() < 1e-14
    below = np.where(np.tri(tokens, dtype=bool), 0.0, -np.inf)
    assert np.abs(attention(q, k, v, causal=True) - worked(q, k, v, below)).max() < 1e-14
    assert np.abs(attention(q, k, v, mask=below) - worked(q, k, v, below)).max() < 1e-14
    narrow = [a.astype(np.float32) for a in (q, k, v)]
    assert np.abs(attention(*narrow) - worked(*(a.astype(np.float64) for a in narrow))).max() < 2e-6


@pytest.mark.parametrize("causal", [False, True])
def test_the_exact_reading(causal: bool) -> None:
    """Roots and exponentials in closed form, and then the nearest float64 to each."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.integers(-2, 3, shape) for shape in ((3, 2), (3, 2), (3, 4)))
    Q, K, V, M = given("Q", q.shape), given("K", k.shape), given("V", v.shape), given("mask", (3, 3))
    last = scaled_dot_product(Q, K, V, mask=M if causal else None)
    handed = {Q: fractions(q), K: fractions(k), V: fractions(v)}
    if causal:
        handed[M] = tuple(tuple(Fraction(0) if j <= i else HIDDEN for j in range(3)) for i in range(3))
    closed = exact(last, handed)[last]
    expected = np.array([[to_float(x) for x in row if not isinstance(x, Hidden)] for row in closed])
    got = attention(*(a.astype(np.float64) for a in (q, k, v)), causal=causal)
    assert np.abs(got - expected).max() < 1e-15


def fractions(matrix: Any) -> Matrix:
    return tuple(tuple(Fraction(int(x)) for x in row) for row in matrix)
