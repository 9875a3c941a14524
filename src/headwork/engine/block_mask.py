"""`BlockMask`: which blocks of tokens may read which blocks of keys, in a table a block at a time.

A mask of the size tokens × keys costs memory, and a look at every entry. A block that this table hides costs nothing,
and one that it shows no look.
"""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from headwork.engine.arrays import Array, CallSizes, broadcasts, is_bool, unmasked
from headwork.errors import HeadworkError, ShapeError


@dataclass(frozen=True, slots=True)
class BlockMask:
    """`visible` is Boolean (…, heads or 1, blocks of tokens, blocks of keys), an array, or a tensor for
    `headwork.torch`: True where a block may be read, as far as causal order, a window, a mask and lengths let it.
    `tokens` and `keys` are the sizes of a block; the last one of each may be cut short.

    >>> import numpy as np
    >>> two_documents = BlockMask(np.array([[True, False], [False, True]]), tokens=64, keys=64)
    """

    visible: Any
    tokens: int
    keys: int

    def __post_init__(self) -> None:
        for name in ("tokens", "keys"):
            size = getattr(self, name)
            if not isinstance(size, Integral) or isinstance(size, bool) or not 1 <= int(size) <= 2**60:
                raise HeadworkError(
                    f"BlockMask: {name} is {size!r}. Give the size of a block, a whole number from 1 to 2**60."
                )
            object.__setattr__(self, name, int(size))

    def check_fit(self, shape: tuple[int, ...], size: CallSizes) -> None:
        """Whether a table of this shape is one of the call's."""
        blocks = (-(-size.tokens // self.tokens), -(-size.keys // self.keys))
        lead = size.rows[:-1]
        if len(shape) < 2 or tuple(shape[-2:]) != blocks or not broadcasts(shape[:-2], lead):
            raise ShapeError(
                f"blocks.visible is {tuple(shape)}, but {size.tokens} tokens in blocks of {self.tokens} and "
                f"{size.keys} keys in blocks of {self.keys} make {(*lead, *blocks)}: give that, 1 for what serves a "
                "whole axis."
            )


def check_is_one(given: object) -> None:
    if not isinstance(given, BlockMask):
        raise HeadworkError(
            f"blocks is a {type(given).__name__}. Give a headwork.engine.BlockMask: a Boolean table and the sizes of "
            "its blocks."
        )


def checked_blocks(blocks: BlockMask, size: CallSizes) -> Array:
    """The table as an array, when it fits."""
    check_is_one(blocks)
    table = unmasked("blocks.visible", blocks.visible)
    if not is_bool(table):
        raise HeadworkError(f"blocks.visible holds {table.dtype}. Give Booleans, True where a block may be read.")
    blocks.check_fit(table.shape, size)
    return table
