"""Attention in torch's own operations, with every matrix written out: for tensors that the kernel cannot read."""

import torch
from torch import Tensor

from headwork.engine.dropout import dropped_below, gain
from headwork.torch.calls import Biases, What, accumulator


def worked(query: Tensor, key: Tensor, value: Tensor, biases: Biases, what: What) -> tuple[Tensor, Tensor]:
    """(out, log-sum-exp), differentiable as often as one likes, on any device; batch axes are equal."""
    return worked_with_weights(query, key, value, biases, what)[:2]


def worked_with_weights(
    query: Tensor, key: Tensor, value: Tensor, biases: Biases, what: What
) -> tuple[Tensor, Tensor, Tensor]:
    mask, sinks, slopes, table = biases
    q, k, v = (turned(tensor, what.swapped).to(accumulator(query)) for tensor in (query, key, value))
    group = q.shape[-3] // k.shape[-3] if k.shape[-3] else 1
    k, v = (tensor.repeat_interleave(group, -3) for tensor in (k, v))
    shape = (*q.shape[:-1], k.shape[-2])
    distance, seen = places(shape, query.device, what)
    if mask is not None:
        seen = seen & (mask if mask.dtype == torch.bool else mask != -torch.inf)
    # What no token reads may hold anything: 0·NaN is not 0, there or in the gradients.
    read = seen.expand(shape).any(-2)[..., None]
    k, v = (torch.where(read, tensor, 0) for tensor in (k, v))
    scores = q @ k.transpose(-1, -2) * what.scale
    if what.softcap:
        scores = torch.tanh(scores / what.softcap) * what.softcap
    if slopes is not None:
        scores = scores - slopes[..., None, None] * distance.abs()
    if table is not None:
        reach = table.shape[-1] // 2
        at = (distance.clamp(-reach, reach) + reach).expand(shape)
        added = torch.gather(table[..., None, :].expand(*shape[:-1], table.shape[-1]), -1, at)
        scores, seen = scores + added, seen & (added != -torch.inf)
    if mask is not None and mask.dtype != torch.bool:
        scores = scores + mask.masked_fill(mask == -torch.inf, 0)
    return mixed(scores.masked_fill(~seen, -torch.inf), v, sinks, what, query.dtype)


def mixed(
    scores: Tensor, v: Tensor, sinks: Tensor | None, what: What, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores to weights, weights to the output; rows that read nothing give zeros."""
    if sinks is None:
        everything = scores
    else:
        everything = torch.cat((scores, sinks[..., None, None].expand(*scores.shape[:-1], 1)), -1)
    hidden = everything == -torch.inf
    empty = hidden.all(-1, keepdim=True)
    whole = everything.masked_fill(empty, 0)
    lse = whole.logsumexp(-1) if whole.shape[-1] else whole.sum(-1)
    weights = whole.softmax(-1).masked_fill(hidden, 0)[..., : scores.shape[-1]]
    if what.dropout:
        weights = weights * keeps(weights, what)
    return turned(weights @ v, what.swapped).to(dtype), lse.masked_fill(empty[..., 0], -torch.inf), weights


def turned(tensor: Tensor, swapped: bool) -> Tensor:
    return tensor.transpose(-2, -3) if swapped and tensor.dim() > 2 else tensor


def places(shape: tuple[int, ...], device: torch.device, what: What) -> tuple[Tensor, Tensor]:
    """(how far each key lies from each token's own position, whether it may be read), for what the spans say."""
    tokens, keys = shape[-2:]
    key, row = (torch.arange(n, device=device) for n in (keys, tokens))
    if what.spans is None:
        distance = key - (row[:, None] + what.offset)
        seen = torch.ones((1, 1), dtype=torch.bool, device=device)
    else:
        numbers = what.spans.to(device).reshape(*shape[:-3], 1, 1, 1, 6).unbind(-1)
        distance = key - (row[:, None] + numbers[4])
        seen = (key < numbers[3]) & (key >= numbers[5])
    if what.left >= 0:
        seen = seen & (distance >= -what.left)
    if what.right >= 0:
        seen = seen & (distance <= what.right)
    return distance, seen


def keeps(weights: Tensor, what: What) -> Tensor:
    """What dropout multiplies every weight by: `headwork.engine.dropout.keeps` in whole numbers with a sign."""
    assert what.seed is not None

    def shifted(x: Tensor, by: int) -> Tensor:
        return (x >> by) & ((1 << (64 - by)) - 1)

    def scattered(x: Tensor) -> Tensor:
        x = x + (0x9E3779B97F4A7C15 - 2**64)
        x = (x ^ shifted(x, 30)) * (0xBF58476D1CE4E5B9 - 2**64)
        x = (x ^ shifted(x, 27)) * (0x94D049BB133111EB - 2**64)
        return x ^ shifted(x, 31)

    *batch, heads, tokens, keys = weights.shape
    item, head, row, column = (
        torch.arange(n, device=weights.device) for n in (max(1, torch.Size(batch).numel()), heads, tokens, keys)
    )
    key = scattered(what.seed.to(weights.device).reshape(()))
    key = scattered(key ^ item[:, None, None])
    key = scattered(key ^ head[:, None])
    key = scattered(key ^ row)[..., None]
    half = 0xFFFFFFFF
    x = (column + (key & half)) & half
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & half
    x = ((x ^ (x >> 15) ^ shifted(key, 32)) * (0x846CA68B)) & half
    kept = ((x ^ (x >> 16)) >> 8) >= dropped_below(what.dropout)
    return kept.reshape(weights.shape).to(weights.dtype) * gain(what.dropout)
