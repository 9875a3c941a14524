"""Attention over ranks is attention: output and gradients, every kind of call by every way in every split."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from headwork.torch import ring_attention, shard
from tests.cluster.cases import CASES, Case, split_named, ways, worked
from tests.cluster.ranks import results

LIMITS = {torch.float64: 1e-13, torch.float32: 2e-5, torch.bfloat16: 1.2e-2, torch.float16: 2e-3}


def one_case(case: Case, group: Any, split: str, method: Any, dtype: torch.dtype) -> float:
    inputs, above, right = worked(case, dtype)
    lie = split_named(split, case.tokens, group.size())
    mine = [shard(x, group, split=lie).requires_grad_() for x in inputs]
    out = ring_attention(*mine, group=group, split=lie, method=method, **case.options)
    assert isinstance(out, torch.Tensor)
    gradients = torch.autograd.grad(out, mine, shard(above, group, split=lie))
    top = max(float(x.abs().max()) for x in right)
    worst = 0.0
    for found, whole in zip((out.detach(), *gradients), right, strict=True):
        assert found.dtype == dtype
        difference = (found.double() - shard(whole, group, split=lie)).abs()
        size = float(whole.abs().max())
        if difference.numel():
            worst = max(worst, float(difference.max()) / (size if size > 1e-12 else top))
    return worst


def whole_grid(rank: int, worlds: list[int], cases: list[Case], dtypes: list[torch.dtype]) -> list[Any]:
    """(world, case, split, method, dtype, difference) of this rank, in groups of the first ranks of all."""
    found = []
    for world in worlds:
        group = dist.new_group(list(range(world)))
        if rank >= world:
            continue
        for case in cases:
            for split, method in ways():
                for dtype in dtypes:
                    away = one_case(case, group, split, method, dtype)
                    found.append((world, case.name, split, method, dtype, away))
    return found


def test_every_kind_of_call_by_every_way_in_every_split() -> None:
    of_ranks = results(4, whole_grid, [1, 2, 3, 4], CASES, [torch.float64])
    rows = [row for found in of_ranks for row in found]
    assert len(rows) == (1 + 2 + 3 + 4) * len(CASES) * 9
    assert not [row for row in rows if not row[-1] <= LIMITS[row[-2]]]


def test_shorter_floats() -> None:
    """Every kind of call; float16 has more digits than bfloat16 and takes the same way."""
    of_ranks = results(3, whole_grid, [3], CASES, [torch.float32, torch.bfloat16])
    some = [case for case in CASES if case.name in ("97 tokens", "softcap", "grouped 8/2", "packed causal")]
    of_ranks += results(4, whole_grid, [2, 4], some, [torch.float32, torch.bfloat16, torch.float16])
    rows = [row for found in of_ranks for row in found]
    assert len(rows) == 9 * (3 * len(CASES) * 2 + 6 * len(some) * 3)
    assert not [row for row in rows if not row[-1] <= LIMITS[row[-2]]]
