"""A block mask of torch's FlexAttention, as `headwork.torch.attention` takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headwork.engine.block_mask import BlockMask
from headwork.errors import HeadworkError
from headwork.torch.block_mask import written_out_to

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask as FlexMask


def flex_blocks(given: FlexMask) -> tuple[BlockMask, Tensor | None]:
    """The blocks that may be read, and a mask for what is visible in those that may be read in part; None if none is.

    A block that FlexAttention calls full costs no look, one that it does not list costs nothing. Its `mask_mod` is
    asked once, here: (batch or 1, heads or 1, tokens, keys) Booleans, only where some block is visible in part.

    >>> from torch.nn.attention.flex_attention import create_block_mask
    >>> def documents(batch, head, token, key):
    ...     return token // 256 == key // 256
    >>> blocks, mask = flex_blocks(create_block_mask(documents, None, None, 512, 512, device="cpu"))
    >>> blocks.visible.int()
    tensor([[[[1, 1, 0, 0],
              [1, 1, 0, 0],
              [0, 0, 1, 1],
              [0, 0, 1, 1]]]], dtype=torch.int32)
    >>> mask is None
    True
    """
    from torch.nn.attention.flex_attention import BlockMask as FlexMask
    from torch.nn.attention.flex_attention import create_mask

    if not isinstance(given, FlexMask):
        raise HeadworkError(
            f"flex_blocks was given a {type(given).__name__}. Give a BlockMask of torch.nn.attention.flex_attention, "
            "as its create_block_mask makes it."
        )
    tokens, keys = given.seq_lengths
    size = given.BLOCK_SIZE
    shape = (*given.kv_num_blocks.shape, -(-keys // size[1]))
    partly = _table(given.kv_num_blocks, given.kv_indices, shape)
    full = torch.zeros_like(partly)
    if given.full_kv_num_blocks is not None and given.full_kv_indices is not None:
        full = _table(given.full_kv_num_blocks, given.full_kv_indices, shape)
    blocks = BlockMask(partly | full, *size)
    if not partly.any():
        return blocks, None
    seen = create_mask(given.mask_mod, *shape[:2], tokens, keys, device=str(partly.device))
    return blocks, seen | written_out_to(BlockMask(full, *size), tokens, keys)


def _table(counts: Tensor, indices: Tensor, shape: tuple[int, ...]) -> Tensor:
    """True for the first `counts` of the `indices` listed in every row of blocks; the rest of a list means nothing."""
    listed = torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]
    table = torch.zeros(shape, dtype=torch.int32, device=indices.device)
    table.scatter_add_(-1, indices.long().clamp(0, shape[-1] - 1), listed.int())
    return table > 0
