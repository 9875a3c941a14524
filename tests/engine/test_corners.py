"""The corner cases of docs/reference/engine.md, one by one."""

import sys
from typing import Any

import numpy as np
import pytest

from headwork.engine import attention, attention_backward
from tests.engine import backward_oracle, oracle
from tests.engine.cases import DTYPES, assert_as_good_as_plain, distance, draws

NAN, INF = np.nan, np.inf


def test_a_row_without_a_key_is_zero_and_its_log_sum_minus_infinity() -> None:
    q, k, v = draws(np.random.default_rng(0), *[(1, 2, 30, 8)] * 3)
    mask = np.ones((30, 30), bool)
    mask[[0, 13, 29]] = False
    for given in (mask, np.where(mask, np.float32(0), -np.float32(INF))):
        out, lse, weights = attention(q, k, v, mask=given, return_lse=True, return_weights=True)
        assert (out[..., [0, 13, 29], :] == 0).all()
        assert (lse[..., [0, 13, 29]] == -INF).all()
        assert (weights[..., [0, 13, 29], :] == 0).all()
        assert np.isfinite(lse[..., 1:13]).all()
        assert_as_good_as_plain(attention(q, k, v, mask=given), q, k, v, mask=given)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("tokens", [1, 3, 40])
def test_what_is_hidden_cannot_leak(bad: float, tokens: int) -> None:
    """NaN and infinities in keys and values that may not be read change nothing, whatever hides them."""
    rng = np.random.default_rng(3)
    q, k, v = draws(rng, (2, tokens, 16), (2, 200, 16), (2, 200, 16))
    hidden = rng.random(200) < 0.3
    spoilt_k, spoilt_v = k.copy(), v.copy()
    spoilt_k[:, hidden], spoilt_v[:, hidden] = bad, bad
    additive = np.where(hidden, -INF, rng.standard_normal(200)).astype(np.float32)
    for mask in (~hidden, additive):
        assert (attention(q, spoilt_k, spoilt_v, mask=mask) == attention(q, k, v, mask=mask)).all()
    spoilt_k, spoilt_v = k.copy(), v.copy()
    spoilt_k[:, 150:], spoilt_v[:, 150:] = bad, bad
    assert (attention(q, spoilt_k, spoilt_v, lengths=150) == attention(q, k[:, :150], v[:, :150])).all()


@pytest.mark.parametrize("bad", [NAN, INF])
def test_causal_order_and_windows_stop_a_bad_value_at_its_edge(bad: float) -> None:
    """Within one panel some rows read the key and some do not: only those that do may change."""
    q, k, v = draws(np.random.default_rng(4), *[(1, 60, 8)] * 3)
    spoilt = v.copy()
    spoilt[0, 30, 2] = bad
    rows = np.arange(60)
    for options, reads in (
        ({"causal": True}, rows >= 30),
        ({"window": (3, 2)}, (rows >= 28) & (rows <= 33)),
        ({"causal": True, "window": (5, -1)}, (rows >= 30) & (rows <= 35)),
    ):
        clean, out = attention(q, k, v, **options), attention(q, k, spoilt, **options)
        assert (out[0, ~reads] == clean[0, ~reads]).all()
        assert not np.isfinite(out[0, reads, 2]).any()
        assert distance(out, oracle.attention(q, k, spoilt, **options)[0]) < 1e-6


def test_rows_that_read_nothing_are_zeros_whatever_was_worked_before() -> None:
    q, k, v = draws(np.random.default_rng(8), *[(1, 60, 9)] * 3)
    attention(q, k, -np.abs(v))
    out = attention(q, k, v, causal=True, offset=-60)
    assert (out == 0).all()
    assert not np.signbit(out).any()


def test_two_bad_values_each_fill_the_rows_that_read_them() -> None:
    """One at the edge of a panel, one well inside what all its rows read."""
    q, k, v = draws(np.random.default_rng(9), *[(1, 96, 8)] * 3)
    rows = np.arange(96)
    for inside, edge in ((3, 50), (27, 61), (40, 95), (61, 3)):
        spoilt = v.copy()
        spoilt[0, inside, 0], spoilt[0, edge, 1] = NAN, INF
        out = attention(q, k, spoilt, causal=True)
        assert (np.isfinite(out[0, :, 0]) == (rows < inside)).all()
        assert (np.isfinite(out[0, :, 1]) == (rows < edge)).all()


