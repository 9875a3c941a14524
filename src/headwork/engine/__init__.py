"""Attention for arrays of real size: fused, native where it was compiled, blocked in NumPy where not."""

from headwork.engine.attention import attention
from headwork.engine.backend import Backend, backend
from headwork.engine.backward import Gradients, attention_backward
from headwork.engine.cache import Cache
from headwork.engine.head_norm import HeadNorm
from headwork.engine.layer import MultiHead
from headwork.engine.merge import merge
from headwork.engine.rotary import Rotary
from headwork.engine.varlen import attention_varlen

__all__ = [
    "Backend",
    "Cache",
    "Gradients",
    "HeadNorm",
    "MultiHead",
    "Rotary",
    "attention",
    "attention_backward",
    "attention_varlen",
    "backend",
    "merge",
]
