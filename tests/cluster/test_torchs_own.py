"""torch's own context parallelism on CPUs, under `use`: what it gives is what one process gives."""

import os
import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwork.engine import backend
from headwork.errors import HeadworkError
from headwork.torch.cluster.torchs_own import MODULE
from tests.cluster.ranks import run

pytestmark = pytest.mark.skipif(
    not backend().native and "HEADWORK_REQUIRE_ALL" not in os.environ,
    reason=f"no kernel here: {backend().reason}; see CONTRIBUTING.md to build one",
)
BOUND = 1e-13
ORDERS = ((True, True), (True, False), (False, False))  # causal; the first and last pieces on one rank


class Attention(nn.Module):  # type: ignore[misc]  # torch is Any to the checker
    """A layer whose core is a module of its own, which `parallelize_module` can take hold of."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.core, self.join = nn.Linear(24, 48), Core(), nn.Linear(24, 24)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.project(x).split((24, 12, 12), -1)
        q, k, v = (part.unflatten(-1, (-1, 6)).transpose(1, 2) for part in parts)
        k, v = (part.repeat_interleave(2, 1) for part in (k, v))
        return self.join(self.core(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Core(nn.Module):  # type: ignore[misc]  # torch is Any to the checker
    """softmax(q·kᵀ)·v, and nothing else."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, is_causal: bool) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)


def drawn(*shapes: tuple[int, ...]) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=torch.float64) for shape in shapes]


def apart(got: list[Tensor], want: list[Tensor]) -> float:
    pairs = ((a.detach(), b.detach()) for a, b in zip(got, want, strict=True))
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


def plain_call(mesh: Any, causal: bool, balanced: bool, kv_heads: int = 4, d_v: int = 8) -> float:
    """Output and gradients of q, k, v that lie over the ranks."""
    from torch.distributed.tensor.experimental import context_parallel
    from torch.distributed.tensor.experimental._attention import _cp_options, context_parallel_unshard

    tensors = drawn((2, 4, 16, 8), (2, kv_heads, 16, 8), (2, kv_heads, 16, d_v), (2, 4, 16, d_v))
    told = {"is_causal": causal, "enable_gqa": kv_heads != 4}
    whole = [x.clone().requires_grad_() for x in tensors[:3]]
    want = F.scaled_dot_product_attention(whole[0], whole[1], whole[2], **told)
    want.backward(tensors[3])
    _cp_options.enable_load_balance = balanced
    with context_parallel(mesh, buffers=tensors, buffer_seq_dims=[2] * 4):
        mine = [x.clone().requires_grad_() for x in tensors[:3]]
        out = F.scaled_dot_product_attention(mine[0], mine[1], mine[2], **told)
        out.backward(tensors[3])
        found = [out.detach(), *(x.grad for x in mine)]
        return apart(context_parallel_unshard(mesh, found, [2] * 4), [want, *(y.grad for y in whole)])


def layer() -> tuple[Attention, Tensor, Tensor, list[Tensor]]:
    """The layer, x, the gradient of its output, and the gradients that one process finds."""
    torch.manual_seed(1)
    one = Attention().double()
    x, up = drawn((2, 16, 24), (2, 16, 24))
    one(x).backward(up)
    want = [p.grad.clone() for p in one.parameters() if p.grad is not None]
    one.zero_grad()
    return one, x, up, want


def summed(model: nn.Module, group: Any) -> list[Tensor]:
    """The gradients of all ranks together."""
    found = [p.grad for p in model.parameters() if p.grad is not None]
    for one in found:
        torch.distributed.all_reduce(one, group=group)
    return found


def in_a_layer(mesh: Any) -> float:
    """The context wraps torch's function: the layer is as it was."""
    from torch.distributed.tensor.experimental import context_parallel

    one, x, up, want = layer()
    with context_parallel(mesh, buffers=[x, up], buffer_seq_dims=[1, 1]):
        one(x).backward(up)
    return apart(summed(one, mesh.get_group()), want)


def by_a_plan(mesh: Any) -> float:
    """`parallelize_module` wraps the core, and the rows are cut by torch's function for it."""
    from torch.distributed.tensor.experimental import _attention as experimental
    from torch.distributed.tensor.experimental._context_parallel._load_balancer import _HeadTailLoadBalancer
    from torch.distributed.tensor.parallel import parallelize_module

    one, x, up, want = layer()
    plan = experimental._ContextParallel(2, experimental._ContextParallel.AttentionType.SDPA)
    parallelize_module(one.core, mesh, plan)
    balancer = _HeadTailLoadBalancer(16, mesh.size(), "cpu")
    mine, mine_up = experimental._context_parallel_shard(mesh, [x, up], [1, 1], balancer)
    experimental._enable_context_parallel_dispatcher()
    try:
        one(mine).backward(mine_up)
    finally:
        experimental._disable_context_parallel_dispatcher()
    return apart(summed(one, mesh.get_group()), want)


