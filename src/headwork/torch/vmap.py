"""The operators under `torch.vmap`: the new axis becomes one more of the batch."""

from typing import Any

import torch
from torch import Tensor

from headwork.torch.calls import Biases, What
from headwork.torch.operator import LIBRARY, attention, attention_backward, gathered


def in_front(tensor: Tensor | None, at: int | None, size: int, rank: int) -> Tensor | None:
    """The tensor with the new axis in front of `rank` others, of `size` whether it had one or not."""
    if tensor is None:
        return None
    moved = tensor.unsqueeze(0) if at is None else tensor.movedim(at, 0)
    moved = moved.reshape(moved.shape[0], *(1,) * (rank + 1 - moved.dim()), *moved.shape[1:])
    return moved.expand(size, *moved.shape[1:])


def with_spans(what: What, at: int | None, size: int) -> What:
    if what.spans is None:
        return what
    rows = what.spans.repeat(size, 1) if at is None else what.spans.movedim(at, 0).reshape(-1, what.spans.shape[-1])
    return what._replace(spans=rows.contiguous())


def one_by_one(what: What, rank: int) -> bool:
    """Packed sequences have no batch to add to, and dropout is to be the same, or drawn anew, for every item."""
    return what.dropout > 0 or (what.spans is not None and rank == 3 and what.spans.shape[-2] != 1)


def each(operator: Any, info: Any, in_dims: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
    results = []
    for i in range(info.batch_size):
        mine = [a if not isinstance(at, int) else a.select(at, i) for a, at in zip(args, in_dims, strict=False)]
        results.append(operator(*mine, *args[len(mine) :]))
    return tuple(torch.stack(some) for some in zip(*results, strict=True))


def for_every_item(result: Tensor, size: int) -> Tensor:
    """One that nobody has asked for is nothing, for every item: another vmap around this one counts its axes."""
    return result.expand(size, 0) if result.dim() == 1 else result


def mapped(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, tuple[int, ...]]:
    (query, key, value), (biases, what) = args[:3], gathered(args[3:-1])
    rank, size = query.dim() - (in_dims[0] is not None), info.batch_size
    if one_by_one(what, rank):
        return each(attention, info, in_dims, args), (0, 0)
    wide = (in_front(t, at, size, rank) for t, at in zip((query, key, value), in_dims, strict=False))
    # What all share needs no axis of its own, and its gradient none either.
    ranks = zip(biases, in_dims[3:7], (rank, rank - 2, rank - 2, rank - 1), strict=True)
    added = (t if at is None else in_front(t, at, size, axes) for t, at, axes in ranks)
    out, lse = attention(*wide, *added, *with_spans(what, in_dims[7], size), args[-1])
    return (out, for_every_item(lse, size)), (0, 0)


def mapped_backward(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, tuple[int, ...]]:
    (biases, what), asked = gathered(args[7:-1]), args[-1]
    rank, size = args[2].dim() - (in_dims[2] is not None), info.batch_size
    if one_by_one(what, rank):
        return each(attention_backward, info, in_dims, args), (0,) * 7
    rows, heads = rank - 1, rank - 2
    ranks = (rank, rows, rank, rank, rank, rank, rows)
    saved = (in_front(t, at, size, axes) for t, at, axes in zip(args[:7], in_dims[:7], ranks, strict=True))
    # A gradient is one for every item, so what it is the gradient of must be too.
    axes_of = (rank, heads, heads, rows)
    added = Biases(*(in_front(t, at, size, axes) for t, at, axes in zip(biases, in_dims[7:11], axes_of, strict=True)))
    found = attention_backward(*saved, *added, *with_spans(what, in_dims[11], size), asked)
    return tuple(for_every_item(gradient, size) for gradient in found), (0,) * 7


def register_rules() -> None:
    torch.library.register_vmap("headwork::attention", mapped, lib=LIBRARY)
    torch.library.register_vmap("headwork::attention_backward", mapped_backward, lib=LIBRARY)
