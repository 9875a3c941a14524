"""DTensors in, DTensors out: the axis of the mesh over which the tokens lie is the group."""

from typing import Any

from torch import Tensor
from torch.distributed.tensor import DTensor

from headwork.errors import HeadworkError


def is_distributed(*tensors: Any) -> bool:
    return any(isinstance(tensor, DTensor) for tensor in tensors)


def axis_of(query: Any, key: Any, value: Any) -> int:
    """The axis of the mesh that the tokens are sharded over."""
    three = (query, key, value)
    if not all(isinstance(tensor, DTensor) for tensor in three):
        raise HeadworkError("some of query, key, value are DTensors and some are not: give three of a kind.")
    placements = {tuple(tensor.placements) for tensor in three}
    if len(placements) > 1 or any(tensor.device_mesh != query.device_mesh for tensor in three):
        raise HeadworkError(f"query, key, value are placed {placements}: place all alike.")
    tokens = query.dim() - 2
    over = [i for i, placement in enumerate(query.placements) if placement.is_shard(tokens)]
    partial = [p for p in query.placements if not (p.is_replicate() or p.is_shard()) or p.is_shard(query.dim() - 1)]
    if len(over) != 1 or partial:
        raise HeadworkError(
            f"query is placed {tuple(query.placements)}: shard the tokens, axis {tokens}, over one axis of the mesh, "
            "and over the others the batch, the heads, or nothing."
        )
    return over[0]


def wrapped(local: Tensor, like: Any, last: tuple[int, ...]) -> Any:
    """A result with the placements of `like`, and `last` sizes after its tokens."""
    shape = (*like.shape[:-1], *last)
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return DTensor.from_local(
        local, like.device_mesh, like.placements, run_check=False, shape=shape, stride=tuple(reversed(strides))
    )
