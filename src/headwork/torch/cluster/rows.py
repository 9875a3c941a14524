"""`shard`, `unshard` and `positions`: rows of a whole sequence, and back."""

from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from headwork.errors import HeadworkError
from headwork.torch.cluster.agreement import agree, check_held, refuse
from headwork.torch.cluster.groups import group_of, split_of
from headwork.torch.cluster.line import Line
from headwork.torch.cluster.messages import Part, empty, read, runs
from headwork.torch.cluster.splits import Intervals, Split, digest, laid, named


def shard(x: Tensor, group: Any = None, dim: int = -2, split: Split = "auto") -> Tensor:
    """This rank's rows of a tensor that every rank has whole, along `dim`.

    (…, tokens, …) → (…, rows of this rank, …). "auto" is zigzag, or the split of the `context_parallel` block.
    """
    found = group_of(group)
    mine = laid(x.shape[checked_axis(x, dim)], found.size(), split_of(split))[found.rank()]
    return torch.cat([x.narrow(dim, first, end - first) for first, end in mine], dim)


def positions(n: int, group: Any = None, split: Split = "auto") -> Tensor:
    """The positions of this rank's rows among n, in their order: for rotary embeddings, and to pick labels.

    With zigzag, 8 positions and 2 ranks, rank 0 has tensor([0, 1, 6, 7]).
    """
    if not isinstance(n, int) or n < 0:
        raise HeadworkError(f"n is {n!r}. Give the number of positions of the whole sequence.")
    found = group_of(group)
    mine = laid(n, found.size(), split_of(split))[found.rank()]
    return torch.cat([torch.arange(first, end, device="cpu") for first, end in mine])


def unshard(x: Tensor, group: Any = None, dim: int = -2, split: Split = "auto") -> Tensor:
    """The whole tensor, on every rank, from the rows that each holds: `shard` undone.

    Its gradient is that of this rank's rows alone, as every rank works with the same whole.
    """
    ring = group_of(group)
    try:
        axis, lie = checked_axis(x, dim), split_of(split)
        if not x.is_cpu:
            raise HeadworkError(f"x is on {x.device}: unshard works on the CPU.")
    except Exception as error:  # whatever it is, the others must not wait for this rank
        refuse(ring, error)
    found: Tensor = Whole.apply(x, ring, axis, lie)
    return found


def checked_axis(x: Tensor, dim: int) -> int:
    if not isinstance(x, Tensor) or isinstance(x, DTensor):
        raise HeadworkError(f"x is a {type(x).__name__}: give a plain tensor.")
    if not isinstance(dim, int) or not -x.dim() <= dim < x.dim():
        raise HeadworkError(f"dim is {dim!r}, but x has {x.dim()} axes, {tuple(x.shape)}.")
    return dim % x.dim()


class Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any, dim: int, split: str | tuple[Intervals, ...]) -> Tensor:
        line = Line(group)
        call = {
            "function": "unshard",
            "dtype": str(x.dtype),
            "dim": dim,
            "shape without it": [*x.shape[:dim], *x.shape[dim + 1 :]],
            "split": split if isinstance(split, str) else digest(split),
        }
        held = agree(line, call, x.shape[dim], 0).tokens
        layout = laid(sum(held), line.world, split)
        check_held(line, held, layout, named(split), "x")
        ctx.dim, ctx.mine = dim, layout[line.rank]
        out = x.new_empty((*x.shape[:dim], sum(held), *x.shape[dim + 1 :]))
        for rank, rows_of_rank in enumerate(gathered(line, x, dim, held)):
            for there, here in runs(out, layout[rank], rows_of_rank, dim):
                there.copy_(here)
        return out

    @staticmethod
    def backward(ctx: Any, *upward: Any) -> Any:
        pieces = [upward[0].narrow(ctx.dim, first, end - first) for first, end in ctx.mine]
        return torch.cat(pieces, ctx.dim), None, None, None


def gathered(line: Line, x: Tensor, dim: int, held: list[int]) -> list[Tensor]:
    """Every rank's rows, each sent straight to each."""
    parts = [[Part((*x.shape[:dim], count, *x.shape[dim + 1 :]), x.dtype)] for count in held]
    messages = [empty(each) for each in parts]
    found = [read(message, each)[0] for message, each in zip(messages, parts, strict=True)]
    found[line.rank].copy_(x)
    line.each_to_each(messages, "unshard")
    return found
