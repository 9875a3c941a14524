"""`scaled_dot_product_attention`, with torch's signature and torch's rules, on our kernel where it can be."""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as torchs_own

from headwork.engine import attention

KNOWN = (torch.float32, torch.float64, torch.float16)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query·keyᵀ·scale)·value for every head: torch's function, argument by argument.

    query (…, heads, tokens, d_k), key (…, heads, keys, d_k), value (…, heads, keys, d_v) → (…, heads, tokens, d_v).

    >>> x = torch.eye(2)
    >>> scaled_dot_product_attention(x, x, x, scale=1.0)
    tensor([[0.7311, 0.2689],
            [0.2689, 0.7311]])
    """
    tensors = (query, key, value)
    plain = attn_mask is None and dropout_p == 0 and not enable_gqa and not any(t.requires_grad for t in tensors)
    same = len({t.dtype for t in tensors}) == 1 and len({t.shape for t in tensors}) == 1 and query.dim() >= 2
    if not plain or not same or query.dtype not in KNOWN or query.device.type != "cpu":
        return torchs_own(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    causal = "top_left" if is_causal else False
    return torch.from_numpy(attention(*(t.numpy() for t in tensors), causal=causal, scale=scale))
