"""Decoding from caches of 32, 16 and 8 bits, in one piece and in blocks: python bench/decoding.py

Each kind of cache takes its turns beside the machine merely reading as many bytes, out of more memory than any cache of
the CPU holds; medians are compared, and every result is checked against float64 on the same stored numbers first. What
counts is the share of the machine's reading, and the time: half the bytes should take half of it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from typing import Any

import ml_dtypes
import numpy as np
from rich.console import Console
from rich.table import Table

from headwork.engine import attention_decode, backend, quantize
from headwork.engine.backend import kernel
from headwork.engine.bench.report import duration
from headwork.engine.bench.turns import medians, turn

HEADS, KV_HEADS, D, BLOCK = 32, 8, 128, 16
CASES = [(1, 4096), (1, 32768), (8, 4096)]  # batch, keys
TYPES = ["float32", "float16", ml_dtypes.bfloat16, "int8", ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
MEMORY = 1 << 30  # bytes that are read through, so that nothing is still in a cache
ROUNDS, SECONDS = 25, 10


def stored(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Any, Any]:
    x = rng.standard_normal(shape, np.float32)
    return quantize(x, dtype) if dtype.itemsize == 1 else (x.astype(dtype), None)


def exact(q: Any, k: Any, v: Any, k_scales: Any, v_scales: Any) -> Any:
    """In float64, from what is stored."""
    numbers = [x.astype(np.float64) for x in (k, v)]
    scales = [1 if s is None else s[..., None].astype(np.float64) for s in (k_scales, v_scales)]
    wide_k, wide_v = (np.repeat(x * s, HEADS // KV_HEADS, 1) for x, s in zip(numbers, scales, strict=True))
    scores = q.astype(np.float64) @ wide_k.swapaxes(-1, -2) / np.sqrt(D)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return p @ wide_v / p.sum(-1, keepdims=True)


def in_blocks(array: Any, places: Any) -> Any:
    """(batch, heads, keys, …) as blocks that lie in no order."""
    batch, heads, keys = array.shape[:3]
    cut = array.reshape(batch, heads, keys // BLOCK, BLOCK, *array.shape[3:]).swapaxes(1, 2)
    pool = np.empty((places.size, heads, BLOCK, *array.shape[3:]), array.dtype)
    pool[places.reshape(-1)] = cut.reshape(pool.shape)
    return pool


def copies_of(arrays: list[Any], bytes_of_one: int) -> Iterator[list[Any]]:
    """The same numbers in so many places that none is still in a cache when its turn comes again."""
    count = max(1, min(64, -(-MEMORY // bytes_of_one)))
    return cycle([[None if a is None else a.copy() for a in arrays] for _ in range(count)])


def calls(batch: int, keys: int, dtype: np.dtype[Any]) -> tuple[dict[str, Callable[[], Any]], int]:
    """By name, and how many bytes of cache each reads."""
    rng = np.random.default_rng(0)
    q = rng.standard_normal((batch, HEADS, 1, D), np.float32)
    (k, k_scales), (v, v_scales) = (stored(rng, (batch, KV_HEADS, keys, D), dtype) for _ in range(2))
    held = [x for x in (k, v, k_scales, v_scales) if x is not None]
    size = sum(x.nbytes for x in held)
    places = rng.permutation(batch * keys // BLOCK).reshape(batch, -1)
    one = [k, v, k_scales, v_scales]
    cut = [None if x is None else in_blocks(x, places) for x in one]
    ways = {"one piece": (copies_of(one, size), {}), "blocks": (copies_of(cut, size), {"block_table": places})}

    def step(cache: Iterator[list[Any]], more: dict[str, Any]) -> Any:
        k, v, k_scales, v_scales = next(cache)
        return attention_decode(q, k, v, k_scales=k_scales, v_scales=v_scales, lengths=keys, **more)

    wanted = exact(q, *one)
    found: dict[str, Callable[[], Any]] = {name: partial(step, *way) for name, way in ways.items()}
    for name, call in found.items():
        off = np.abs(call() - wanted).max() / np.abs(wanted).max()
        assert off < 1e-5, f"{dtype}, {name} is off by {off:.1e}"
    return found, size


def reading(size: int) -> Callable[[], None]:
    """The machine reads as many bytes, from somewhere else every time."""
    assert kernel is not None
    memory = np.ones(MEMORY, np.uint8)
    pieces = cycle([memory[at : at + size] for at in range(0, MEMORY - size + 1, size)] or [memory])
    return lambda: kernel.read(next(pieces), 0)


def main() -> None:
    print(f"one new token, {HEADS}/{KV_HEADS} heads of {D}, blocks of {BLOCK}; {backend()}")
    table = Table("batch × keys", "type", "cache", "time", "GB/s", "machine reads GB/s", "share", box=None)
    for batch, keys in CASES:
        for given in TYPES:
            dtype = np.dtype(given)
            found, size = calls(batch, keys, dtype)
            if kernel is not None:
                found["limit"] = reading(size)
            took = medians({name: turn(call) for name, call in found.items()}, ROUNDS, SECONDS)
            limit = min(took.values())  # what was reached can be reached: a probe that was held up is no limit
            for name in ("one piece", "blocks"):
                rates = f"{size / took[name] / 1e9:.1f}", f"{size / limit / 1e9:.1f}"
                row = f"{batch} × {keys}", dtype.name, name, duration(took[name]), *rates
                table.add_row(*row, f"{limit / took[name]:.0%}")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
