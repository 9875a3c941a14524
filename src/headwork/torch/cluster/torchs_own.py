"""torch's own context parallelism on CPUs: the entries that its table of operators lacks, while `use` is in force.

`torch.distributed.tensor.experimental.context_parallel`, `parallelize_module` with `_ContextParallel` and all that is
built on them hand sharded tensors to torch's attention and look up, in a table, what to do with them. For the operators
of the CPU the table has nothing. These names are torch's private ones.
"""

import sys
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from headwork.errors import HeadworkError
from headwork.torch.cluster import ring
from headwork.torch.cluster.agreement import refuse
from headwork.torch.cluster.call import checked_call
from headwork.torch.cluster.distributed import axis_of, wrapped
from headwork.torch.cluster.operator import ring_attention, ring_attention_backward
from headwork.torch.path import Path
from headwork.torch.report import count

MODULE = "torch.distributed.tensor.experimental._context_parallel._attention"
NAMES = ("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward")
OVER_RANKS = Path("operator", "over the ranks of torch's context parallelism")
NEEDED = ("custom_ops", "_cp_options")


def operators() -> list[Any]:
    return [getattr(torch.ops.aten, name).default for name in NAMES]


class Entries:
    """Our entries in torch's table, from `enter` until `remove`."""

    def __init__(self, table: dict[Any, Any]) -> None:
        self.table = table
        self.before: dict[Any, Any] = {}

    def enter(self) -> "Entries":
        for operator, handler in zip(operators(), (forward, backward), strict=True):
            self.before[operator] = self.table.get(operator)
            self.table[operator] = handler
        return self

    def remove(self) -> None:
        for operator, handler in self.before.items():
            if handler is None:
                self.table.pop(operator, None)
            else:
                self.table[operator] = handler


def table() -> Entries | None:
    """Ready to enter; None where this torch has no such table and no group of ranks has asked for one."""
    try:
        module = import_module(MODULE)
        missing = [name for name in NEEDED if not hasattr(module, name)]
        missing += [name for name in NAMES if not hasattr(torch.ops.aten, name)]
    except ImportError:
        missing = [MODULE]
    if not missing:
        return Entries(module.custom_ops)
    if not dist.is_initialized():
        return None
    raise HeadworkError(
        f"torch {torch.__version__} has no {', '.join(missing)}, which its context parallelism needs to run on CPUs. "
        "Nothing was changed. Call headwork.torch.ring_attention instead, or use() before init_process_group where "
        "every sequence lies on one rank."
    )


def forward(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The operator for sharded tensors: query, key, value, dropout_p, is_causal; attn_mask, scale."""
    query, key, value = args[:3]
    call, group = told(args[3:], kwargs, query, key, value)
    count("use", OVER_RANKS)
    local = (x.to_local() for x in (query, key, value))
    out, lse = ring_attention(*local, None, call, group)
    return wrapped(out, query, (value.shape[-1],)), wrapped(lse, query, ())


def backward(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """grad_out, query, key, value, out, logsumexp, dropout_p, is_causal; attn_mask, scale."""
    dout, query, key, value, out, lse = args[:6]
    call, group = told(args[6:], kwargs, query, key, value)
    rows = (x.to_local() for x in (query, key, value, out, lse))
    up = dout.redistribute(placements=query.placements).to_local()
    found = ring_attention_backward(up, None, *rows, None, call, group)
    dq, dk, dv = (wrapped(x, like, (like.shape[-1],)) for x, like in zip(found, (query, key, value), strict=True))
    return dq, dk, dv


def told(rest: tuple[Any, ...], kwargs: dict[str, Any], query: Any, key: Any, value: Any) -> tuple[str, str]:
    """The call as our operator carries it, and the group's name."""
    dropout, causal = (*rest, *(kwargs.get(name, False) for name in ("dropout_p", "is_causal")[len(rest) :]))[:2]
    group = query.device_mesh.get_group(axis_of(query, key, value))
    check(kwargs.get("attn_mask"), dropout, group)
    call = checked_call(
        query.shape[-1], bool(causal), None, kwargs.get("scale"), None, laid(causal), "auto", gradients=True
    )
    return call, group.group_name


def check(mask: Any, dropout: float, group: Any) -> None:
    if mask is None and not dropout:
        return
    error = HeadworkError(
        "torch's context parallelism has no masks and no dropout: give is_causal=True or nothing, or call "
        "headwork.torch.ring_attention, which has windows and packed documents too."
    )
    refuse(group, error)


def laid(causal: bool) -> str:
    """In causal order torch puts the first and the last pieces on one rank, unless it was told not to."""
    return "zigzag" if causal and sys.modules[MODULE]._cp_options.enable_load_balance else "contiguous"


def is_shared(query: Any) -> bool:
    """Whether torch's context parallelism is at work, and the tokens of this tensor lie over ranks."""
    if not isinstance(query, DTensor) or DTensor._op_dispatcher._custom_op_handlers.get(operators()[0]) is not forward:
        return False
    return any(placement.is_shard(query.dim() - 2) for placement in query.placements)


def beside(query: Any, key: Any, value: Any, mask: Any, dropout: float, causal: bool, scale: float | None) -> Any:
    """What torch has no fused kernel for, d_v ≠ d_k say: written out, causal order would be that of one rank's rows."""
    check(mask, dropout, query.device_mesh.get_group(axis_of(query, key, value)))
    count("use", OVER_RANKS)
    return ring.ring_attention(query, key, value, causal=causal, scale=scale, split=laid(causal))
