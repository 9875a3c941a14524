"""A pool of blocks for many sequences: what each holds is what was appended to it, whoever shares it."""

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from headwork.engine import PagedCache, attention
from headwork.errors import HeadworkError
from tests.engine.cases import distance

TYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64, np.int8, ml_dtypes.float8_e4m3fn]


def tokens(rng: Any, batch: int, count: int, heads: int = 2, d: int = 16) -> Any:
    return rng.normal(size=(batch, heads, count, d)).astype(np.float32)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("block_size", [1, 5, 16])
def test_sequences_that_begin_grow_fork_and_end(dtype: Any, block_size: int) -> None:
    """A drawn history, kept beside it as plain arrays: every sequence always holds its own past."""
    rng = np.random.default_rng(block_size)
    cache = PagedCache(2, 16, dtype=dtype, block_size=block_size, blocks=2)
    held: dict[int, tuple[Any, Any]] = {}
    for _ in range(60):
        what = rng.random()
        if what < 0.2 or not held:
            held[cache.begin()] = (np.zeros((1, 2, 0, 16), np.float32),) * 2
        elif what < 0.4:
            one = int(rng.choice(list(held)))
            held[cache.fork(one)] = held[one]
        elif what < 0.5 and len(held) > 2:
            one = int(rng.choice(list(held)))
            cache.free(one)
            del held[one]
        else:
            some = [int(n) for n in rng.permutation(list(held))[: 1 + int(rng.integers(3))]]
            count = int(rng.integers(0, 9))
            k, v = (tokens(rng, len(some), count) for _ in range(2))
            cache.append(some, k, v)
            for i, one in enumerate(some):
                past_k, past_v = held[one]
                held[one] = np.concatenate([past_k, k[i : i + 1]], 2), np.concatenate([past_v, v[i : i + 1]], 2)
    names = list(held)
    assert [cache.length(one) for one in names] == [held[one][0].shape[2] for one in names]
    q = tokens(rng, len(names), 1, 4).astype(np.float64 if dtype == np.float64 else np.float32)
    out = cache.attention(names, q)
    bound = {"float32": 1e-5, "float64": 1e-6, "float16": 2e-3, "bfloat16": 2e-2, "int8": 3e-2}
    for i, one in enumerate(names):
        k, v = (array.astype(q.dtype) for array in held[one])
        assert distance(out[i : i + 1], attention(q[i : i + 1], k, v)) <= bound.get(np.dtype(dtype).name, 0.2)


def test_a_fork_takes_no_room_until_it_goes_on() -> None:
    rng, cache = np.random.default_rng(0), PagedCache(2, 16, block_size=4, blocks=8)
    a = cache.begin()
    cache.append([a], tokens(rng, 1, 10), tokens(rng, 1, 10))
    b = cache.fork(a)
    assert "3 of 8 blocks" in repr(cache)
    before = cache.attention([a], np.ones((1, 2, 1, 16), np.float32))
    cache.append([b], tokens(rng, 1, 1), tokens(rng, 1, 1))  # its last block is copied, the two full ones are shared
    assert "4 of 8 blocks" in repr(cache)
    assert (cache.attention([a], np.ones((1, 2, 1, 16), np.float32)) == before).all()
    assert (cache.block_table([a, b])[0][:, :2] == cache.block_table([a])[0][0, :2]).all()
    cache.free(a)
    cache.free(b)
    assert "0 of 8 blocks" in repr(cache)


def test_a_full_cache_says_so_and_stays_as_it_was() -> None:
    rng, cache = np.random.default_rng(1), PagedCache(1, 8, block_size=2, blocks=1, limit=3)
    a, b = cache.begin(), cache.begin()
    cache.append([a, b], tokens(rng, 2, 2, 1, 8), tokens(rng, 2, 2, 1, 8))
    with pytest.raises(HeadworkError, match=r"the cache is full: 2 blocks more are needed.*may be 3.*free"):
        cache.append([a, b], tokens(rng, 2, 1, 1, 8), tokens(rng, 2, 1, 1, 8))
    assert (cache.length(a), cache.length(b)) == (2, 2)
    cache.free(b)
    cache.append([a], tokens(rng, 1, 4, 1, 8), tokens(rng, 1, 4, 1, 8))
    assert cache.length(a) == 6


def test_8_bits_take_a_quarter_of_the_room_and_a_scale() -> None:
    wide, narrow = (PagedCache(8, 128, dtype=dtype) for dtype in (np.float32, np.int8))
    assert narrow.nbytes == wide.nbytes // 4 + 2 * 64 * 8 * 16 * 4
    assert narrow.keys.dtype == np.int8
    assert wide.scales == (None, None)


def test_nothing_is_legal() -> None:
    cache = PagedCache(1, 8, 4)
    assert cache.attention([], np.ones((0, 1, 1, 8), np.float32)).shape == (0, 1, 1, 4)
    empty = cache.begin()
    assert (cache.attention([empty], np.ones((1, 1, 1, 8), np.float32)) == 0).all()
    cache.append([empty], np.ones((1, 1, 0, 8)), np.ones((1, 1, 0, 4)))
    assert cache.length(empty) == 0


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_a_type_that_ml_dtypes_has_is_known_by_its_name(name: str) -> None:
    """NumPy knows it once somebody has loaded that package; without it the error says what is missing."""
    ask = f"import headwork\nprint(headwork.PagedCache(1, 8, dtype={name!r}))"
    there = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    assert f"of 16 tokens, {name}>" in there.stdout, there.stderr
    missing = f"import sys\nsys.modules['ml_dtypes'] = None\n{ask}"
    said = subprocess.run([sys.executable, "-c", missing], capture_output=True, text=True).stderr
    assert "HeadworkError: this needs ml_dtypes, which is not installed" in said


def test_every_mistake_is_named() -> None:
    cache = PagedCache(1, 8)
    one, x = cache.begin(), np.ones((1, 1, 2, 8))
    cases: list[tuple[Any, str]] = [
        (lambda: PagedCache(0, 8), "kv_heads is 0"),
        (lambda: PagedCache(1, 8, block_size=2.5), "block_size is 2.5"),  # type: ignore[arg-type]  # on purpose
        (lambda: PagedCache(1, 8, dtype="int4"), "dtype is 'int4'"),
        (lambda: PagedCache(1, 8, limit=0), "limit is 0"),
        (lambda: cache.append([7], x, x), "there is no sequence 7 in the cache. It holds 0"),
        (lambda: cache.append(one, x, x), "sequences is 0. Give a list"),  # type: ignore[arg-type]  # on purpose
        (lambda: cache.append([one, one], x, x), "each may be named once"),
        (lambda: cache.append([one], x[0], x), "k and v are (1, 2, 8) and (1, 1, 2, 8)"),
        (lambda: cache.append([one], x, x[..., :4]), "take (batch, kv_heads, tokens, d)"),
        (lambda: cache.append([one], x.astype(int), x), "k holds int64"),
        (lambda: cache.attention([one], x, lengths=3), "lengths: the cache gives these itself"),
        (lambda: cache.free(3), "there is no sequence 3"),
    ]
    for call, message in cases:
        with pytest.raises(HeadworkError) as error:
            call()
        assert message in str(error.value)
    assert cache.length(one) == 0
