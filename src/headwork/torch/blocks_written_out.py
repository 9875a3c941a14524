"""A block of keys in torch's own operations, with every matrix written out: where there is no kernel."""

from typing import NamedTuple

import torch
from torch import Tensor

from headwork.engine.arguments import Whole


class BlockPlace(NamedTuple):
    """Where the tokens stand before a block of keys, as one offset or in runs, and how their scores are made."""

    offset: int
    left: int
    right: int
    scale: float
    softcap: float
    spans: Whole | None


def merge_written_out(q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, block: BlockPlace) -> None:
    """As `forward_block` has it."""
    scores, _, values = scored(q, k, v, out.dtype, block)
    sums = scores.logsumexp(-1).to(lse.dtype)
    here = torch.exp(scores - sums.masked_fill(sums == -torch.inf, 0)[..., None].to(out.dtype)) @ values
    share = torch.sigmoid(sums - lse).nan_to_num(0.0).to(out.dtype)  # both −∞: nothing of either
    out.lerp_(here, share[..., None])
    lse.copy_(torch.logaddexp(lse, sums))


def add_written_out(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    d_out: Tensor,
    lse: Tensor,
    delta: Tensor,
    d_q: Tensor,
    d_k: Tensor,
    d_v: Tensor,
    block: BlockPlace,
) -> None:
    """As `backward_block` has it."""
    sort, group = d_q.dtype, q.shape[1] // k.shape[1]
    scores, slope, values = scored(q, k, v, sort, block)
    p = torch.exp(scores - lse.masked_fill(lse == -torch.inf, 0)[..., None]).to(sort)
    up = d_out.to(sort)
    ds = p * (up @ values.transpose(-1, -2) - delta[..., None]) * slope * block.scale
    d_q += ds @ k.to(sort).repeat_interleave(group, 1)
    d_k += (ds.transpose(-1, -2) @ q.to(sort)).unflatten(1, (-1, group)).sum(2)
    d_v += (p.transpose(-1, -2) @ up).unflatten(1, (-1, group)).sum(2)


def scored(
    q: Tensor, k: Tensor, v: Tensor, sort: torch.dtype, block: BlockPlace
) -> tuple[Tensor, Tensor | float, Tensor]:
    """(scores with −∞ where a key is hidden, the slope of the softcap, the values of every query head)."""
    offset, left, right, scale, softcap, spans = block
    group = q.shape[1] // k.shape[1]
    keys, values = (t.to(sort).repeat_interleave(group, 1) for t in (k, v))
    scores = q.to(sort) @ keys.transpose(-1, -2) * scale
    slope: Tensor | float = 1.0
    if softcap:
        bent = torch.tanh(scores / softcap)
        scores, slope = bent * softcap, 1 - bent * bent
    seen = torch.zeros(scores.shape[-2:], dtype=torch.bool, device=scores.device)
    runs = [(0, q.shape[2], 0, k.shape[2], offset, 0)] if spans is None else spans.tolist()
    for token0, tokens, key0, count, shift, _ in runs:
        distance = torch.arange(count, device=scores.device) - (
            torch.arange(tokens, device=scores.device)[:, None] + shift
        )
        near = torch.ones_like(distance, dtype=torch.bool) if left < 0 else distance >= -left
        near = near if right < 0 else near & (distance <= right)
        seen[token0 : token0 + tokens, key0 : key0 + count] = near
    return scores.masked_fill(~seen.to(scores.device), -torch.inf), slope, values