def llama(mesh: Any) -> float:
    """A model of transformers that knows nothing of ranks: its causal order is torch's is_causal."""
    from torch.distributed.tensor.experimental import context_parallel
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2, "vocab_size": 50}
    torch.manual_seed(2)
    config = LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, attn_implementation="sdpa")
    model = LlamaForCausalLM(config).double()
    words = torch.randint(50, (2, 17))
    read, after, at = words[:, :-1].contiguous(), words[:, 1:].contiguous(), torch.arange(16).repeat(2, 1)

    def work() -> None:
        scores = model(read, position_ids=at, use_cache=False).logits
        F.cross_entropy(scores.flatten(0, 1), after.flatten(), reduction="sum").backward()

    work()
    want = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()

    def whole_order(module: nn.Module, args: Any, told: dict[str, Any]) -> Any:
        return args, told | {"attention_mask": None, "is_causal": True}

    for block in model.model.layers:  # places that do not follow each other look like packed texts to transformers
        block.self_attn.register_forward_pre_hook(whole_order, with_kwargs=True)
    with context_parallel(mesh, buffers=[read, after, at], buffer_seq_dims=[1, 1, 1]):
        work()
    return apart(summed(model, mesh.get_group()), want)


def refused(mesh: Any, masked: bool, dropout: float) -> str:
    from torch.distributed.tensor.experimental import context_parallel

    q, mask = torch.zeros(1, 1, 8, 4), torch.ones(1, 1, 8, 8, dtype=torch.bool)
    try:
        with context_parallel(mesh, buffers=[q, mask], buffer_seq_dims=[2, 2]):
            F.scaled_dot_product_attention(q, q, q, attn_mask=mask if masked else None, dropout_p=dropout)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def refused_use() -> str:
    import headwork.torch as ours

    try:
        ours.use()
    except HeadworkError as error:
        return str(error)
    return ""


def on_ranks(rank: int) -> dict[str, Any]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import _attention as experimental
    from torch.distributed.tensor.experimental._context_parallel import _attention as table

    import headwork.torch as ours

    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),), mesh_dim_names=("cp",))
    before = dict(table.custom_ops)
    found: dict[str, Any] = {}
    with ours.use() as ran:
        found["plain"] = [plain_call(mesh, causal, balanced) for causal, balanced in ORDERS]
        experimental._cp_options.enable_load_balance = True
        found["layer"] = in_a_layer(mesh)
        found["plan"] = by_a_plan(mesh)
        found["llama"] = llama(mesh)
        found["others"] = [plain_call(mesh, True, True, 2, 8), plain_call(mesh, True, True, 4, 6)]
        found["refused"] = [refused(mesh, True, 0.0), refused(mesh, False, 0.5), refused(mesh, True, 0.5)]
        with ours.use():
            pass
        found["nested"] = len(table.custom_ops) - len(before)
    found["after"] = table.custom_ops == before
    ours.use()
    found["entered"] = len(table.custom_ops) - len(before)
    ours.restore()
    found["restored"] = table.custom_ops == before
    held = table.__dict__.pop("_cp_options")
    found["missing"] = refused_use()
    table._cp_options = held
    sys.modules[MODULE] = None  # type: ignore[assignment]  # a torch without the module
    found["no module"] = refused_use()
    sys.modules[MODULE] = table
    found["unchanged"] = (
        table.custom_ops == before,
        ours.replace.in_use,
        torch.nn.attention.current_flash_attention_impl(),
    )
    found["ran"] = str(ran)
    return found


def with_fully_shard(rank: int) -> float:
    """Two items of a batch on two ranks each; parameters are sharded over all four."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.experimental import context_parallel

    import headwork.torch as ours

    one, x, up, want = layer()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "cp"))
    item = mesh["dp"].get_local_rank()
    x, up = x[item : item + 1].clone(), up[item : item + 1].clone()
    fully_shard(one, mesh=mesh["dp", "cp"]._flatten("all"))
    with ours.use(), context_parallel(mesh["cp"], buffers=[x, up], buffer_seq_dims=[1, 1]):
        one(x).backward(up)
    return apart([4 * p.grad.full_tensor() for p in one.parameters()], want)


@pytest.mark.parametrize("world", [2, 4])
def test_what_torch_gives_over_ranks_is_what_one_process_gives(world: int) -> None:
    """Its context manager, its plan for modules, a model of transformers; the table is as it was afterwards."""
    for rank in run(world, on_ranks):
        assert not rank.error, rank.error
        found = rank.result
        assert max(*found["plain"], found["layer"], found["plan"], found["llama"]) <= BOUND, found
        assert max(found["others"]) <= BOUND, found
        for said in found["refused"]:
            assert "HeadworkError: " in said, said
            assert "torch's context parallelism has no masks and no dropout" in said
        assert "over the ranks of torch's context parallelism" in found["ran"]
        assert found["nested"] == 2
        assert found["after"]
        assert (found["entered"], found["restored"]) == (2, True)
        assert "has no _cp_options" in found["missing"]
        assert f"has no {MODULE}, which" in found["no module"]
        assert "Nothing was changed." in found["no module"]
        assert found["unchanged"] == (True, [], None)


def test_fsdp_beside_it() -> None:
    for rank in run(4, with_fully_shard):
        assert not rank.error, rank.error
        assert rank.result <= BOUND