def test_a_visible_nan_fills_the_rows_that_read_it_and_no_other() -> None:
    q, k, v = draws(np.random.default_rng(5), *[(1, 50, 8)] * 3)
    q[0, 7, 3] = NAN
    k[0, 40, 0] = NAN
    out = attention(q, k, v, causal=True)
    wrong = np.isnan(out[0]).all(-1)
    assert wrong[7]
    assert wrong[40:].all()
    assert np.isfinite(np.delete(out[0, :40], 7, axis=0)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tokens", [1, 30])
def test_scores_that_overflow_give_the_limit(dtype: Any, tokens: int) -> None:
    """The exact scores are far apart: the largest takes all the weight, also when all of them are −∞ as
    numbers.
    """
    huge = np.finfo(dtype).max ** 0.6
    k = (np.array([[1, 0], [0, 1], [-1, -1]]) * huge).astype(dtype)
    v = np.eye(3, dtype=dtype)
    q = (np.array([[2, 1], [1, 2], [-3, -2], [-1, -1]]) * huge).astype(dtype)[np.arange(tokens) % 4]
    expected = np.array([0, 1, 2, 2])[np.arange(tokens) % 4]
    out, lse = attention(q, k, v, return_lse=True)
    assert (out == np.eye(3)[expected]).all()
    assert (lse == INF).all()
    below, lse = attention(-np.abs(q), np.abs(k[:2]), v[:2], return_lse=True)
    assert (below[:3, :2] == np.eye(3, dtype=dtype)[[1, 0, 1], :2][: len(below)]).all()
    assert (lse == -INF).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("keys", [1, 2, 3, 4, 5, 8, 30, 150])
def test_scores_that_are_all_minus_infinity_as_numbers_give_the_limit(dtype: Any, keys: int) -> None:
    """The first key that a token may read has the largest score, and so all the weight; where none may be read, 0."""
    huge = np.finfo(dtype).max ** 0.6
    k = ((np.arange(keys) + 1)[:, None] * np.full(3, huge)).astype(dtype)
    q, v = np.full((keys, 3), -huge, dtype), np.eye(keys, dtype=dtype)
    assert (attention(q, k, v) == v[0]).all()
    assert (attention(q, k, v, causal=True) == v[0]).all()
    assert (attention(q, k, v, window=(2, 0)) == v[np.maximum(np.arange(keys) - 2, 0)]).all()
    mask = np.arange(keys) > np.arange(keys)[:, None]
    out, lse = attention(q, k, v, mask=mask, return_lse=True)
    assert (out[:-1] == v[1:]).all()
    assert (out[-1] == 0).all()
    assert (lse == -INF).all()
    assert (attention(q, k, v, mask=np.where(mask, 0, -INF).astype(dtype)) == out).all()


def test_an_overflow_in_one_part_of_the_keys_is_not_lost() -> None:
    """Few tokens, so the keys are cut: token i reads key 100·i, whose score is −∞ as a number, and no other."""
    q, k = np.full((14, 3), -1e25, np.float32), np.full((1500, 3), 1e25, np.float32)
    mask = np.arange(1500) == 100 * np.arange(14)[:, None]
    mask[3] = False
    v = np.arange(1500, dtype=np.float32)[:, None]
    expected = np.where(mask.any(-1), 100.0 * np.arange(14), 0)[:, None]
    assert (attention(q, k, v, mask=mask) == expected).all()
    assert (attention(q, k, v, mask=np.where(mask, 0, -INF).astype(np.float32)) == expected).all()


def test_values_near_the_largest_number_do_not_overflow() -> None:
    q, k, v = draws(np.random.default_rng(6), (1, 30, 8), (1, 500, 8), (1, 500, 8))
    k *= 10
    v = np.full_like(v, np.float32(3e38))
    assert np.allclose(attention(q, k, v), 3e38, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tokens", [1, 30])
def test_a_weight_too_small_for_its_type_is_zero_also_for_the_largest_value(dtype: Any, tokens: int) -> None:
    """The second score is so far below the first that e to their difference is 0: its value does not count."""
    k = np.zeros((2, 8), dtype)
    k[1, 0] = -1000
    v = np.full((2, 8), np.finfo(dtype).max, dtype)
    v[0] = 1
    assert (attention(np.full((tokens, 8), 8, dtype), k, v) == 1).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_large_scores_are_as_good_as_plain(dtype: Any) -> None:
    """Scores that rise along the keys make the running maximum move again and again."""
    q, k, v = draws(np.random.default_rng(8), (1, 30, 8), (1, 400, 8), (1, 400, 8), dtype=dtype)
    k = (k.astype(np.float32) * np.linspace(0, 30, 400, dtype=np.float32)[:, None]).astype(dtype)
    assert_as_good_as_plain(attention(q, k, v), q, k, v)


@pytest.mark.parametrize("scale", [0, -1.5, 3, 1e-6])
def test_any_scale(scale: float) -> None:
    q, k, v = draws(np.random.default_rng(9), *[(2, 33, 8)] * 3)
    assert_as_good_as_plain(attention(q, k, v, scale=scale), q, k, v, scale=scale)


@pytest.mark.parametrize(
    ("q", "k", "v"),
    [
        ((0, 8), (5, 8), (5, 4)),
        ((3, 8), (0, 8), (0, 4)),
        ((3, 0), (5, 0), (5, 4)),
        ((3, 8), (5, 8), (5, 0)),
        ((2, 0, 8), (2, 5, 8), (2, 5, 4)),
        ((0, 3, 8), (0, 5, 8), (0, 5, 4)),
        ((0, 2, 3, 8), (0, 2, 5, 8), (0, 2, 5, 4)),
        ((2, 2, 3, 8), (2, 1, 0, 8), (2, 1, 0, 4)),
        ((4, 0, 3, 8), (4, 2, 5, 8), (4, 2, 5, 4)),
    ],
)
def test_empty_axes(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> None:
    arrays = tuple(draws(np.random.default_rng(10), q, k, v))
    out, lse, weights = attention(*arrays, return_lse=True, return_weights=True)
    assert out.shape == (*q[:-1], v[-1])
    assert lse.shape == q[:-1]
    assert weights.shape == (*q[:-1], k[-2])
    if k[-2] == 0:
        assert (out == 0).all()
        assert (lse == -INF).all()
    assert_as_good_as_plain(out, arrays[0], arrays[1], arrays[2])


def test_empty_lengths_and_rows_beyond_every_key() -> None:
    q, k, v = draws(np.random.default_rng(11), *[(3, 1, 5, 8)] * 3)
    out, lse = attention(q, k, v, lengths=[0, 5, 2], return_lse=True)
    assert (out[0] == 0).all()
    assert (lse[0] == -INF).all()
    assert_as_good_as_plain(out, q, k, v, lengths=[0, 5, 2])
    out = attention(q, k, v, causal=True, offset=-3)
    assert (out[:, :, :3] == 0).all()
    assert_as_good_as_plain(out, q, k, v, causal=True, offset=-3)
    assert (attention(q, k, v, window=(1, 1), offset=100) == 0).all()


def test_a_window_wider_than_every_position_is_no_window() -> None:
    q, k, v = draws(np.random.default_rng(12), *[(1, 5, 8)] * 3)
    all_keys, before = attention(q, k, v, scale=1.0), attention(q, k, v, scale=1.0, causal=True)
    for wide in (sys.maxsize, 2**62, 10**30):
        assert (attention(q, k, v, scale=1.0, window=(wide, wide)) == all_keys).all()
        assert (attention(q, k, v, scale=1.0, window=(wide, 0)) == before).all()
        assert (attention(q, k, v, scale=1.0, window=(wide, wide), offset=-(2**60)) == all_keys).all()
    assert (attention(q, k, v, causal=True, offset=2**60, scale=1.0) == all_keys).all()


def lowest(dtype: Any) -> float:
    return float(np.finfo(dtype).min)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("tokens", "keys"), [(1, 5), (3, 40), (2, 700), (30, 5), (30, 700)])
def test_the_lowest_number_is_not_minus_infinity(dtype: Any, tokens: int, keys: int) -> None:
    """finfo.min hides a key beside others, as −∞ would; a row that has nothing else reads all that share it, alike."""
    rng = np.random.default_rng(13)
    q, k, v, dout = draws(rng, (2, tokens, 8), (2, keys, 8), (2, keys, 8), (2, tokens, 8), dtype=dtype)
    floor = lowest(dtype)
    mask = np.where(rng.random((tokens, keys)) < 0.5, 0, floor).astype(dtype)
    mask[0] = floor  # nothing else
    mask[0, 0] = -np.inf
    mask[-1, 1:4] = -np.inf
    masks = [mask]
    if dtype == np.float32:  # finfo.min of bfloat16, and of float64
        masks += [np.where(mask == floor, -3.38953139e38, mask).astype(DTYPES[3])]
        masks += [np.where(mask == floor, lowest(np.float64), mask.astype(np.float64))]
    for given in masks:
        out, lse, weights = attention(q, k, v, mask=given, return_lse=True, return_weights=True)
        exact, exact_lse, exact_weights = oracle.attention(q, k, v, mask=given)
        near = 1e-5 if dtype == np.float32 else 1e-13
        assert distance(out, exact) < near
        assert distance(attention(q, k, v, mask=given), exact) < near
        assert distance(weights, exact_weights) < near
        held = np.maximum(exact_lse, floor)
        assert np.allclose(lse.astype(held.dtype), held, rtol=near, atol=near)
        got = attention_backward(q, k, v, out, lse, dout, mask=given, mask_gradient=True)
        wanted = backward_oracle.gradients(q, k, v, exact, dout, sort=oracle.wider(dtype), mask=given)
        for mine, theirs in zip(got[:4], wanted[:4], strict=True):
            assert mine is not None
            assert theirs is not None
            tolerance = 0.01 if mine.dtype == DTYPES[3] else near
            assert distance(mine, theirs) < 20 * tolerance


@pytest.mark.parametrize("tokens", [1, 30])
def test_two_numbers_near_the_lowest_are_told_apart(tokens: int) -> None:
    q, k, v = draws(np.random.default_rng(14), (1, tokens, 8), (1, 100, 8), (1, 100, 8))
    mask = np.full((tokens, 100), lowest(np.float32), np.float32)
    mask[:, 50:52] = -3.0e38
    out, lse = attention(q, k, v, mask=mask, return_lse=True)
    assert np.allclose(out[0], v[0, 50:52].mean(0), atol=1e-6)
    assert (lse == np.float32(-3.0e38)).all()
    dout = np.ones_like(out)
    got = attention_backward(q, k, v, out, lse, dout, mask=mask)
    assert np.allclose(got.v[0, 50:52], tokens / 2)
    assert not np.delete(got.v[0], [50, 51], axis=0).any()


@pytest.mark.parametrize("tokens", [1, 30])
def test_scores_low_by_themselves_are_no_mask(tokens: int) -> None:
    """Their sums are as small as numbers get, beside a mask of zeros."""
    q, k = np.full((tokens, 2), -1e18, np.float32), np.array([[1e17, 1e17], [2e17, 1e17]], np.float32)
    v, mask = np.eye(2, dtype=np.float32), np.zeros((tokens, 2), np.float32)
    out, lse = attention(q, k, v, mask=mask, return_lse=True)
    assert (out == [1, 0]).all()
    assert np.allclose(lse, -(2**0.5) * 1e35)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tokens", [1, 30])
def test_a_softcap_on_scores_beyond_the_type(dtype: Any, tokens: int) -> None:
    """Sums that leave the type on their way and come back, and those that do not."""
    huge = float(np.finfo(dtype).max) / 2
    q = np.broadcast_to(np.array([2, 2, -2, -1.5], dtype), (tokens, 4))
    k = np.array(
        [[huge, huge, huge, huge], [huge, huge, huge, 0.9 * huge], [0.1, 0, 0, 0], [-huge, -huge, 0, 0]], dtype
    )
    k[0] = [huge, huge, 2 * (huge / 2), 4 / 3 * huge / 2]  # the exact sum is near 0 beside the terms
    v = np.eye(4, dtype=dtype)
    for cap in (2.0, 1e-50, 1e60):
        exact = oracle.attention(q, k, v, scale=1.0, softcap=cap)[0]
        assert distance(attention(q, k, v, scale=1.0, softcap=cap), exact) < 1e-6


@pytest.mark.parametrize("cap", [1e-60, 1e-39, 1e37, 1e38, 3e38, 1e39, 1e300])
def test_a_softcap_far_from_every_score(cap: float) -> None:
    q, k, v = draws(np.random.default_rng(15), *[(2, 20, 8)] * 3)
    for tokens in (1, 20):
        exact = oracle.attention(q[:, :tokens], k, v, softcap=cap)[0]
        assert distance(attention(q[:, :tokens], k, v, softcap=cap), exact) < 1e-6
