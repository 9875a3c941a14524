"""Attention a block of keys at a time: the parts make the whole, with its gradients, in every type."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from headwork.engine import (
    add_gradients,
    attention,
    attention_backward,
    attention_varlen,
    attention_varlen_backward,
    continue_attention,
    merge_into,
)
from headwork.errors import HeadworkError
from tests.engine import backward_oracle, oracle
from tests.engine.cases import DTYPES, Array, accumulates, distance, draws, eps

BOUND = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 2e-5}
# tokens, keys, heads, key heads, d_k, d_v, options; the blocks of keys end at a third and at two thirds
CASES: dict[str, tuple[tuple[int, int, int, int, int, int], dict[str, Any]]] = {
    "dense": ((37, 61, 3, 3, 16, 16), {}),
    "grouped, d_v ≠ d_k": ((37, 61, 8, 2, 16, 24), {}),
    "causal, first rows read nothing": ((40, 61, 6, 1, 8, 8), {"causal": True, "offset": -9}),
    "causal, grouped, softcap, scale": ((97, 97, 4, 2, 12, 5), {"causal": True, "softcap": 3.0, "scale": 0.4}),
    "window": ((90, 90, 2, 2, 16, 16), {"window": (10, 5), "offset": 3}),
    "only its own": ((90, 90, 2, 1, 16, 16), {"window": (0, 0), "offset": 0}),
    "few tokens": ((2, 700, 4, 2, 16, 16), {"causal": True, "offset": 650}),
    "lengths and starts": ((20, 60, 2, 2, 16, 16), {"lengths": [50, 0], "starts": [3, 0]}),
}


def blocks(keys: int, **options: Any) -> Iterator[tuple[slice, dict[str, Any]]]:
    """Three blocks of the keys, and the options for each as seen from its first key."""
    cuts = [0, keys // 3, keys * 2 // 3, keys]
    for first, last in pairwise(cuts):
        here = dict(options)
        if "offset" in here or here.get("causal"):
            here["offset"] = here.get("offset", 0) - first
        for name in ("lengths", "starts"):
            if name in here:
                here[name] = np.clip(np.asarray(here[name]) - first, 0, last - first)
        yield slice(first, last), here


def in_blocks(q: Array, k: Array, v: Array, dout: Array, fine: bool = False, **options: Any) -> list[Array]:
    """out, lse, dq, dk, dv, worked block by block."""
    sort = accumulates(q.dtype)
    out, lse = np.zeros(dout.shape, sort), np.full(dout.shape[:-1], -np.inf, np.float64 if fine else sort)
    parts = list(blocks(k.shape[-2], **options))
    for at, here in parts:
        continue_attention(q, k[..., at, :], v[..., at, :], out, lse, **here)
    delta = (out * dout).sum(-1).astype(sort)
    dq, dk, dv = (np.ones(a.shape, sort) for a in (q, k, v))  # added to, not written over
    for at, here in parts:
        mine = k[..., at, :], v[..., at, :]
        add_gradients(q, *mine, dout, lse, delta, dq, dk[..., at, :], dv[..., at, :], **here)
    return [out, lse, dq - 1, dk - 1, dv - 1]


def close(got: Array, wanted: Array, dtype: Any) -> None:
    size = np.abs(np.where(np.isfinite(wanted), wanted, 0)).max(initial=1)
    assert distance(got, wanted) <= BOUND[np.dtype(accumulates(dtype))] * size


@pytest.mark.parametrize("fine", [False, True], ids=["lse as the sums", "lse in float64"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_blocks_make_the_whole(case: Any, dtype: Any, fine: bool) -> None:
    """Judged by the formula in a finer type, on the same (rounded) numbers; out and gradients are not 16-bit."""
    (tokens, keys, heads, kv_heads, d_k, d_v), options = case
    shapes = (2, heads, tokens, d_k), (2, kv_heads, keys, d_k), (2, kv_heads, keys, d_v), (2, heads, tokens, d_v)
    q, k, v, dout = draws(np.random.default_rng(3), *shapes, dtype=dtype)
    out, lse, *found = in_blocks(q, k, v, dout, fine, **options)
    whole, sums, _ = oracle.attention(q, k, v, **options)
    wanted = backward_oracle.gradients(q, k, v, whole, dout, sort=oracle.wider(q.dtype), **options)
    assert lse.dtype == (np.float64 if fine else accumulates(dtype))
    for got, want in zip((out, lse, *found), (whole, sums, *wanted), strict=False):
        close(got, want, dtype)


def test_the_same_bits_for_any_number_of_threads() -> None:
    q, k, v, dout = draws(np.random.default_rng(4), (1, 4, 150, 32), (1, 2, 300, 32), (1, 2, 300, 32), (1, 4, 150, 32))
    first = in_blocks(q, k, v, dout, causal=True, offset=80, threads=1)
    for threads in (2, 3):
        again = in_blocks(q, k, v, dout, causal=True, offset=80, threads=threads)
        assert all((a == b).all() for a, b in zip(first, again, strict=True))


def test_any_strides() -> None:
    """Every second row and column of larger arrays, read and written where they lie; the rest stays as it was."""
    rng = np.random.default_rng(5)
    shapes = (1, 2, 60, 32), (1, 2, 80, 32), (1, 2, 80, 32), (1, 2, 60, 32)
    q, k, v, dout = (a[..., ::2, ::2] for a in draws(rng, *shapes))
    room = np.zeros((1, 2, 60, 32), np.float32)
    rows = np.full((1, 2, 60), -np.inf, np.float32)
    out, lse = room[..., ::2, ::2], rows[..., ::2]
    continue_attention(q, k, v, out, lse)
    whole, sums = attention(q, k, v, return_lse=True)
    assert distance(out, whole) <= 1e-6
    assert distance(lse, sums) <= 1e-6
    assert (room[..., 1::2] == 0).all()
    assert (rows[..., 1::2] == -np.inf).all()
    delta = (whole * dout).sum(-1)
    into = [np.zeros((1, 2, n, 32), np.float32) for n in (60, 80, 80)]
    add_gradients(q, k, v, dout, lse, delta, *(a[..., ::2, ::2] for a in into))
    for got, want in zip(into, attention_backward(q, k, v, whole, sums, dout)[:3], strict=True):
        assert distance(got[..., ::2, ::2], want) <= 1e-5
        assert (got[..., 1::2, :] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_spans_that_share_keys(dtype: Any, layout: Any) -> None:
    """Runs of tokens on runs of keys that overlap: each as if it were alone, the gradients of shared keys summed."""
    spans = [(0, 40, 10, 90, 50), (40, 1, 0, 120, 7), (50, 30, 60, 60, 0), (80, 20, 0, 10, -5)]
    axes = (0, 1, 2) if layout == "bhsd" else (1, 0, 2)
    shapes = (4, 100, 16), (2, 120, 16), (2, 120, 8), (4, 100, 8)
    q, k, v, dout = (a.transpose(axes) for a in draws(np.random.default_rng(6), *shapes, dtype=dtype))
    sort = accumulates(dtype)
    out, lse = np.zeros(dout.shape, sort), np.full((4, 100), -np.inf, sort)
    told: dict[str, Any] = {"spans": spans, "window": (30, 4), "layout": layout}
    continue_attention(q, k, v, out, lse, **told)
    heads = out.transpose(axes)
    delta = (heads * dout.transpose(axes)).sum(-1).astype(sort)
    into = [np.zeros(a.shape, sort) for a in (q, k, v)]
    add_gradients(q, k, v, dout, lse, delta, into[0], into[1], into[2], **told)
    q, k, v, dout, *into = (a.transpose(axes) for a in (q, k, v, dout, *into))
    wanted = [np.zeros(a.shape, oracle.wider(q.dtype)) for a in (q, k, v)]
    for token0, tokens, key0, keys, offset in spans:
        t, s = slice(token0, token0 + tokens), slice(key0, key0 + keys)
        whole, sums, _ = oracle.attention(q[:, t], k[:, s], v[:, s], window=(30, 4), offset=offset)
        close(heads[:, t], whole, dtype)
        close(lse[:, t], sums, dtype)
        more = backward_oracle.gradients(
            q[:, t], k[:, s], v[:, s], whole, dout[:, t], sort=oracle.wider(q.dtype), window=(30, 4), offset=offset
        )
        for want, some, at in zip(wanted, more, (t, s, s), strict=False):
            want[:, at] += some
    for got, want in zip(into, wanted, strict=True):
        close(got, want, dtype)
    assert (lse[:, 41:50] == -np.inf).all()  # in no span


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", ["shd", "hsd"])
def test_the_gradients_of_packed_sequences(dtype: Any, layout: Any) -> None:
    lengths_q, lengths_k = [5, 0, 37, 1, 130], [9, 4, 37, 0, 260]
    at_q, at_k = np.cumsum([0, *lengths_q]), np.cumsum([0, *lengths_k])
    shapes = (173, 4, 16), (310, 2, 16), (310, 2, 24), (173, 4, 24)
    axes = (0, 1, 2) if layout == "shd" else (1, 0, 2)
    q, k, v, dout = (a.transpose(axes) for a in draws(np.random.default_rng(0), *shapes, dtype=dtype))
    told: dict[str, Any] = {"causal": "bottom_right", "window": (50, 60), "layout": layout}
    out, lse = attention_varlen(q, k, v, at_q, at_k, return_lse=True, **told)
    found = attention_varlen_backward(q, k, v, out, lse, dout, at_q, at_k, **told)
    again = attention_varlen_backward(q, k, v, out, lse.astype(np.float64), dout, at_q, at_k, **told)
    axis = 0 if layout == "shd" else 1
    told["layout"] = "bshd" if layout == "shd" else "bhsd"
    for i in range(5):
        rows, keys = (np.arange(a[i], a[i + 1]) for a in (at_q, at_k))
        arrays = [a.take(at, axis) for a, at in ((q, rows), (k, keys), (v, keys), (out, rows))]
        mine = arrays[0], arrays[1], arrays[2], arrays[3]
        alone = attention_backward(*mine, lse[:, rows], dout.take(rows, axis), **told)
        for got, fine, want, at in zip(found[:3], again[:3], alone[:3], (rows, keys, keys), strict=True):
            for one in (got, fine):
                assert one.dtype == dtype
                assert distance(one.take(at, axis), want) <= 16 * eps(dtype) * np.abs(want.astype(float)).max(initial=1)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_merging_in_place(dtype: Any) -> None:
    """Rows that read nothing on either side or on both, scores apart by more than a type holds, finer outs."""
    rng = np.random.default_rng(7)
    sort = accumulates(dtype)
    out = rng.standard_normal((2, 3, 6, 5)).astype(sort)
    added = rng.standard_normal((2, 3, 6, 5)).astype(dtype)
    lse, added_lse = (rng.standard_normal((2, 3, 6)).astype(sort) * 3 for _ in range(2))
    lse[..., 0] = added_lse[..., 1] = lse[..., 2] = added_lse[..., 2] = -np.inf
    lse[..., 3], added_lse[..., 4] = 1e4, 1e4
    out[..., 0, :] = out[..., 2, :] = np.nan  # was never worked out
    added[..., 1, :] = np.nan
    wide = oracle.wider(np.dtype(sort))
    total = np.logaddexp(lse.astype(wide), added_lse.astype(wide))
    with np.errstate(invalid="ignore"):
        a, b = (np.where(x == -np.inf, 0, np.exp(x - total))[..., None] for x in (lse, added_lse))
        want = np.where(a > 0, a * out, 0) + np.where(b > 0, b * added.astype(wide), 0)
    merge_into(out, lse, added, added_lse)
    assert distance(out, want) <= 4 * np.finfo(sort).eps * 4
    assert distance(lse, total) <= 1e4 * np.finfo(sort).eps
    assert (out[..., 2, :] == 0).all()


def test_float32_results_of_16_bit_queries() -> None:
    """What is given as float32 is not rounded to 16 bits on the way."""
    q = draws(np.random.default_rng(8), (2, 9, 8), dtype=np.float16)[0]
    out = np.empty((2, 9, 8), np.float32)
    assert attention(q, q, q, out=out) is out
    assert distance(out, oracle.attention(q, q, q)[0]) <= 1e-6


def test_what_does_not_fit_is_refused() -> None:
    q = np.zeros((1, 2, 4, 8), np.float16)
    out, lse = np.zeros((1, 2, 4, 8), np.float32), np.zeros((1, 2, 4), np.float32)
    with pytest.raises(HeadworkError, match="out is float16"):
        continue_attention(q, q, q, out.astype(np.float16), lse)
    with pytest.raises(HeadworkError, match="lse is a list"):
        continue_attention(q, q, q, out, lse.tolist())  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(HeadworkError, match="out shares memory with k"):
        continue_attention(out.copy(), out, out, out, lse)
    with pytest.raises(HeadworkError, match="out is read-only"):
        continue_attention(q, q, q, np.broadcast_to(out, out.shape), lse)
    with pytest.raises(HeadworkError, match="three axes"):
        continue_attention(q, q, q, out, lse, spans=[(0, 4, 0, 4, 0)])
    with pytest.raises(HeadworkError, match="spans lead out of the 4 keys"):
        continue_attention(q[0], q[0], q[0], out[0], lse[0], spans=[(0, 4, 1, 4, 0)])
    with pytest.raises(HeadworkError, match="share none"):
        continue_attention(q[0], q[0], q[0], out[0], lse[0], spans=[(0, 3, 0, 4, 0), (2, 2, 0, 4, 0)])
    with pytest.raises(HeadworkError, match="leave offset out"):
        continue_attention(q[0], q[0], q[0], out[0], lse[0], spans=[(0, 3, 0, 4, 0)], offset=1)
    with pytest.raises(HeadworkError, match="broadcast along no batch axis"):
        add_gradients(q, q[0], q[0], out, lse, lse, out.copy(), out[0].copy(), out[0].copy())
    dk = out.copy()
    with pytest.raises(HeadworkError, match="dv shares memory with dk"):
        add_gradients(q, q, q, out, lse, lse, out.copy(), dk, dk)
    with pytest.raises(HeadworkError, match="delta is float64"):
        add_gradients(q, q, q, out, lse, lse.astype(np.float64), out.copy(), out.copy(), out.copy())
    with pytest.raises(HeadworkError, match="float64 does not mix"):
        merge_into(out, lse, out.astype(np.float64), lse)
