"""torch's own attention on the same inputs, where the two mean the same thing."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

from headwork.engine import attention
from tests.engine.cases import draws

CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], dict[str, Any]]] = {
    "dense": ((2, 4, 97, 64), (2, 4, 97, 64), {}, {}),
    "causal": ((2, 4, 97, 64), (2, 4, 97, 64), {"causal": True}, {"is_causal": True}),
    "causal from the top left": ((1, 2, 30, 16), (1, 2, 70, 16), {"causal": "top_left"}, {"is_causal": True}),
    "grouped": ((1, 8, 40, 32), (1, 2, 40, 32), {}, {"enable_gqa": True}),
    "decoding": ((1, 8, 1, 128), (1, 2, 1500, 128), {}, {"enable_gqa": True}),
    "scale": ((1, 2, 33, 16), (1, 2, 33, 16), {"scale": 0.7}, {"scale": 0.7}),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_the_same_as_torch(name: str, dtype: Any) -> None:
    q_shape, k_shape, ours, theirs = CASES[name]
    q, k, v = draws(np.random.default_rng(0), q_shape, k_shape, k_shape, dtype=dtype)
    expected = sdpa(*map(torch.from_numpy, (q, k, v)), **theirs).numpy()
    assert np.abs(attention(q, k, v, **ours) - expected).max() < (3e-6 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("additive", [False, True])
def test_masks_mean_the_same_in_torch(additive: bool) -> None:
    rng = np.random.default_rng(1)
    q, k, v = draws(rng, *[(2, 3, 50, 16)] * 3)
    mask: Any = rng.random((2, 1, 50, 50)) < 0.6
    if additive:
        mask = np.where(mask, rng.standard_normal(mask.shape), -np.inf).astype(np.float32)
    tq, tk, tv, given = map(torch.from_numpy, (q, k, v, mask))
    expected = sdpa(tq, tk, tv, attn_mask=given).numpy()
    assert np.abs(attention(q, k, v, mask=mask) - expected).max() < 3e-6
