"""What stands around a call over ranks: rows laid out and back, compilers, checkpoints, DTensors, models."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

import headwork.torch as hw
from headwork.errors import HeadworkError
from headwork.torch.cluster.operator import sent
from tests.cluster.cases import Case, by_hand, worked
from tests.cluster.ranks import results

CAUSAL = Case("causal", {"causal": True}, tokens=37)


def away(found: torch.Tensor, right: torch.Tensor) -> float:
    return float((found - right).detach().abs().max()) if found.numel() else 0.0


def rows_and_back(rank: int) -> Any:
    x = torch.arange(37 * 2.0, dtype=torch.float64).reshape(1, 37, 2)
    back = []
    for split in ("auto", "contiguous", "zigzag"):
        mine = hw.shard(x, dim=1, split=split).requires_grad_()
        whole = hw.unshard(mine, dim=1, split=split)
        (whole * x).sum().backward()
        back.append(torch.equal(whole, x))
        back.append(torch.equal(mine.grad, mine))
        back.append(torch.equal(x[0, hw.positions(37, split=split)], mine[0]))
    return back, hw.positions(8).tolist(), hw.positions(1, split="contiguous").tolist()


def test_rows_are_laid_out_and_put_together_again() -> None:
    found = results(2, rows_and_back)
    assert all(all(back) for back, _, _ in found)
    assert [positions for _, positions, _ in found] == [[0, 1, 6, 7], [2, 3, 4, 5]]
    assert [few for _, _, few in found] == [[0], []], "fewer rows than ranks"


def log_sum_exp(rank: int) -> list[float]:
    """Its value, and gradients through it."""
    inputs, above, _ = worked(CAUSAL)
    exact = [x.clone().requires_grad_() for x in inputs]
    out, lse = by_hand(exact[0], exact[1], exact[2], CAUSAL.options)
    right = torch.autograd.grad((out * above).sum() + lse.square().sum(), exact)
    found = []
    for method in ("exchange", "ulysses"):
        mine = [hw.shard(x).requires_grad_() for x in inputs]
        got, sums = hw.ring_attention(*mine, method=method, return_lse=True, **CAUSAL.options)
        gradients = torch.autograd.grad((got * hw.shard(above)).sum() + sums.square().sum(), mine)
        found.append(away(sums, hw.shard(lse.detach(), dim=-1)))
        found += [away(a, hw.shard(b)) for a, b in zip(gradients, right, strict=True)]
    return found


def compiled(rank: int) -> list[float]:
    inputs, above, right = worked(CAUSAL)
    found = []

    def twice(*three: torch.Tensor) -> Any:
        out: Any = hw.ring_attention(*three, causal=True)
        return out * 1.0

    fullgraph = torch.compile(twice, fullgraph=True, backend="aot_eager")
    for run in (fullgraph, lambda *x: checkpoint(fullgraph, *x, use_reentrant=False)):
        mine = [hw.shard(x).requires_grad_() for x in inputs]
        out = run(*mine)
        gradients = torch.autograd.grad(out, mine, hw.shard(above))
        found += [away(a, hw.shard(b)) for a, b in zip((out, *gradients), right, strict=True)]
    return found


def checkpointed(rank: int) -> list[float]:
    inputs, above, right = worked(CAUSAL)
    found = []
    for reentrant in (False, True):
        mine = [hw.shard(x).requires_grad_() for x in inputs]
        out = checkpoint(lambda *x: hw.ring_attention(*x, causal=True), *mine, use_reentrant=reentrant)
        out.backward(hw.shard(above))
        of_inputs = [x.grad for x in mine]
        found += [away(a, hw.shard(b)) for a, b in zip((out, *of_inputs), right, strict=True)]
    return found


def on_a_mesh(rank: int) -> list[float]:
    """Tokens over one axis, the batch over another."""
    case = Case("batch", {"causal": True}, tokens=21, batch=2)
    inputs, above, right = worked(case)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "cp"))
    placed = [distribute_tensor(x, mesh, (Shard(0), Shard(2))).requires_grad_() for x in inputs]
    out, lse = hw.ring_attention(*placed, causal=True, return_lse=True)
    assert isinstance(out, DTensor)
    assert out.placements == placed[0].placements
    assert tuple(lse.shape) == (2, 4, 21)
    gradients = torch.autograd.grad(out, placed, distribute_tensor(above, mesh, (Shard(0), Shard(2))))
    found = [away(a.full_tensor(), b) for a, b in zip((out, *gradients), right, strict=True)]
    return [*found, away(lse.full_tensor(), by_hand(inputs[0], inputs[1], inputs[2], case.options)[1])]


def a_model(rank: int) -> list[float]:
    """Layers that call torch's function, within the block; and a mask, which is refused on both ranks."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(16, 48, bias=False, dtype=torch.float64)
    x = torch.randn(1, 37, 16, dtype=torch.float64)

    def model(rows: torch.Tensor, **options: Any) -> torch.Tensor:
        three = layer(rows).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4)
        out = scaled_dot_product_attention(three[0], three[1], three[2], is_causal=True, **options)
        return out.transpose(1, 2).flatten(2)

    right = model(x)
    wanted = torch.autograd.grad(right.square().sum(), layer.weight)[0]
    found = []
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for where in (mesh, None):
        for split in ("zigzag", "contiguous"):
            with hw.context_parallel(where, split=split, method="exchange"):
                mine = model(hw.shard(x, dim=1))
                found.append(away(mine, hw.shard(right, dim=1)))
                gradient = torch.autograd.grad(mine.square().sum(), layer.weight)[0]
            dist.all_reduce(gradient)
            found.append(away(gradient, wanted))
    with hw.context_parallel():
        try:
            model(hw.shard(x, dim=1), attn_mask=None, dropout_p=0.5)
            found.append(1.0)
        except HeadworkError as error:
            found.append(0.0 if "dropout_p=0.5 within context_parallel" in str(error) else 1.0)
    return found


