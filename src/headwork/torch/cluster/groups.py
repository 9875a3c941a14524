"""Which ranks, and how rows lie on them: what a caller says, or the block of `context_parallel` that it is in."""

from typing import Any

import torch.distributed as dist

from headwork.errors import HeadworkError
from headwork.torch.block import block
from headwork.torch.cluster.loss import leave_word
from headwork.torch.cluster.splits import Intervals, checked


def group_of(given: Any) -> Any:
    """A process group: one, the only axis of a device mesh, that of the block, or the default group.

    Where there is none the ranks cannot be told before they wait; they are when they have.
    """
    try:
        return found_group(given)
    except HeadworkError as error:
        if given is not dist.GroupMember.NON_GROUP_MEMBER:  # nobody waits for this rank
            leave_word(error)
        raise


def found_group(given: Any) -> Any:
    here = block()
    if given is None and here:
        return here.group
    if not dist.is_available() or not dist.is_initialized():
        raise HeadworkError(
            "torch.distributed has no group yet: start with torchrun, and call "
            "torch.distributed.init_process_group('gloo')."
        )
    if given is None:
        return dist.group.WORLD
    if hasattr(given, "get_group"):
        if given.ndim != 1:
            raise HeadworkError(
                f"the mesh has {given.ndim} axes, {given.mesh_dim_names}: give the one that the sequence lies over, "
                'mesh["cp"] say.'
            )
        return given.get_group()
    if given is dist.GroupMember.NON_GROUP_MEMBER:
        raise HeadworkError("this rank is not in the group: only its members take part in the call.")
    if not isinstance(given, dist.ProcessGroup):
        raise HeadworkError(
            f"group is a {type(given).__name__}. Give a process group, a device mesh of one axis, or None."
        )
    return given


def split_of(given: Any, natural: str = "zigzag") -> str | tuple[Intervals, ...]:
    """ "auto" is the block's split, or zigzag: the same for `shard`, `positions` and the call, whatever it asks."""
    if isinstance(given, str) and given == "auto":
        here = block()
        given = here.split if here else natural
    return checked(given)


def method_of(given: Any) -> Any:
    here = block()
    return here.method if here and given == "auto" else given
