"""Attention for arrays of real size: fused, native where it was compiled, blocked in NumPy where not."""

from headwork.engine.attention import attention
from headwork.engine.backend import Backend, backend
from headwork.engine.backward import Gradients, attention_backward
from headwork.engine.block_mask import BlockMask
from headwork.engine.cache import Cache
from headwork.engine.decode import attention_decode
from headwork.engine.head_norm import HeadNorm
from headwork.engine.layer import MultiHead
from headwork.engine.merge import merge, merge_into
from headwork.engine.paged_cache import PagedCache
from headwork.engine.partial import add_gradients, continue_attention
from headwork.engine.quantize import quantize
from headwork.engine.rotary import Rotary
from headwork.engine.varlen import attention_varlen
from headwork.engine.varlen_backward import attention_varlen_backward

__all__ = [
    "Backend",
    "BlockMask",
    "Cache",
    "Gradients",
    "HeadNorm",
    "MultiHead",
    "PagedCache",
    "Rotary",
    "add_gradients",
    "attention",
    "attention_backward",
    "attention_decode",
    "attention_varlen",
    "attention_varlen_backward",
    "backend",
    "continue_attention",
    "merge",
    "merge_into",
    "quantize",
]
