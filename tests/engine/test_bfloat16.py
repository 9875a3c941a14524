"""bfloat16 throughout: the CPU's own products of pairs or tiles where it has them, and what they step aside for."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from headwork.engine import attention, attention_varlen, backend
from headwork.engine.backend import kernel
from tests.engine.cases import BFLOAT16, Array, assert_at_most_twice_plain, distance, draws, items_for
from tests.engine.oracle import attention as exact

PAIRS = backend().cpu in ("avx512_bf16", "amx")
ALONE = pytest.mark.skipif(not PAIRS, reason="this CPU, or the one asked for, has no products of bfloat16 numbers")


@contextmanager
def in_float32() -> Iterator[None]:
    """The same width of vectors without those products."""
    assert kernel is not None
    chosen = kernel.cpu()
    assert kernel.use_cpu("avx512")
    try:
        yield
    finally:
        assert kernel.use_cpu(chosen)


def arrays(*shapes: tuple[int, ...], seed: int = 0) -> list[Array]:
    return draws(np.random.default_rng(seed), *shapes, dtype=BFLOAT16)


def same_bits(a: Array, b: Array) -> bool:
    return a.tobytes() == b.tobytes()


@pytest.mark.parametrize(("d_k", "d_v"), [(1, 1), (3, 5), (31, 33), (32, 16), (64, 64), (65, 17), (128, 40), (40, 130)])
def test_widths(d_k: int, d_v: int) -> None:
    items = items_for(66 * d_v)
    q, k, v = arrays((items, 2, 33, d_k), (items, 2, 131, d_k), (items, 2, 131, d_v))
    assert_at_most_twice_plain(attention(q, k, v), q, k, v)


@pytest.mark.parametrize("tokens", [9, 16, 17, 48, 49, 97])
@pytest.mark.parametrize("keys", [1, 2, 15, 127, 128, 129, 300])
def test_tokens_and_keys(tokens: int, keys: int) -> None:
    items = items_for(40 * tokens)
    q, k, v = arrays((items, 2, tokens, 24), (items, 1, keys, 24), (items, 1, keys, 20))
    for causal in (False, "top_left", "bottom_right"):
        assert_at_most_twice_plain(attention(q, k, v, causal=causal), q, k, v, causal=causal)


RNG = np.random.default_rng(3)
OPTIONS: dict[str, dict[str, Any]] = {
    "window at an odd key": {"window": (13, 4), "offset": 30},
    "causal window": {"causal": "bottom_right", "window": (21, -1)},
    "lengths": {"lengths": [147, 75, 1]},
    "Boolean mask": {"mask": RNG.random((3, 6, 70, 150)) < 0.3},
    "mask in blocks": {"mask": np.repeat(RNG.random((70, 15)) < 0.5, 10, axis=-1)},
    "additive mask": {"mask": RNG.standard_normal((6, 70, 150)).astype(np.float32)},
    "softcap": {"softcap": 2.5},
    "sinks": {"sinks": RNG.standard_normal(6).astype(np.float32)},
    "alibi": {"alibi": np.linspace(0.1, 1, 6, dtype=np.float32)},
    "scale": {"scale": -0.3},
    "large scores": {"scale": 40.0},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str) -> None:
    """With grouped heads; the log-sum-exp keeps the digits of float32, whatever is done to the weights."""
    q, k, v = arrays((3, 6, 70, 36), (3, 2, 150, 36), (3, 2, 150, 18))
    options = OPTIONS[name]
    out, lse = attention(q, k, v, return_lse=True, **options)
    assert_at_most_twice_plain(out, q, k, v, **options)
    finer = exact(q, k, v, **options)[1]
    large = np.abs(finer[np.isfinite(finer)]).max()
    assert distance(lse, finer) <= 1e-6 * (1 + large)


def test_a_row_that_reads_one_key_is_its_value() -> None:
    q, k, v = arrays((2, 300, 64), (2, 300, 64), (2, 300, 64))
    assert same_bits(attention(q, k, v, window=(0, 0)), v)
    assert same_bits(attention(q, k, v, causal=True)[:, 0], v[:, 0])
    assert (attention(q, k, np.ones_like(v)) == 1).all()


def test_packed_sequences() -> None:
    q, k, v = arrays((90, 2, 32), (90, 2, 32), (90, 2, 32))
    ends = np.array([0, 40, 41, 90])
    got = attention_varlen(q, k, v, ends, ends, causal=True)
    for a, b in pairwise(ends):
        alone = attention(*(x[a:b].swapaxes(0, 1) for x in (q, k, v)), causal=True)
        assert distance(got[a:b].swapaxes(0, 1), alone.astype(np.float32)) < 0.02


def test_few_panels_share_the_keys_and_any_number_of_threads_gives_the_same_bits() -> None:
    q, k, v = arrays((1, 2, 40, 64), (1, 2, 3000, 64), (1, 2, 3000, 64))
    got = attention(q, k, v, threads=1)
    assert_at_most_twice_plain(got, q, k, v)
    assert all(same_bits(attention(q, k, v, threads=n), got) for n in (2, 3, 5))


@ALONE
def test_the_products_are_used() -> None:
    """They round otherwise, in the last digits of float32."""
    q, k, v = arrays((2, 100, 64), (2, 200, 64), (2, 200, 64))
    _, lse = attention(q, k, v, return_lse=True)
    with in_float32():
        _, other = attention(q, k, v, return_lse=True)
    assert 0 < np.abs(lse - other).max() < 1e-5


STEPS_ASIDE = ["float32 queries", "scale", "columns apart", "few rows"]


@ALONE
@pytest.mark.parametrize("name", [*STEPS_ASIDE, "float32 out"] if backend().cpu == "amx" else STEPS_ASIDE)
def test_a_call_that_is_not_for_them_is_worked_in_float32(name: str) -> None:
    q, k, v = arrays((2, 100, 64), (2, 200, 64), (2, 200, 64))
    options: dict[str, Any] = {"scale": 2.0**-50} if name == "scale" else {}
    if name == "float32 out":
        options = {"out": np.empty(q.shape, np.float32)}
    if name == "float32 queries":
        q = q.astype(np.float32)
    if name == "columns apart":
        k = np.repeat(k, 2, axis=-1)[..., ::2]
    if name == "few rows":
        q = q[:, :1]
    out, lse = attention(q, k, v, return_lse=True, **options)
    bits = out.tobytes(), lse.tobytes()
    with in_float32():
        out, lse = attention(q, k, v, return_lse=True, **options)
    assert bits == (out.tobytes(), lse.tobytes())


def test_the_result_is_that_of_float32_weights() -> None:
    """Not of weights in bfloat16, which are off by as much as the result is, and by all of a small one."""
    q, k, v = arrays((4, 60, 32), (4, 90, 32), (4, 90, 32))
    got, finer = attention(q, k, v).astype(np.float64), exact(q, k, v)[0]
    assert (np.abs(got - finer) <= 2.0**-8 * np.abs(finer) + 1e-5).all()


@pytest.mark.parametrize("which", ["q", "k", "v"])
@pytest.mark.parametrize("odd", [2.0**-130, -(2.0**-133), np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_usual_is_worked_in_float32(which: str, odd: float) -> None:
    """Also where it is hidden from some rows, or from all."""
    named: dict[str, Any] = dict(zip("qkv", arrays((2, 100, 64), (2, 300, 64), (2, 300, 64)), strict=True))
    named[which][-1, 99, -1] = odd
    q, k, v = named.values()
    several: list[dict[str, Any]] = [{}, {"causal": "top_left"}, {"mask": np.arange(300) != 99}]
    for options in several:
        got, lse = attention(q, k, v, return_lse=True, **options)
        want = exact(q, k, v, **options)[0]
        assert (np.isnan(got) == np.isnan(want)).all()
        assert distance(got, np.where(np.isnan(want), np.nan, want)) < 0.02
        if PAIRS and (which != "v" or backend().cpu == "amx"):
            with in_float32():
                assert same_bits(lse, attention(q, k, v, return_lse=True, **options)[1])


def test_numbers_below_the_least_normal_one_count() -> None:
    """A score of 1 that comes of them, and values of nothing else."""
    q, k = (np.zeros((1, 40, 8), BFLOAT16) for _ in range(2))
    (v,) = arrays((1, 40, 8))
    q[..., 0], k[:, 7, 0] = 2.0**120, 2.0**-127
    got = attention(q, k, v, scale=2.0**10)
    assert distance(got, exact(q, k, v, scale=2.0**10)[0]) < 0.02
    assert distance(got, np.broadcast_to(v.astype(np.float64).mean(1), got.shape)) > 0.02
    small = (v.astype(np.float32) * 2.0**-130).astype(BFLOAT16)
    assert (attention(q, k, small, scale=2.0**10) != 0).mean() > 0.9


def test_scores_beyond_float32_give_the_limit() -> None:
    q, k, v = arrays((1, 40, 16), (1, 60, 16), (1, 60, 16))
    q[0, 3], k[0, 5] = 1e30, 1e30
    got = attention(q, k, v)
    assert distance(got, exact(q, k, v)[0]) < 0.02
    assert same_bits(got[0, 3], v[0, 5])
