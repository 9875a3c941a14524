"""`scaled_dot_product_attention`, with torch's signature and torch's rules, on our kernel where it can be."""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as torchs_own

from headwork.engine.backend import kernel
from headwork.torch.calls import Biases, plain
from headwork.torch.functions import PlainAtOnce, plain_forward
from headwork.torch.path import Path, check_tensors, choose, leading, quiet
from headwork.torch.report import count, listening
from headwork.torch.ways import fresh_seed, run

AT_ONCE = {recorded: Path("kernel", f"{'with' if recorded else 'without'} gradients") for recorded in (False, True)}


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
    With gradients, under `torch.compile` and `torch.func`. What our kernel does not cover goes to torch's own function;
    `explain` tells which way a call takes. A token that may read no key gives zeros.

    >>> x = torch.eye(2)
    >>> scaled_dot_product_attention(x, x, x, scale=1.0)
    tensor([[0.7311, 0.2689],
            [0.2689, 0.7311]])
    """
    if dropout_p == 0 and kernel is not None and quiet(query, key, value, attn_mask):
        # Most calls ask for nothing more, and small ones should not pay for the questions: the kernel has fewer.
        out = at_once("scaled_dot_product_attention", query, key, value, attn_mask, is_causal, scale, enable_gqa)
        if out is not None:
            return out
    if torch.is_autocast_enabled("cpu"):
        query, key, value, attn_mask = narrowed(query, key, value, attn_mask)
    path = choose(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    count("scaled_dot_product_attention", path)
    lead = leading(query, key, value, enable_gqa) if path.way != "torch" else None
    if lead is None:
        return torchs_own(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    query, key, value = (spread(tensor, lead, enable_gqa) for tensor in (query, key, value))
    factor = query.shape[-1] ** -0.5 if scale is None else float(scale)
    what = plain(is_causal, factor, dropout_p, fresh_seed() if dropout_p else None)
    return run(path.way, query, key, value, Biases(attn_mask), what)[0]


def at_once(
    name: str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float | None,
    grouped: bool,
) -> Tensor | None:
    """The output, or None where a closer look is needed."""
    if causal.__class__ is not bool or grouped.__class__ is not bool:
        return None
    recorded = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
    if mask is not None and mask.requires_grad and torch.is_grad_enabled():
        return None
    if recorded and key.dim() > 1:
        out = PlainAtOnce.apply(query, key, value, mask, causal, grouped, scale)
    elif recorded:
        return None
    else:
        out = plain_forward(query, key, value, mask, None, causal, grouped, scale)
    if listening and out is not None:
        count(name, AT_ONCE[recorded])
    return out


def spread(tensor: Tensor, lead: tuple[int, ...], grouped: bool) -> Tensor:
    """The tensor with the leading axes of the result, but its own heads where they are grouped."""
    wanted = (*lead[:-1], tensor.shape[-3]) if grouped else lead
    return tensor if tensor.shape[:-2] == wanted else tensor.expand(*wanted, *tensor.shape[-2:])


def narrowed(*tensors: Tensor | None) -> tuple[Tensor | None, ...]:
    """As torch.autocast has it for this function: every float but float64 in autocast's type."""
    check_tensors(*tensors)
    dtype = torch.get_autocast_dtype("cpu")
    kept = (torch.float64, torch.bool)
    return tuple(t if t is None or t.dtype in kept or not t.is_cpu else t.to(dtype) for t in tensors)
