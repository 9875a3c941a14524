"""DTensors in, DTensors out: the axis of the mesh over which the tokens lie is the group."""

from typing import Any, NoReturn

from torch import Tensor
from torch.distributed.tensor import DTensor

from headwork.errors import HeadworkError
from headwork.torch.cluster.agreement import refuse
from headwork.torch.cluster.loss import leave_word


def is_distributed(*tensors: Any) -> bool:
    return any(isinstance(tensor, DTensor) for tensor in tensors)


def axis_of(query: Any, key: Any, value: Any) -> int:
    """The axis of the mesh that the tokens are sharded over; where there is none, an error of all ranks."""
    try:
        return token_axis(query, key, value)
    except HeadworkError as error:
        refuse_placement(query, key, value, error)


def token_axis(query: Any, key: Any, value: Any) -> int:
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


def group_of_tokens(query: Any, key: Any, value: Any) -> Any:
    """The group that the others most likely make this call in, for tensors that are not placed as they must be: that
    of the axis which one of them has its tokens over, or the only axis of a mesh. None where nobody can say.
    """
    three = [tensor for tensor in (query, key, value) if isinstance(tensor, DTensor)]
    for tensor in three:
        over = [i for i, placement in enumerate(tensor.placements) if placement.is_shard(tensor.dim() - 2)]
        if len(over) == 1:
            return tensor.device_mesh.get_group(over[0])
    return next((tensor.device_mesh.get_group() for tensor in three if tensor.device_mesh.ndim == 1), None)


def refuse_placement(query: Any, key: Any, value: Any, error: HeadworkError) -> NoReturn:
    group = group_of_tokens(query, key, value)
    if group is not None:
        refuse(group, error)
    leave_word(error)
    raise error


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
