"""`attention_decode`: a few new tokens read a cache, of 8, 16 or more bits, in one piece or in blocks."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from headwork.engine import blocked
from headwork.engine.arguments import Call, SharedOptions, Whole, call_of, checked_places, spans
from headwork.engine.arrays import (
    Array,
    CallSizes,
    Layout,
    broadcasts,
    floats,
    is_swapped,
    same_precision,
    sizes,
    unmasked,
)
from headwork.engine.attention import bits
from headwork.engine.backend import kernel
from headwork.engine.quantize import KINDS, cached, dequantized
from headwork.errors import HeadworkError, ShapeError


class DecodeOptions(SharedOptions, total=False):
    """What `attention_decode` may be told, for the type checker; a test holds it to the signature."""

    lengths: ArrayLike | None
    block_table: ArrayLike | None
    k_scales: ArrayLike | None
    v_scales: ArrayLike | None
    causal: bool
    starts: ArrayLike | None
    layout: Layout


@dataclass(slots=True, frozen=True)
class Cached:
    """Keys and values as they are kept. `table` has a row of blocks for every batch item, or is None: one piece."""

    k: Array
    v: Array
    k_scales: Array | None
    v_scales: Array | None
    table: Whole | None


# fmt: off
@overload
def attention_decode(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, *, return_lse: Literal[False] = False, **options: Unpack[DecodeOptions]
) -> Array: ...
@overload
def attention_decode(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, *, return_lse: Literal[True], **options: Unpack[DecodeOptions]
) -> tuple[Array, Array]: ...
@overload
def attention_decode(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, *, return_lse: bool = False, **options: Unpack[DecodeOptions]
) -> Array | tuple[Array, Array]: ...
# fmt: on
def attention_decode(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    lengths: ArrayLike | None = None,
    block_table: ArrayLike | None = None,
    k_scales: ArrayLike | None = None,
    v_scales: ArrayLike | None = None,
    causal: bool = True,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    starts: ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    alibi: ArrayLike | None = None,
    relative: ArrayLike | None = None,
    layout: Layout = "bhsd",
    return_lse: bool = False,
    threads: int | None = None,
    out: Array | None = None,
) -> Array | tuple[Array, Array]:
    """The newest tokens of every sequence read the sequence's cache, in which their own keys already are.

    q (batch, heads, tokens, d_k), k (batch, kv_heads, keys, d_k), v (batch, kv_heads, keys, d_v) → (batch, heads,
    tokens, d_v). Token i of a sequence of n keys is at position n − tokens + i and reads the keys up to there.

    lengths             how many keys each sequence has; the rest is never read
    block_table         whole numbers (batch, blocks of a sequence): k and v are then pools (blocks, kv_heads,
                        block_size, d), and key j of a sequence is row j % block_size of the block that stands at
                        j // block_size in its row of the table. Blocks may be shared; entries past the length are
                        never looked at
    k_scales, v_scales  of 8-bit keys and values (int8, or ml_dtypes' float8_e4m3fn and float8_e5m2): float32, the
                        shape of k or v without its last axis, 1 where one number serves a whole axis. See `quantize`
    causal              False: every token reads all keys of its sequence

    All else is as in `attention`; 8-bit and 16-bit numbers are read at their own size, and nothing is gathered or
    converted beforehand. A token that may read no key gives zeros.

    >>> k = np.zeros((3, 1, 2, 4), np.float32)
    >>> v = np.arange(6, dtype=np.float32).reshape(3, 1, 2, 1)
    >>> q = np.ones((1, 1, 1, 4), np.float32)
    >>> attention_decode(q, k, v, block_table=[[2, 0]], lengths=[3]).item()  # values 4, 5 and 0
    3.0
    """
    q, swapped = floats("q", q), is_swapped(layout)
    cache = checked_cache(q, k, v, k_scales, v_scales, block_table, swapped)
    size = cache_sizes(q, cache.k, cache.v, None if cache.table is None else cache.table.shape[1], swapped)
    if cache.table is not None and lengths is None:
        raise HeadworkError("block_table needs lengths: how many keys each sequence has.")
    real = checked_places("lengths", size.keys if lengths is None else lengths, size)
    check_blocks(cache, real, swapped)
    begin = None if starts is None else checked_places("starts", starts, size)
    causal = checked_switch(causal)
    told: SharedOptions = {"window": window, "scale": scale, "softcap": softcap, "threads": threads, "out": out}
    told |= {"sinks": sinks, "alibi": alibi, "relative": relative}
    call = call_of(q, cache.k, cache.v, size, swapped, causal, None, return_lse, told)
    call.spans, _ = spans(size, real, begin, real - size.tokens)
    work_out(call, cache)
    return call.out if call.lse is None else (call.out, call.lse)


def work_out(call: Call, cache: Cached) -> None:
    if kernel is None:
        call.k, call.v = gathered(cache, call.swapped)
        blocked.forward(call)
    elif call.out.size or (call.lse is not None and call.lse.size):
        heads = call.heads
        kernel.decode(
            bits(call.q), raw(cache.k), raw(cache.v), cache.k_scales, cache.v_scales, cache.table, bits(call.out),
            call.lse, call.spans, heads.sinks, heads.slopes, heads.table, kind(cache.k), kind(cache.v), call.swapped,
            call.left, call.right, call.scale, call.softcap, call.threads,
        )  # fmt: skip


def checked_cache(
    q: Array,
    k: ArrayLike,
    v: ArrayLike,
    k_scales: ArrayLike | None,
    v_scales: ArrayLike | None,
    table: ArrayLike | None,
    swapped: bool,
) -> Cached:
    k, v = cached("k", k), cached("v", v)
    check_axes(q, k, v, swapped)
    if not kind(k) and not kind(v):
        same_precision(q, k, v)
    elif q.dtype == np.float64:
        raise HeadworkError("q holds float64, and 8-bit keys and values go with float32, float16 or bfloat16.")
    scales = checked_scales("k", k, k_scales), checked_scales("v", v, v_scales)
    return Cached(k, v, *scales, None if table is None else checked_table(table, q.shape[0]))


def checked_scales(name: str, array: Array, given: ArrayLike | None) -> Array | None:
    if given is None:
        if array.dtype == np.int8:
            raise HeadworkError(f"{name} holds int8: give {name}_scales, as quantize returns them.")
        return None
    if array.dtype.name not in KINDS:
        raise HeadworkError(f"{name}_scales are for 8-bit numbers, and {name} holds {array.dtype}: leave them out.")
    scales = floats(f"{name}_scales", given)
    check_scales(name, scales.shape, array.shape[:-1])
    return scales.astype(np.float32, copy=False).reshape((1,) * (3 - scales.ndim) + scales.shape)


def check_scales(name: str, given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if not broadcasts(given, wanted):
        raise ShapeError(
            f"{name}_scales are {given}, but {name} has {wanted} rows: give one for each, or 1 where one serves a "
            "whole axis."
        )


def checked_table(given: ArrayLike, batch: int) -> Whole:
    table = unmasked("block_table", given)
    if table.dtype.kind not in "iu" and table.size:
        raise HeadworkError(f"block_table holds {table.dtype}. Give whole numbers, the places of blocks in k and v.")
    check_table(table.shape, batch)
    return np.array(table, np.int64, order="C")  # a copy: nobody may change it while it is used


def check_table(given: tuple[int, ...], batch: int) -> None:
    if len(given) != 2 or given[0] != batch:
        raise ShapeError(f"block_table is {given}, but q has a batch of {batch}: give (batch, blocks of a sequence).")


class Shaped(NamedTuple):
    """An array's shape without its numbers."""

    shape: tuple[int, ...]
    ndim: int = 4


def checked_switch(causal: bool) -> bool:
    if not isinstance(causal, bool | np.bool_):
        raise HeadworkError(f"causal is {causal!r}. Give True or False: the last token is at the last key either way.")
    return bool(causal)


def check_axes(q: Any, k: Any, v: Any, swapped: bool) -> None:
    if not q.ndim == k.ndim == v.ndim == 4:
        order = "tokens, heads" if swapped else "heads, tokens"
        raise ShapeError(
            f"q, k, v have shapes {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}. Decoding takes four axes: q "
            f"(batch, {order}, d), k and v (batch or blocks, {order}, d)."
        )


def cache_sizes(q: Any, k: Any, v: Any, blocks: int | None, swapped: bool) -> CallSizes:
    """The sizes of q and of the cache, of so many blocks a sequence or in one piece, when they fit together."""
    row = 1 if swapped else 2
    if blocks is None:
        if not q.shape[0] == k.shape[0] == v.shape[0]:
            raise ShapeError(
                f"q, k, v have batches of {q.shape[0]}, {k.shape[0]}, {v.shape[0]}: make them equal, or give a "
                "block_table if k and v are blocks."
            )
        return sizes(q, k, v, swapped)
    if (k.shape[0], k.shape[row]) != (v.shape[0], v.shape[row]):
        raise ShapeError(
            f"k has {k.shape[0]} blocks of {k.shape[row]} keys and v {v.shape[0]} of {v.shape[row]}: both stand in the "
            "same blocks."
        )
    whole: list[Any] = []
    for pool in (k, v):
        shape = [q.shape[0], *pool.shape[1:]]
        shape[row] *= blocks
        whole.append(Shaped(tuple(shape)))
    return sizes(q, whole[0], whole[1], swapped)


def check_blocks(cache: Cached, lengths: Whole, swapped: bool) -> None:
    """Every block that a sequence reads is there."""
    if cache.table is None or not cache.table.size:
        return
    blocks, size = cache.k.shape[0], cache.k.shape[1 if swapped else 2]
    used = np.arange(cache.table.shape[1]) * size < lengths[:, None]
    wrong = np.argwhere(used & ((cache.table < 0) | (cache.table >= blocks)))
    if len(wrong):
        item, place = wrong[0].tolist()
        raise HeadworkError(
            f"block_table[{item}, {place}] is {cache.table[item, place]}, but there are {blocks} blocks, and sequence "
            f"{item} with its {lengths[item]} keys reads it: give a number from 0 to {blocks - 1}."
        )


def kind(array: Array) -> int:
    """What the kernel calls 8-bit numbers; 0 for floats of more."""
    return KINDS.get(array.dtype.name, 0) if array.itemsize == 1 else 0  # a name takes NumPy longer than all the rest


def raw(array: Array) -> Any:
    """8-bit floats as the bytes that hold them, bfloat16 as its bits."""
    return array.view(np.int8) if array.itemsize == 1 else bits(array)


def gathered(cache: Cached, swapped: bool) -> tuple[Array, Array]:
    """Keys and values in one piece and in floats, as `blocked` reads them."""
    pairs = (cache.k, cache.k_scales), (cache.v, cache.v_scales)
    k, v = (dequantized(array, scales) for array, scales in pairs)
    if cache.table is None:
        return k, v
    table = np.clip(cache.table, 0, max(len(k) - 1, 0))  # entries past a length may be anything
    if not len(k):
        table = table[:, :0]
    return one_piece(k, table, swapped), one_piece(v, table, swapped)


def one_piece(pool: Array, table: Whole, swapped: bool) -> Array:
    blocks = pool[table]  # (batch, blocks, heads, keys, d), or keys before heads
    if swapped:
        batch, count, keys, heads, d = blocks.shape
        return blocks.reshape(batch, count * keys, heads, d)
    batch, count, heads, keys, d = blocks.shape
    return blocks.swapaxes(1, 2).reshape(batch, heads, count * keys, d)
