"""A `BlockMask` of tensors: checked, and written out as a mask where the kernel cannot read them at once."""

import torch
from torch import Tensor

from headwork.engine.arrays import CallSizes
from headwork.engine.block_mask import BlockMask, check_is_one
from headwork.errors import HeadworkError
from headwork.torch.path import check_place


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
