"""What `headwork.jax` adds to the bare kernel, and how both stand against `jax.nn.dot_product_attention`.

    python bench/jax_overhead.py

All three take turns in one process; medians are compared, and results are checked against each other first.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headwork import attention
from headwork.jax import dot_product_attention

ROUNDS = 15
SHAPES = ((1, 2, 1, 2), (1, 64, 8, 64), (1, 512, 8, 64), (1, 2048, 8, 64))  # batch, tokens, heads, d


def seconds(call: Callable[[], Any]) -> float:
    """Of one call, in a turn of about 0.04 s."""
    begun, done = time.perf_counter(), 0
    while time.perf_counter() - begun < 0.04:
        call()
        done += 1
    return (time.perf_counter() - begun) / done


def compare(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(shape, np.float32) for _ in range(3)]
    on_device = [jnp.asarray(a) for a in arrays]
    ours, theirs = jax.jit(dot_product_attention), jax.jit(jax.nn.dot_product_attention)
    calls: dict[str, Callable[[], Any]] = {
        "kernel": lambda: attention(*arrays, layout="bshd"),
        "headwork.jax": lambda: ours(*on_device).block_until_ready(),
        "jax.nn": lambda: theirs(*on_device).block_until_ready(),
    }
    results = [np.asarray(call()) for call in calls.values()]
    if not all(np.allclose(result, results[0], atol=1e-5) for result in results):
        raise AssertionError(f"they disagree at {shape}")
    taken = {name: [seconds(call) for call in calls.values()] for name in range(ROUNDS)}
    kernel, bridge, jaxs = (statistics.median(turn[i] for turn in taken.values()) for i in range(3))
    print(
        f"{shape!s:>18}: kernel {kernel * 1e6:9.1f} µs, headwork.jax {bridge * 1e6:9.1f} µs "
        f"(+{(bridge - kernel) * 1e6:.1f}), jax.nn {jaxs * 1e6:9.1f} µs, {jaxs / bridge:.2f} times as long"
    )


if __name__ == "__main__":
    for shape in SHAPES:
        compare(shape)
