"""Awkward sizes and widths, every type: as good as plain NumPy at the same precision."""

from typing import Any

import numpy as np
import pytest

from headwork.engine import attention
from tests.engine.cases import (
    DTYPES,
    accumulates,
    assert_as_good_as_plain,
    assert_at_most_twice_plain,
    distance,
    draws,
    eps,
    items_for,
)
from tests.engine.oracle import attention as exact

SIZES = [1, 2, 3, 7, 24, 25, 59, 97, 128, 1025]
WIDTHS = [1, 2, 3, 5, 8, 16, 31, 32, 33, 64, 96, 128, 200, 257]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_square(size: int, dtype: Any) -> None:
    q, k, v = draws(np.random.default_rng(size), *[(items_for(32 * size), 2, size, 16)] * 3, dtype=dtype)
    for causal in (False, True):
        assert_at_most_twice_plain(attention(q, k, v, causal=causal), q, k, v, causal=causal)


@pytest.mark.parametrize("tokens", [1, 2, 5, 8, 9, 24, 31, 33, 49])
@pytest.mark.parametrize("keys", [1, 3, 4, 127, 129, 300, 1100])
def test_tokens_and_keys_differ(tokens: int, keys: int) -> None:
    items = items_for(40 * tokens)
    q, k, v = draws(np.random.default_rng(keys), (items, 2, tokens, 24), (items, 1, keys, 24), (items, 1, keys, 20))
    for causal in (False, "top_left", "bottom_right"):
        assert_at_most_twice_plain(attention(q, k, v, causal=causal), q, k, v, causal=causal)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", range(1, 10))
def test_few_rows_on_many_keys(rows: int, dtype: Any) -> None:
    """Decoding: many heads on one, keys around the 32 that are worked at once, and enough of them to be shared out."""
    rng = np.random.default_rng(rows)
    for keys in (1, 31, 32, 33, 70, 1100):
        items = items_for(48 * rows)
        q, k, v = draws(rng, (items, rows, 1, 32), (items, 1, keys, 32), (items, 1, keys, 48), dtype=dtype)
        assert_at_most_twice_plain(attention(q, k, v), q, k, v)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_widths(width: int, dtype: Any) -> None:
    """Any d_k and any d_v, also when they differ."""
    rng = np.random.default_rng(width)
    for d_k, d_v in ((width, width), (width, 16), (16, width)):
        items = items_for(50 * d_v)
        q, k, v = draws(rng, (items, 2, 25, d_k), (items, 2, 59, d_k), (items, 2, 59, d_v), dtype=dtype)
        assert_at_most_twice_plain(attention(q, k, v), q, k, v)


@pytest.mark.parametrize("kind", DTYPES[2:], ids=str)
@pytest.mark.parametrize("tokens", [1, 4, 40])
def test_narrow_keys_and_values_with_wide_queries(kind: Any, tokens: int) -> None:
    rng = np.random.default_rng(0)
    q, k, v = *draws(rng, (4, tokens, 64)), *draws(rng, (2, 700, 64), (2, 700, 64), dtype=kind)
    got = attention(q, k, v)
    assert got.dtype == np.float32
    assert_as_good_as_plain(got, q, k, v)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_log_sum_and_weights(dtype: Any) -> None:
    """Kept in the accumulation type; the weights of a row add up to one and give the output."""
    q, k, v = draws(np.random.default_rng(1), (3, 30, 16), (3, 200, 16), (3, 200, 16), dtype=dtype)
    out, lse, weights = attention(q, k, v, return_lse=True, return_weights=True)
    _, exact_lse, exact_weights = exact(q, k, v)
    sort = accumulates(dtype)
    assert lse.dtype == weights.dtype == sort
    assert distance(lse, exact_lse) <= 8 * eps(sort)
    assert distance(weights, exact_weights) <= 4 * eps(sort)
    # Summed without a BLAS: that of Debian 13 on AArch64 raises the flag of a division by zero in any product.
    mixed = np.einsum("hij,hjd->hid", weights, v.astype(sort))
    assert distance(mixed.astype(dtype), out) <= 4 * eps(dtype)
