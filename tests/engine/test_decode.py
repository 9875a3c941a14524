"""Decoding from a cache, of any stored type, in one piece or in blocks: as the formula has it."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from headwork.engine import attention, attention_decode, quantize
from headwork.engine.backend import kernel
from headwork.errors import HeadworkError
from tests.engine import oracle
from tests.engine.cases import distance

FP8 = (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))
STORED = [np.dtype(t) for t in ("float32", "float16", "float64", "int8")] + [np.dtype(ml_dtypes.bfloat16), *FP8]
EIGHT = ("int8", "float8_e4m3fn", "float8_e5m2")


def stored(x: Any, dtype: Any) -> tuple[Any, Any]:
    return quantize(x, dtype) if dtype.name in EIGHT else (x.astype(dtype), None)


def finer(numbers: Any, scales: Any) -> Any:
    """What a stored number stands for, in float64."""
    wide = numbers.astype(np.float64)
    return wide if scales is None else wide * np.broadcast_to(scales, numbers.shape[:-1])[..., None].astype(np.float64)


def paged(rng: Any, arrays: list[Any], size: int, spare: int = 3) -> tuple[list[Any], Any]:
    """The (batch, kv_heads, keys, …) arrays cut into blocks that lie in no order, and the table that finds them."""
    batch, _, keys = arrays[0].shape[:3]
    each = -(-keys // size)
    places = rng.permutation(batch * each + spare)[: batch * each].reshape(batch, each)
    pools = []
    for array in arrays:
        room = np.zeros((*array.shape[:2], each * size, *array.shape[3:]), array.dtype)
        room[:, :, :keys] = array
        pool = np.full((batch * each + spare, array.shape[1], size, *array.shape[3:]), 77, array.dtype)
        for item in range(batch):
            for block in range(each):
                pool[places[item, block]] = room[item, :, block * size : (block + 1) * size]
        pools.append(pool)
    return pools, places


def options_of(rng: Any, heads: int) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "window": (int(rng.integers(0, 90)), int(rng.integers(-1, 5))),
        "softcap": float(rng.uniform(1, 30)),
        "sinks": rng.normal(size=heads),
        "alibi": rng.uniform(0, 0.1, size=heads),
        "relative": rng.normal(size=(heads, 9)),
        "scale": float(rng.uniform(-0.3, 0.6)),
    }
    return {name: value for name, value in drawn.items() if rng.random() < 0.3}


@pytest.mark.parametrize("dtype", STORED, ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_a_drawn_case_is_what_the_formula_says(dtype: Any, seed: int) -> None:
    """Grouped heads, several tokens, odd widths, odd blocks, lengths from 0 up: one piece and blocks."""
    rng = np.random.default_rng([seed, STORED.index(dtype)])
    batch, kv_heads, group, tokens = (int(rng.integers(1, n)) for n in (4, 4, 5, 5))
    keys, d_k, d_v = int(rng.integers(1, 200)), int(rng.choice([8, 16, 33, 64, 128])), int(rng.choice([4, 16, 31, 96]))
    wide = np.float64 if dtype == np.float64 else np.float32
    q = rng.normal(size=(batch, kv_heads * group, tokens, d_k)).astype(wide)
    k, k_scales = stored(rng.normal(size=(batch, kv_heads, keys, d_k)).astype(wide), dtype)
    v, v_scales = stored(rng.normal(size=(batch, kv_heads, keys, d_v)).astype(wide), dtype)
    lengths = rng.integers(0, keys + 1, size=batch)
    options = options_of(rng, kv_heads * group)
    causal = bool(rng.random() < 0.8)
    said = {"lengths": lengths, "causal": causal, "return_lse": True, **options}
    out, lse = attention_decode(q, k, v, k_scales=k_scales, v_scales=v_scales, **said)

    rule: dict[str, Any] = {"lengths": lengths, "offset": lengths - tokens, "causal": causal, **options}
    exact, exact_lse, _ = oracle.attention(q, finer(k, k_scales), finer(v, v_scales), **rule)
    bound = 1e-12 if dtype == np.float64 else 3e-5
    assert distance(out, exact) <= bound
    assert np.allclose(lse, exact_lse, rtol=bound, atol=bound)

    arrays = [k, v] if k_scales is None else [k, v, k_scales, v_scales]
    size = int(rng.choice([1, 3, 7, 16, 33]))
    (k, v, *scales), table = paged(rng, arrays, size)
    table[np.arange(table.shape[1]) * size >= lengths[:, None]] = -1  # never looked at
    k_scales, v_scales = scales or (None, None)
    again, lse_again = attention_decode(q, k, v, block_table=table, k_scales=k_scales, v_scales=v_scales, **said)
    assert distance(again, exact) <= bound
    if k_scales is not None:  # floats in one piece may be worked as panels
        assert (again == out).all()
        assert (lse_again == lse).all()
    swapped: list[Any] = [None if a is None else a.swapaxes(1, 2) for a in (q, k, v, k_scales, v_scales)]
    other = attention_decode(
        *swapped[:3], block_table=table, k_scales=swapped[3], v_scales=swapped[4], layout="bshd", threads=1, **said
    )
    assert (other[0].swapaxes(1, 2) == again).all()
    assert (other[1] == lse_again).all()


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_threads_and_many_keys_give_the_same_bits(dtype: Any) -> None:
    rng = np.random.default_rng(7)
    wide = np.float64 if dtype == np.float64 else np.float32
    q = rng.normal(size=(2, 4, 1, 32)).astype(wide)
    k, k_scales = stored(rng.normal(size=(2, 2, 3000, 32)).astype(wide), dtype)
    v, v_scales = stored(rng.normal(size=(2, 2, 3000, 32)).astype(wide), dtype)
    said: dict[str, Any] = {"lengths": [3000, 1234], "k_scales": k_scales, "v_scales": v_scales}
    one, two = (attention_decode(q, k, v, threads=n, **said) for n in (1, 2))
    assert (one == two).all()
    exact, _, _ = oracle.attention(q, finer(k, k_scales), finer(v, v_scales), lengths=np.array([3000, 1234]))
    assert distance(one, exact) <= (1e-12 if dtype == np.float64 else 1e-5)


def test_floats_in_one_piece_are_what_attention_gives() -> None:
    rng = np.random.default_rng(3)
    q, k, v = (rng.normal(size=shape).astype(np.float32) for shape in ((2, 8, 1, 64), (2, 2, 99, 64), (2, 2, 99, 64)))
    assert (attention_decode(q, k, v, lengths=[99, 40]) == attention(q, k, v, lengths=[99, 40])).all()


def test_many_new_tokens_read_a_paged_cache_too() -> None:
    """More rows than one pass takes: 40 tokens of 3 heads to a key head."""
    rng = np.random.default_rng(4)
    q, k, v = (rng.normal(size=s).astype(np.float32) for s in ((2, 6, 40, 16), (2, 2, 77, 16), (2, 2, 77, 16)))
    pools, table = paged(rng, [k, v], 5)
    out = attention_decode(q, *pools, block_table=table, lengths=[77, 41])
    exact, _, _ = oracle.attention(q, k, v, causal=True, lengths=np.array([77, 41]), offset=np.array([37, 1]))
    assert distance(out, exact) <= 1e-5


def test_sequences_share_blocks() -> None:
    rng = np.random.default_rng(5)
    pool_k, pool_v = (rng.normal(size=(6, 2, 4, 16)).astype(np.float32) for _ in range(2))
    q = rng.normal(size=(2, 2, 1, 16)).astype(np.float32)
    table = np.array([[1, 3, 4], [1, 3, 0]], np.int32)
    out = attention_decode(q, pool_k, pool_v, block_table=table, lengths=[12, 9])
    for item, length in enumerate((12, 9)):
        k, v = (np.concatenate(list(pool[table[item]]), axis=1)[None, :, :length] for pool in (pool_k, pool_v))
        assert distance(out[item : item + 1], oracle.attention(q[item : item + 1], k, v)[0]) <= 1e-6


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_pools_of_any_strides_are_read_where_they_lie(dtype: Any) -> None:
    rng = np.random.default_rng(6)
    wide = np.float64 if dtype == np.float64 else np.float32
    q = rng.normal(size=(2, 2, 2, 32)).astype(wide)
    k, k_scales = stored(rng.normal(size=(7, 2, 3, 32)).astype(wide), dtype)
    v, v_scales = stored(rng.normal(size=(7, 2, 3, 32)).astype(wide), dtype)
    said: dict[str, Any] = {"block_table": np.array([[6, 0, 5], [1, 6, 2]]), "lengths": [8, 9]}
    plain = attention_decode(q, k, v, k_scales=k_scales, v_scales=v_scales, **said)
    room = np.zeros((14, 2, 6, 64), dtype)
    odd = room[::-2, :, ::2, ::2]
    odd[:] = k
    turned = np.asfortranarray(v)
    scales = None if v_scales is None else np.asfortranarray(v_scales)
    assert (attention_decode(q, odd, turned, k_scales=k_scales, v_scales=scales, **said) == plain).all()


@pytest.mark.parametrize("dtype", [t for t in STORED if t != np.int8], ids=str)
def test_what_is_not_read_does_not_matter(dtype: Any) -> None:
    """NaN past the length, in blocks of nobody, and where a window hides it; one that is read reaches its row alone."""
    rng = np.random.default_rng(8)
    wide = np.float64 if dtype == np.float64 else np.float32
    q = rng.normal(size=(1, 1, 2, 16)).astype(wide)
    k, v = (rng.normal(size=(5, 1, 4, 16)).astype(wide).astype(dtype) for _ in range(2))
    said: dict[str, Any] = {"block_table": [[3, 1, 0]], "lengths": [10], "window": (3, 0)}
    before = attention_decode(q, k, v, **said)
    for pool in (k, v):
        pool[[2, 4]] = np.nan
        pool[0, :, 2:] = np.nan
        pool[3] = np.nan
    assert (attention_decode(q, k, v, **said) == before).all()
    v[0, :, 1] = np.nan  # the last key, which the last token alone may read
    after = attention_decode(q, k, v, **said)
    assert (after[:, :, 0] == before[:, :, 0]).all()
    assert np.isnan(after[:, :, 1]).all()


def test_a_scale_that_is_nan_reaches_its_readers_alone() -> None:
    rng = np.random.default_rng(9)
    q = rng.normal(size=(1, 1, 2, 16)).astype(np.float32)
    x = rng.normal(size=(1, 1, 9, 16)).astype(np.float32)
    (k, k_scales), (v, v_scales) = quantize(x), quantize(x)
    before = attention_decode(q, k, v, k_scales=k_scales, v_scales=v_scales)
    x[0, 0, 8, 3] = np.inf
    (k, k_scales), (v, v_scales) = quantize(x), quantize(x)
    assert np.isnan(k_scales[0, 0, 8])
    after = attention_decode(q, k, v, k_scales=k_scales, v_scales=v_scales)
    assert (after[:, :, 0] == before[:, :, 0]).all()
    assert np.isnan(after[:, :, 1]).all()


def test_scores_beyond_float32_give_the_limit_through_the_table_too() -> None:
    q = np.full((1, 1, 1, 8), 3e38, np.float32)
    k, v = np.zeros((2, 1, 2, 8), np.float32), np.arange(32, dtype=np.float32).reshape(2, 1, 2, 8)
    k[1, 0, 0] = 3e38  # the third key of the sequence 0, 1
    out = attention_decode(q, k, v, block_table=[[0, 1]], lengths=[4])
    assert (out[0, 0, 0] == v[1, 0, 0]).all()
    numbers, scales = np.full((1, 1, 2, 8), 127, np.int8), np.array([[[1e30, 1e38]]], np.float32)
    out = attention_decode(q, numbers, v[:1], k_scales=scales)
    assert (out[0, 0, 0] == v[0, 0, 1]).all()


def test_lengths_of_nothing() -> None:
    q, pool = np.ones((2, 2, 3, 16), np.float32), np.ones((1, 1, 4, 16), np.float32)
    out, lse = attention_decode(q, pool, pool, block_table=[[9], [-5]], lengths=[0, 0], return_lse=True)
    assert (out == 0).all()
    assert (lse == -np.inf).all()
    assert attention_decode(q[:0], pool, pool, block_table=np.zeros((0, 0), int), lengths=0).shape == (0, 2, 3, 16)
    none = attention_decode(q, pool[:0], pool[:0], block_table=np.zeros((2, 0), int), lengths=0)
    assert (none == 0).all()
    out = attention_decode(q, pool, pool, block_table=[[0], [0]], lengths=[1, 4])
    assert (out[0, :, :2] == 0).all()
    assert (out[0, :, 2] == 1).all()


def test_one_scale_may_serve_a_block_a_head_or_everything() -> None:
    rng = np.random.default_rng(10)
    q = rng.normal(size=(1, 2, 1, 16)).astype(np.float32)
    k, v = (rng.integers(-127, 128, size=(3, 2, 4, 16)).astype(np.int8) for _ in range(2))
    per_block, per_head, one = rng.uniform(0.01, 0.02, (3, 2, 1)), rng.uniform(0.01, 0.02, (2, 1)), 0.015
    for scales in (per_block, per_head, one):
        whole = np.broadcast_to(scales, (3, 2, 4)).astype(np.float32)
        said: dict[str, Any] = {"block_table": [[2, 0, 1]], "lengths": [11]}
        short = attention_decode(q, k, v, k_scales=scales, v_scales=scales, **said)
        assert (short == attention_decode(q, k, v, k_scales=whole, v_scales=whole, **said)).all()


@pytest.mark.parametrize(("dtype", "most"), [("int8", 0.01), (FP8[0], 0.05), (FP8[1], 0.1)], ids=str)
def test_how_far_8_bits_are_from_the_numbers_they_stand_for(dtype: Any, most: float) -> None:
    """32/8 heads on 1,000 normal keys of 128: the largest error, as a share of the largest output."""
    rng = np.random.default_rng(11)
    q, k, v = (rng.normal(size=s).astype(np.float32) for s in ((1, 32, 1, 128), (1, 8, 1000, 128), (1, 8, 1000, 128)))
    exact, _, _ = oracle.attention(q, k, v)
    (k, k_scales), (v, v_scales) = quantize(k, dtype), quantize(v, dtype)
    off = distance(attention_decode(q, k, v, k_scales=k_scales, v_scales=v_scales), exact) / np.abs(exact).max()
    assert off <= most


def test_quantized_numbers_are_within_half_a_step() -> None:
    x = np.random.default_rng(12).normal(size=(5, 7, 33))
    numbers, scales = quantize(x)
    assert numbers.dtype == np.int8
    assert scales.dtype == np.float32
    assert scales.shape == (5, 7)
    assert (np.abs(numbers * scales[..., None].astype(float) - x) <= np.abs(x).max(-1, keepdims=True) / 253.9).all()
    assert (quantize(np.zeros((2, 4), np.float16))[0] == 0).all()
    for dtype in FP8:
        numbers, scales = quantize(x, dtype)
        assert np.isfinite(numbers.astype(float)).all()


Q, POOL = np.ones((2, 2, 1, 16), np.float32), np.ones((4, 1, 8, 16), np.float32)
INT8 = np.ones((4, 1, 8, 16), np.int8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_table": [[0, 4], [1, 2]]}, "block_table[0, 1] is 4, but there are 4 blocks"),
        ({"block_table": [[0, 1], [1, -1]]}, "block_table[1, 1] is -1"),
        ({"block_table": [[0, 1], [1, 2**40]]}, "block_table[1, 1] is 1099511627776"),
        ({"block_table": np.array([[0, 1], [1, 2**64 - 1]], np.uint64)}, "block_table[1, 1] is -1"),
        ({"block_table": [[0.0, 1], [1, 2]]}, "block_table holds float64"),
        ({"block_table": [[True, False], [True, True]]}, "block_table holds bool"),
        ({"block_table": [0, 1]}, "block_table is (2,), but q has a batch of 2"),
        ({"block_table": [[0, 1]]}, "block_table is (1, 2), but q has a batch of 2"),
        ({"block_table": [[0, 1], [1]]}, "block_table is no array"),
        ({"lengths": [9, 17]}, "lengths runs from 9 to 17, but there are 16 keys"),
        ({"lengths": [9, -1]}, "lengths runs from -1 to 9"),
        ({"lengths": [9.0, 1.0]}, "lengths holds float64"),
        ({"lengths": [9, 9, 9]}, "lengths is (3,), but the batch is (2,)"),
        ({"lengths": None}, "block_table needs lengths"),
        ({"block_table": None}, "q, k, v have batches of 2, 4, 4"),
        ({"causal": "top_left"}, "causal is 'top_left'. Give True or False"),
        ({"q": Q[0]}, "Decoding takes four axes"),
        ({"q": np.ones((2, 3, 1, 16), np.float32), "k": POOL.repeat(2, 1), "v": POOL.repeat(2, 1)}, "multiple of 2"),
        ({"q": Q.astype(np.int32)}, "q holds int32"),
        ({"k": POOL.astype(np.int16)}, "k holds int16. A cache holds float32"),
        ({"k": POOL[..., :8]}, "16"),
        ({"v": POOL[:3]}, "k has 4 blocks of 8 keys and v 3 of 8"),
        ({"q": Q.astype(float)}, "float64 does not mix"),
        ({"k": INT8}, "k holds int8: give k_scales"),
        ({"k_scales": np.ones((4, 1, 8))}, "k_scales are for 8-bit numbers, and k holds float32"),
        ({"k": INT8, "k_scales": np.ones((4, 1, 9))}, "k_scales are (4, 1, 9), but k has (4, 1, 8) rows"),
        ({"k": INT8, "k_scales": np.ones((4, 1, 8), int)}, "k_scales holds int64"),
        ({"k": INT8, "k_scales": 1.0, "q": Q.astype(float), "v": POOL.astype(float)}, "q holds float64, and 8-bit"),
        ({"out": np.empty((2, 2, 1, 15), np.float32)}, "out is float32 (2, 2, 1, 15)"),
        ({"sinks": np.ones(3)}, "sinks is (3,)"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_every_mistake_is_named(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"q": Q, "k": POOL, "v": POOL, "block_table": [[0, 1], [1, 2]], "lengths": [9, 10]}
    attention_decode(**given)
    with pytest.raises(HeadworkError) as error:
        attention_decode(**{**given, **change})
    assert message in str(error.value)


def test_quantize_refuses_what_it_cannot_do() -> None:
    for x, dtype in (([1, 2], "int8"), ([1.0], "int4"), ([1.0], "nonsense"), (1.0, "int8")):
        with pytest.raises(HeadworkError):
            quantize(x, dtype)


@pytest.mark.parametrize("seed", range(20))
def test_the_kernel_itself_follows_no_table_out_of_the_pool(seed: int) -> None:
    """Handed over without the checks in Python, as compiled code does: refused, or all that is read is there."""
    if kernel is None:
        return
    rng = np.random.default_rng(seed)
    q, out = (np.ones((2, 2, 3, 16), np.float32) for _ in range(2))
    k, v = (np.ones((4, 1, 5, 16), np.float32) for _ in range(2))
    wild = np.array([-(2**63), -1, 0, 1, 3, 4, 5, 14, 15, 16, 2**62, 2**63 - 1])
    refused = 0
    for _ in range(50):
        table = rng.choice(wild, size=(2, int(rng.integers(0, 4))), p=[0.04, 0.04, 0.3, 0.2, 0.18, *[0.24 / 7] * 7])
        spans = np.tile(np.array([0, 3, 0, 9, 6, 0]), (2, 1))
        spans[int(rng.integers(2)), int(rng.integers(6))] = rng.choice(wild)
        call = (q, k, v, None, None, table, out, None, spans, None, None, None, 0, 0, False, -1, 0, 1.0, 0.0, 0)
        try:
            kernel.decode(*call)
            assert out[..., 0].max(initial=0) <= 1 + 1e-6
            assert (spans[:, 3] <= table.shape[1] * 5).all()
            used = [row[: -(-int(span[3]) // 5)] for row, span in zip(table, spans, strict=True)]
            assert all(((row >= 0) & (row < 4)).all() for row in used)
        except ValueError:
            refused += 1
    assert refused


def test_the_kernel_itself_refuses_what_does_not_fit() -> None:
    if kernel is None:
        return
    good: dict[str, Any] = {
        "q": np.ones((2, 2, 3, 16), np.float32), "k": np.ones((4, 1, 5, 16), np.float32),
        "v": np.ones((4, 1, 5, 16), np.float32), "k_scales": None, "v_scales": None,
        "block_table": np.zeros((2, 2), np.int64), "out": np.empty((2, 2, 3, 16), np.float32), "lse": None,
        "spans": np.tile(np.array([0, 3, 0, 9, 6, 0]), (2, 1)), "sinks": None, "slopes": None, "table": None,
        "k_kind": 0, "v_kind": 0, "swapped": False, "left": -1, "right": 0, "scale": 1.0, "softcap": 0.0, "threads": 0,
    }  # fmt: skip
    kernel.decode(**good)
    bad: list[dict[str, Any]] = [
        {"out": np.empty((2, 2, 3, 15), np.float32)},
        {"out": np.empty((2, 2, 3, 16), np.int8)},
        {"lse": np.empty((2, 2, 2), np.float32)},
        {"lse": np.empty((2, 2, 3), np.float64)},
        {"k": np.ones((4, 1, 5, 8), np.float32)},
        {"k": np.ones((4, 1, 5, 16), np.float64)},
        {"k": np.ones((4, 1, 5, 16), bool)},
        {"k": np.ones((4, 3, 5, 16), np.float32)},
        {"k_kind": 1},
        {"v": np.ones((3, 1, 5, 16), np.float32)},
        {"v": np.ones((4, 1, 4, 16), np.float32)},
        {"k_scales": np.ones((4, 1, 4), np.float32)},
        {"k_scales": np.ones((4, 1, 5))},
        {"sinks": np.ones(1 + 2, np.float32)},
        {"sinks": np.ones(2)},
        {"table": np.ones((3, 3), np.float32)},
        {"block_table": np.zeros((2, 4), np.int64)[:, ::2]},
        {"block_table": np.zeros((1, 2), np.int64)},
        {"block_table": np.zeros((2, 2), np.int32)},
        {"spans": np.tile(np.array([0, 3, 0, 9, 6, 0]), (1, 1))},
        {"block_table": None},
    ]
    for change in bad:
        with pytest.raises((ValueError, TypeError)):
            kernel.decode(**{**good, **change})
