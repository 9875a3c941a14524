"""`explain`: the way that a call would take, by the question that decides when it is made."""

import torch
from torch import Tensor

from headwork.torch.attention import narrowed
from headwork.torch.block import block
from headwork.torch.path import Path, choose
from headwork.torch.replace import below


def explain(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    under_use: bool = False,
) -> Path:
    """Which way `scaled_dot_product_attention` would take with these arguments here and now, and why.

    `under_use=True` asks for torch's own function of that name while `use` is in force. For models of transformers
    there is `headwork.transformers.explain`. Within a block of `context_parallel` it tells how the call would go over
    the ranks.

    >>> x = torch.eye(2)
    >>> print(explain(x, x, x))
    kernel: without gradients
    >>> print(explain(x, x, x.double()))
    torch: types torch.float32, torch.float32, torch.float64
    >>> print(explain(x, x, x, under_use=True))
    torch: torch has a fused kernel for tensors of 4 axes alone
    """
    if torch.is_autocast_enabled("cpu"):
        query, key, value, attn_mask = narrowed(query, key, value, attn_mask)
    if block():
        from headwork.torch.cluster.explained import explain_ring  # a program on one machine never loads it

        return Path("ring", str(explain_ring(query, key, value, causal=is_causal, scale=scale)))
    ask = below if under_use else choose
    return ask(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
