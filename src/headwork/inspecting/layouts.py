"""How arrays lie: which axis is the batch, which the heads, which the tokens; and the sizes of a case.

The sizes of a case are all different, so that no number passes for another, and so that the shape of what comes back
says which axis is which.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headwork.readings.values import Array


@dataclass(frozen=True)
class CaseSizes:
    """The lengths of a case. The root of d_k is no whole number: or int(√d_k) would pass for it."""

    tokens: int = 5
    keys: int = 7
    d_k: int = 6
    d_v: int = 8
    heads: int = 2
    batch: int = 3

    def eased(self) -> Iterator["CaseSizes"]:
        """These, then with tokens = keys, then with d_v = d_k, then with both: not all code takes every size."""
        yield self
        yield replace(self, keys=self.tokens)
        yield replace(self, d_v=self.d_k)
        yield replace(self, keys=self.tokens, d_v=self.d_k)


@dataclass(frozen=True)
class AxisOrder:
    """`order` says where our axes, (batch, heads, tokens, d) or fewer, lie in theirs."""

    text: str
    order: tuple[int, ...]

    @property
    def leading(self) -> int:
        """How many axes stand before tokens and d in our own order."""
        return len(self.order) - 2

    def lead(self, sizes: CaseSizes) -> tuple[int, ...]:
        return (sizes.batch, sizes.heads)[: self.leading]

    def laid(self, array: Any) -> Any:
        """An array of ours as they have it; a matrix without batches stays as it is."""
        return np.transpose(array, self.order) if array.ndim == len(self.order) else array

    def ours(self, array: Array) -> Array:
        return np.transpose(array, np.argsort(self.order)) if array.ndim == len(self.order) else array


LAYOUTS = (
    AxisOrder("(tokens, d)", (0, 1)),
    AxisOrder("(batch, tokens, d)", (0, 1, 2)),
    AxisOrder("(tokens, batch, d)", (1, 0, 2)),
    AxisOrder("(batch, d, tokens)", (0, 2, 1)),
    AxisOrder("(batch, heads, tokens, d)", (0, 1, 2, 3)),
    AxisOrder("(batch, tokens, heads, d)", (0, 2, 1, 3)),
    AxisOrder("(tokens, batch, heads, d)", (2, 0, 1, 3)),
)
LAYOUTS_OF_X = (LAYOUTS[1], LAYOUTS[2], LAYOUTS[0])


def first_matrix(array: Array) -> Array:
    """Of a batch the first, of a matrix itself."""
    first: Array = array.reshape(-1, *array.shape[-2:])[0]
    return first


def brought_back(answer: Array, layout: AxisOrder, shape: tuple[int, ...]) -> Array:
    """What was returned in our own order: laid out as what was handed over, or in another way that its shape tells.

    Heads that come back side by side, (batch, tokens, heads·d), are taken apart.
    """
    ways = [layout, *(other for other in LAYOUTS if other.leading == layout.leading)]
    for way in ways:
        if (back := way.ours(answer)).shape == shape:
            return back
    if len(shape) == 4 and answer.ndim == 3:
        batch, heads, tokens, d = shape
        for way in (LAYOUTS[1], LAYOUTS[2]):
            if (back := way.ours(answer)).shape == (batch, tokens, heads * d):
                return back.reshape(batch, tokens, heads, d).transpose(0, 2, 1, 3)
    return layout.ours(answer)
