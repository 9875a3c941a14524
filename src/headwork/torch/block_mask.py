"""Attention with a `BlockMask` on tensors: at once, with gradients, where they are plain memory; where they are not,
the blocks are written out as a mask.
"""

from typing import Any

import torch
from torch import Tensor

from headwork.engine.arrays import CallSizes
from headwork.engine.block_mask import BlockMask, check_is_one
from headwork.errors import HeadworkError
from headwork.torch.calls import Biases, What
from headwork.torch.operator import FINE_LSE, LSE, NO_LSE, forward, gradients, remember
from headwork.torch.path import check_place, is_memory, needs_gradient


def checked_blocks(blocks: BlockMask | None, query: Tensor, size: CallSizes) -> BlockMask | None:
    if blocks is None:
        return None
    check_is_one(blocks)
    table = blocks.visible
    if not isinstance(table, Tensor) or table.dtype != torch.bool:
        kind = table.dtype if isinstance(table, Tensor) else type(table).__name__
        raise HeadworkError(f"blocks.visible holds {kind}. Give a tensor of Booleans, True where a block may be read.")
    check_place("blocks.visible", table, query)
    blocks.check_fit(tuple(table.shape), size)
    return blocks


def written_out(blocks: BlockMask, mask: Tensor | None, size: CallSizes) -> Tensor:
    """The blocks as a mask for every token and key, and what `mask` says within them."""
    seen = written_out_to(blocks, size.tokens, size.keys)
    if mask is None:
        return seen
    return seen & mask if mask.dtype == torch.bool else mask.masked_fill(~seen, -torch.inf)


def written_out_to(blocks: BlockMask, tokens: int, keys: int) -> Tensor:
    rows = torch.arange(tokens, device=blocks.visible.device) // blocks.tokens
    columns = torch.arange(keys, device=blocks.visible.device) // blocks.keys
    seen: Tensor = blocks.visible[..., rows[:, None], columns]
    return seen


class InBlocks(torch.autograd.Function):
    """Arguments: query, key, value, the four biases, all the rest as one, and the blocks."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        query, key, value = inputs[:3]
        what: What = inputs[7]
        output = forward(query, key, value, Biases(*inputs[3:7]), what, FINE_LSE, inputs[8])
        remember(ctx, (*inputs[:7], *what), output)
        ctx.blocks = inputs[8]
        return output

    @staticmethod
    def backward(ctx: Any, *upward: Tensor | None) -> tuple[Any, ...]:
        above = [x if x is None or is_memory(x) else torch.zeros(x.shape, dtype=x.dtype) + x for x in upward]
        if torch.is_grad_enabled() or not all(x is None or is_memory(x) for x in above):
            raise HeadworkError(
                "with blocks there are no second derivatives, and no gradients of several at once: give a mask instead."
            )
        return (*gradients(ctx, above[0], above[1], True, ctx.blocks), None, None)


def run_in_blocks(
    query: Tensor, key: Tensor, value: Tensor, biases: Biases, what: What, blocks: BlockMask, lse: bool
) -> tuple[Tensor, Tensor]:
    """At once; the log-sum-exp as `ways.run` gives it."""
    if needs_gradient(query, key, value, *biases):
        found: tuple[Tensor, Tensor] = InBlocks.apply(query, key, value, *biases, what, blocks)
        return found
    return forward(query, key, value, biases, what, LSE if lse else NO_LSE, blocks)
