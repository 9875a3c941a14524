"""Several tensors as one message: bytes that are copied once where they are sent and read where they arrive."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from headwork.torch.cluster.splits import Intervals, numbered

ALIGNED = 64  # bytes, so that every part starts where the kernel likes to read


class Part(NamedTuple):
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


Parts: TypeAlias = Sequence[Part]


def size(parts: Parts) -> int:
    return sum(-(-part.bytes // ALIGNED) * ALIGNED for part in parts)


def read(message: Tensor, parts: Parts) -> list[Tensor]:
    """The tensors of a message, in its memory."""
    found, at = [], 0
    for part in parts:
        found.append(message[at : at + part.bytes].view(part.dtype).view(part.shape))
        at += -(-part.bytes // ALIGNED) * ALIGNED
    return found


def empty(parts: Parts) -> Tensor:
    return torch.empty(size(parts), dtype=torch.uint8, device="cpu")


def runs(whole: Tensor, rows: Intervals, some: Tensor, axis: int = 2) -> Iterator[tuple[Tensor, Tensor]]:
    """Views of the runs of rows in a whole tensor, and of the same runs in one that has these rows alone."""
    for row, (first, end) in numbered(rows):
        yield whole.narrow(axis, first, end - first), some.narrow(axis, row, end - first)


def packed(tensors: Sequence[Tensor], rows: Intervals, parts: Parts) -> Tensor:
    """Some rows of each tensor as a message."""
    message = empty(parts)
    for into, tensor in zip(read(message, parts), tensors, strict=True):
        for there, here in runs(tensor, rows, into):
            here.copy_(there)
    return message


def add_rows(into: Sequence[Tensor], rows: Intervals, message: Tensor, parts: Parts) -> None:
    """What a message holds, added to those rows of each tensor."""
    for tensor, more in zip(into, read(message, parts), strict=True):
        for there, here in runs(tensor, rows, more):
            there.add_(here)
