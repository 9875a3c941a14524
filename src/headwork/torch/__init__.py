"""headwork below torch: tensors in, tensors out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headwork.errors import HeadworkError
from headwork.extras import how_to_install

try:
    import torch as _torch  # noqa: F401  # only to say how to get it
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise HeadworkError(f"headwork.torch needs torch, which is not installed: {how_to_install('torch')}") from None

from headwork.torch.attention import scaled_dot_product_attention
from headwork.torch.decode import attention_decode
from headwork.torch.explain import explain
from headwork.torch.flex import flex_blocks
from headwork.torch.full import attention
from headwork.torch.layer import MultiheadAttention
from headwork.torch.paged_cache import PagedCache
from headwork.torch.path import Path
from headwork.torch.quantize import quantize
from headwork.torch.replace import restore, use
from headwork.torch.report import Report, report
from headwork.torch.varlen import attention_varlen

if TYPE_CHECKING:
    from headwork.torch.cluster.context import context_parallel
    from headwork.torch.cluster.explained import explain_ring
    from headwork.torch.cluster.ring import ring_attention
    from headwork.torch.cluster.rows import positions, shard, unshard

__all__ = [
    "MultiheadAttention",
    "PagedCache",
    "Path",
    "Report",
    "attention",
    "attention_decode",
    "attention_varlen",
    "context_parallel",
    "explain",
    "explain_ring",
    "flex_blocks",
    "positions",
    "quantize",
    "report",
    "restore",
    "ring_attention",
    "scaled_dot_product_attention",
    "shard",
    "unshard",
    "use",
]

# What works over several ranks is loaded when first used: a program on one machine never asks for it.
_CLUSTER = {
    "context_parallel": "context",
    "explain_ring": "explained",
    "positions": "rows",
    "ring_attention": "ring",
    "shard": "rows",
    "unshard": "rows",
}


def __getattr__(name: str) -> Any:
    if name not in _CLUSTER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"headwork.torch.cluster.{_CLUSTER[name]}"), name)
    globals()[name] = found
    return found