def the_same_bits(rank: int) -> list[float]:
    inputs, above, _ = worked(CAUSAL, torch.float32)
    runs = []
    for _ in range(3):
        mine = [hw.shard(x).requires_grad_() for x in inputs]
        out = hw.ring_attention(*mine, causal=True)
        runs.append([out, *torch.autograd.grad(out, mine, hw.shard(above))])
    return [0.0 if torch.equal(a, b) else 1.0 for run in runs[1:] for a, b in zip(runs[0], run, strict=True)]


def around(rank: int) -> dict[str, list[float]]:
    kinds = (log_sum_exp, checkpointed, a_model, the_same_bits)
    return {kind.__name__: kind(rank) for kind in kinds}


def test_gradients_through_the_log_sum_exp_checkpoints_and_models() -> None:
    for found in results(2, around):
        assert not {kind: worst for kind, worst in found.items() if not max(worst) < 1e-12}


def test_compiled_whole() -> None:
    for found in results(2, compiled):
        assert max(found) < 1e-12


def test_tensors_of_a_mesh() -> None:
    for found in results(4, on_a_mesh):
        assert max(found) < 1e-12


def bytes_of(rank: int) -> dict[str, int]:
    """What a rank sends forward, rows of 4 heads, 8 + 8 wide, float32: 512 bytes each."""
    name = dist.group.WORLD.group_name
    x = torch.randn(1, 4, 128, 8)
    found = {}
    for kind, split, options in (
        ("dense", "contiguous", {}),
        ("zigzag", "zigzag", {"causal": True}),
        ("window", "contiguous", {"window": (5, 0)}),
        ("documents", "contiguous", {"offsets": [0, 20, 32, 64, 96, 128], "causal": True}),
        ("heads", "contiguous", {"method": "ulysses"}),
    ):
        mine = hw.shard(x, split=split)
        told: Any = {"split": split, "method": "exchange", **options}
        hw.ring_attention(mine, mine, mine, **told)
        found[kind] = sent[name] - sent_before_rows()
        found[f"{kind}, told"] = sum(hw.explain_ring(mine, mine, mine, **told).bytes_a_step)
    return found


def sent_before_rows() -> int:
    world: int = dist.get_world_size()
    return 32 * (world - 1)  # the agreement: four numbers to each


def test_only_rows_that_are_read_are_sent() -> None:
    found = results(4, bytes_of)
    row = 4 * (8 + 8) * 4
    ring = 3 * 32 * row
    assert [rank["dense"] for rank in found] == [ring] * 4
    assert sum(rank["zigzag"] for rank in found) <= 0.76 * 4 * ring
    assert [rank["window"] for rank in found] == [5 * row, 5 * row, 5 * row, 0], "the halo"
    assert [rank["documents"] for rank in found] == [0] * 4
    for rank in found:
        sent_and_told = [(rank[kind], rank[f"{kind}, told"]) for kind in ("dense", "zigzag", "window", "heads")]
        assert all(really == told for really, told in sent_and_told), sent_and_told
