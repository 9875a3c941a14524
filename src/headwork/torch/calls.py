"""The kernel called with torch's tensors: plain memory on the CPU, read and written where it lies."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.autograd.profiler import record_function
from torch.nn import functional

from headwork.engine.backend import AHEAD, DEFAULT_THREADS, kernel
from headwork.engine.block_mask import BlockMask
from headwork.torch.path import needs_gradient, quiet

NOTHING = nullcontext()
Saved: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]  # query, key, value, output, log-sum-exp


class Biases(NamedTuple):
    """What is added to the scores, and may have gradients: a mask (or None, or Boolean), sinks and ALiBi slopes
    (…, heads), a table of relative positions (…, heads, 2·r + 1); the last three of the type of the sums.
    """

    mask: Tensor | None = None
    sinks: Tensor | None = None
    slopes: Tensor | None = None
    table: Tensor | None = None


class What(NamedTuple):
    """The rest of a call, as the kernel has it; `spans` has a row for every batch item, `seed` one number."""

    spans: Tensor | None
    seed: Tensor | None
    swapped: bool
    offset: int
    left: int
    right: int
    scale: float
    softcap: float
    dropout: float


def plain(causal: bool, scale: float, dropout: float = 0.0, seed: Tensor | None = None) -> What:
    """Nothing asked but what torch's own function knows; a causal call aligns the first token and key."""
    return What(None, seed, False, 0, -1, 0 if causal else -1, scale, 0.0, dropout)


def accumulator(query: Tensor) -> torch.dtype:
    return torch.float64 if query.dtype == torch.float64 else torch.float32


def threads() -> int:
    """As many as torch would use here: its number counts for fresh threads and forked workers too."""
    return DEFAULT_THREADS or torch.get_num_threads()


def seen_by_profiler(name: str) -> AbstractContextManager[object]:
    """The kernel runs behind the dispatcher's back, where torch's profiler does not look by itself."""
    return record_function(name) if torch.autograd._profiler_enabled() else NOTHING


def drawn_seed(what: What) -> int:
    return 0 if what.seed is None else int(what.seed) % 2**64


def forward_into(
    out: Tensor,
    lse: Tensor | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    biases: Biases,
    what: What,
    weights: Tensor | None = None,
    blocks: BlockMask | None = None,
) -> None:
    """Key heads divide query heads; `weights` are of the accumulation type."""
    assert kernel is not None
    mask, sinks, slopes, table = biases
    spans, _, *numbers = what
    with seen_by_profiler("headwork::forward"):
        kernel.forward(
            query, key, value, mask, out, lse, weights, spans, sinks, slopes, table,
            *numbers, drawn_seed(what), threads(), **in_blocks(blocks),
        )  # fmt: skip


def backward_into(
    gradients: tuple[Tensor, Tensor, Tensor],
    of_biases: Biases,
    dout: Tensor,
    dlse: Tensor | None,
    saved: Saved,
    biases: Biases,
    what: What,
    blocks: BlockMask | None = None,
) -> None:
    """`of_biases` are of the accumulation type, None where they are not asked for; that of the sinks is not ours."""
    assert kernel is not None
    mask, sinks, slopes, table = biases
    spans, _, *numbers = what
    with seen_by_profiler("headwork::backward"):
        kernel.backward(
            *saved[:3], mask, *saved[3:], dout, dlse, *gradients, of_biases.mask, of_biases.slopes, of_biases.table,
            spans, sinks, slopes, table, *numbers, drawn_seed(what), threads(), **in_blocks(blocks),
        )  # fmt: skip


def linear(x: Tensor, weights: Tensor, bias: Tensor | None) -> Tensor:
    """x·weightsᵀ + bias, as `torch.nn.functional.linear`: by the kernel where that is ahead of torch's library, and
    nobody asks for gradients or has a say.
    """
    if AHEAD and not needs_gradient(x, weights, weights, bias) and quiet(x, weights, weights, bias):
        assert kernel is not None
        out = x.new_empty((*x.shape[:-1], weights.shape[0]))
        if kernel.linear(x.flatten(0, -2), weights.t(), bias, out.flatten(0, -2), threads()):
            return out
    return functional.linear(x, weights, bias)


def in_blocks(blocks: BlockMask | None) -> dict[str, Any]:
    if blocks is None:
        return {}
    return {"blocks": blocks.visible, "block_tokens": blocks.tokens, "block_keys": blocks.keys}


def sink_gradient(sinks: Tensor, dout: Tensor, dlse: Tensor | None, out: Tensor, lse: Tensor, swapped: bool) -> Tensor:
    """−Σ exp(sink − lse)·δ over the rows of each head: a sink has a weight and no value."""
    delta = (dout.to(lse.dtype) * out.to(lse.dtype)).sum(-1)
    delta = delta.transpose(-1, -2) if swapped else delta
    delta = delta if dlse is None else delta - dlse
    weight = torch.exp(sinks[..., None].to(lse.dtype) - lse).masked_fill(sinks[..., None] == -torch.inf, 0)
    return torch.where(weight == 0, 0, -weight * delta).sum(-1).sum_to_size(sinks.shape).to(sinks.dtype)
