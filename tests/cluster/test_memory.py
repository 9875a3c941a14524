"""What a call over ranks holds in memory: so many times a rank's rows, however many ranks there are."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import headwork.torch as hw
from tests.cluster.ranks import results


def peak(rank: int, backward: bool) -> float:
    """The most memory beyond inputs that a call has, in shards: a rank's rows of one of query, key, value."""
    ctypes.CDLL(None).mallopt(-3, 65536)  # M_MMAP_THRESHOLD: what is freed is given back, so that a peak is seen
    shape = (4, 8, 256, 64)
    mine, above = [torch.randn(shape).requires_grad_(backward) for _ in range(3)], torch.randn(shape)

    def work(*three: Tensor) -> None:
        out: Any = hw.ring_attention(three[0], three[1], three[2], split="contiguous", method="exchange")
        if backward:
            torch.autograd.grad(out, three, above[: len(out)])

    work(*(x[:1].detach().clone().requires_grad_(backward) for x in mine))
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    work(*mine)
    return float((resident("VmHWM") - before) / (4 * mine[0].numel()))


def resident(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(field))


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux alone tells the most memory of a while")
@pytest.mark.parametrize("world", [4, 7])
def test_memory_does_not_grow_with_the_ranks(world: int) -> None:
    """Forward: the result, rows packed, here and coming. Backward: three gradients, and gradients that go and come."""
    assert max(results(world, peak, False)) < 7.8
    assert max(results(world, peak, True)) < 14.8
