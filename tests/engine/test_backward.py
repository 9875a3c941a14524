"""The gradients: every option against the formula, hidden places, threads."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from headwork.engine import Gradients, attention, attention_backward
from headwork.errors import HeadworkError, ShapeError
from tests.engine import oracle
from tests.engine.backward_oracle import gradients
from tests.engine.cases import DTYPES, Array, accumulates, draws, eps, spread, too_small
from tests.engine.test_options import Drawn, drawn


def worked(q: Array, k: Array, v: Array, dout: Array, **options: Any) -> Gradients:
    threads = options.pop("threads", None)
    out, lse = attention(q, k, v, return_lse=True, **options)
    mask = options.get("mask")
    additive = mask is not None and mask.dtype != np.bool_
    asked: dict[str, Any] = {"mask_gradient": additive, "bias_gradient": "alibi" in options or "relative" in options}
    return attention_backward(q, k, v, out, lse, dout, threads=threads, **asked, **options)


def assert_as_good_as_plain(q: Array, k: Array, v: Array, dout: Array, **options: Any) -> None:
    """At most twice the error of the same formula in plain NumPy, both against a finer type, and some last places."""
    got = worked(q, k, v, dout, **options)
    out = attention(q, k, v, **options)
    plain = gradients(q, k, v, out, dout, sort=accumulates(q.dtype), **options)
    finer = gradients(q, k, v, out, dout, sort=oracle.wider(q.dtype), **options)
    lost = cancelled(q, k, v, dout, **options)
    for name, ours, near, exact in zip("qkvmsar", got, plain, finer, strict=True):
        if ours is None or near is None or exact is None:
            assert ours is None
            assert exact is None
            continue
        size = float(np.abs(exact).max(initial=0))
        allowed = 2 * spread(near, exact) + eps(ours.dtype) * size + 4 * eps(accumulates(q.dtype)) * lost[name]
        assert spread(ours, exact) <= allowed + too_small(ours.dtype), name


def cancelled(q: Array, k: Array, v: Array, dout: Array, **options: Any) -> dict[str, float]:
    """The size of what a gradient is the difference of: it is only as good as that. Roundings add up as random
    steps do.

    With one key, say, every ds = 1·(dp − δ) is 0, and what is left is the rounding of dp, once for every row.
    """
    most = {
        name: float(np.abs(a.astype(float)).max(initial=0)) for name, a in zip("qkvd", (q, k, v, dout), strict=True)
    }
    scale = abs(q.shape[-1] ** -0.5 if options.get("scale") is None else options["scale"])
    terms, rows = most["d"] * most["v"] * v.shape[-1] ** 0.5, (dout.size / v.shape[-1]) ** 0.5
    return {
        "q": terms * most["k"] * scale,
        "k": terms * most["q"] * scale * rows,
        "v": most["d"] * rows,
        "m": terms * rows,
        "s": terms * rows,
        "a": terms * rows * max(q.shape[-3:-1] + k.shape[-3:-1]),
        "r": terms * rows,
    }


@settings(deadline=None, max_examples=120, suppress_health_check=list(HealthCheck))
@given(drawn())
def test_every_option_together(case: Drawn) -> None:
    q, v = case.q, case.v
    shape = (*np.broadcast_shapes(q.shape[:-3], v.shape[:-3]), *q.shape[-3:-1], v.shape[-1])
    dout = np.random.default_rng(0).standard_normal(shape).astype(q.dtype)
    assert_as_good_as_plain(case.q, case.k, case.v, dout, **case.options)
    one, many = (worked(case.q, case.k, case.v, dout, threads=n, **case.options) for n in (1, 3))
    for a, b in zip(one, many, strict=True):
        assert a is b is None or (a is not None and b is not None and (a == b).all())


SIZES = [(59, 97, 33, 65), (97, 1025, 64, 64), (300, 47, 7, 1), (1, 500, 128, 16), (200, 1, 16, 16), (193, 193, 40, 72)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("tokens", "keys", "d_k", "d_v"), SIZES)
def test_awkward_sizes(tokens: int, keys: int, d_k: int, d_v: int, dtype: Any) -> None:
    rng = np.random.default_rng(tokens)
    q, k, v, dout = draws(rng, (4, tokens, d_k), (2, keys, d_k), (2, keys, d_v), (4, tokens, d_v), dtype=dtype)
    for options in ({}, {"causal": "bottom_right"}, {"window": (40, 8)}):
        assert_as_good_as_plain(q, k, v, dout, **options)


def test_the_slope_of_the_function_itself() -> None:
    """Finite differences know nothing of the formula."""
    rng = np.random.default_rng(3)
    q, k, v, dout, way = draws(rng, (4, 5, 6), (2, 7, 6), (2, 7, 3), (4, 5, 3), (4, 5), dtype=np.float64)
    mask = np.where(rng.random((5, 7)) < 0.8, rng.standard_normal((5, 7)), -np.inf)
    sinks, alibi, relative = draws(rng, (4,), (4,), (4, 5), dtype=np.float64)
    options: dict[str, Any] = {"softcap": 2.0, "causal": "bottom_right", "starts": 1, "dropout": 0.3, "seed": 5}
    given = {"mask": mask, "sinks": sinks, "alibi": alibi, "relative": relative}

    def total(*arrays: Array) -> float:
        now: dict[str, Any] = options | dict(zip(given, arrays[3:], strict=True))
        out, lse = attention(arrays[0], arrays[1], arrays[2], **now, return_lse=True)
        return float((out * dout).sum() + np.where(np.isfinite(lse), lse * way, 0).sum())

    options_now: dict[str, Any] = options | given
    out, lse = attention(q, k, v, **options_now, return_lse=True)
    asked: dict[str, Any] = {"dlse": way, "mask_gradient": True, "bias_gradient": True}
    got = attention_backward(q, k, v, out, lse, dout, **asked, **options_now)
    arrays, step = [q, k, v, *given.values()], 1e-6
    for n, gradient in enumerate(got):
        assert gradient is not None
        for at in np.ndindex(*arrays[n].shape):
            if not np.isfinite(arrays[n][at]):
                assert gradient[at] == 0
                continue
            up, down = ([a.copy() for a in arrays] for _ in range(2))
            up[n][at] += step
            down[n][at] -= step
            assert abs((total(*up) - total(*down)) / (2 * step) - gradient[at]) < 1e-7


THREADED = [((1, 8, 300, 64), (1, 8, 300, 64)), ((1, 1, 500, 32), (1, 1, 1500, 32)), ((2, 4, 97, 33), (2, 2, 700, 33))]


@pytest.mark.parametrize(("q_shape", "k_shape"), THREADED)
def test_the_same_bits_for_any_number_of_threads(q_shape: tuple[int, ...], k_shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    q, k, v, dout = draws(rng, q_shape, k_shape, k_shape, q_shape)
    mask = rng.standard_normal((q_shape[-2], 1)).astype(np.float32) + np.zeros(k_shape[-2], np.float32)
    for options in ({}, {"causal": "bottom_right"}, {"mask": mask}):
        one = worked(q, k, v, dout, threads=1, **options)
        for threads in (2, 3, 16):
            many = worked(q, k, v, dout, threads=threads, **options)
            assert all((a == b).all() for a, b in zip(one, many, strict=True) if a is not None and b is not None)


def test_what_is_hidden_is_not_read() -> None:
    """NaN in a key, a value, a query or an upward gradient reaches only what may read it, or be read by it."""
    rng = np.random.default_rng(5)
    q, k, v, dout = draws(rng, *[(1, 120, 16)] * 4)
    clean = worked(q, k, v, dout, causal=True)
    for array in (k, v):
        odd = array.copy()
        odd[0, 100] = np.nan
        got = worked(q, odd if array is k else k, odd if array is v else v, dout, causal=True)
        assert np.allclose(got.q[0, :100], clean.q[0, :100], atol=1e-6)
        assert np.isnan(got.q[0, 100:]).all()
    for array in (q, dout):
        odd = array.copy()
        odd[0, 20] = np.nan
        got = worked(odd if array is q else q, k, v, odd if array is dout else dout, causal=True)
        assert np.allclose(got.k[0, 21:], clean.k[0, 21:], atol=1e-6)
        assert np.allclose(got.v[0, 21:], clean.v[0, 21:], atol=1e-6)
        assert np.isnan(got.v[0, :21]).all()


def test_padding_is_not_read() -> None:
    q, k, v, dout = draws(np.random.default_rng(6), *[(2, 3, 40, 8)] * 4)
    k[1, :, 25:] = v[1, :, 25:] = np.nan
    got = worked(q, k, v, dout, lengths=[40, 25])
    assert all(np.isfinite(a).all() for a in got[:3])
    assert not got.k[1, :, 25:].any()
    assert not got.v[1, :, 25:].any()


def test_a_token_without_a_key_has_no_gradient() -> None:
    q, k, v, dout = draws(np.random.default_rng(7), *[(2, 30, 8)] * 4)
    mask = np.ones((30, 30), bool)
    mask[11] = False
    got = worked(q, k, v, dout, mask=mask)
    assert not got.q[:, 11].any()
    rest = np.delete(np.arange(30), 11)
    alone = worked(q[:, rest], k, v, dout[:, rest])
    assert np.abs(got.k - alone.k).max() < 1e-5
    assert np.abs(got.v - alone.v).max() < 1e-5


@pytest.mark.parametrize("shape", [(2, 0, 4), (0, 5, 4), (2, 5, 4)])
def test_empty_axes(shape: tuple[int, ...]) -> None:
    q, k = np.ones(shape), np.ones((*shape[:1], 0, 4))
    got = worked(q, k, k, np.ones(shape))
    assert got.q.shape == shape
    assert not got.q.any()
    assert got.k.shape == got.v.shape == k.shape


def test_what_does_not_fit_is_refused() -> None:
    x = np.ones((2, 5, 4), np.float32)
    out, lse = attention(x, x, x, return_lse=True)
    with pytest.raises(
        ShapeError, match=r"dout is float32 \(2, 5, 3\), but for these q, k and v it is float32 \(2, 5, 4\)"
    ):
        attention_backward(x, x, x, out, lse, x[..., :3])
    with pytest.raises(ShapeError, match="lse is float16"):
        attention_backward(x, x, x, out, lse.astype(np.float16), x)
    with pytest.raises(HeadworkError, match="no additive mask"):
        attention_backward(x, x, x, out, lse, x, mask=np.ones((5, 5), bool), mask_gradient=True)
