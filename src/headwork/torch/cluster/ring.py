"""`ring_attention`: attention over a sequence whose rows lie on several ranks."""

from typing import Any

import torch
from torch import Tensor

from headwork.engine.backend import REASON, kernel
from headwork.errors import HeadworkError
from headwork.torch.calls import accumulator
from headwork.torch.cluster import operator
from headwork.torch.cluster.agreement import refuse
from headwork.torch.cluster.call import Method, check_shapes, checked_call, checked_ends
from headwork.torch.cluster.distributed import axis_of, is_distributed, refuse_placement, wrapped
from headwork.torch.cluster.groups import group_of, method_of, split_of
from headwork.torch.cluster.splits import Split


def ring_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    group: Any = None,
    causal: bool = False,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    offsets: Tensor | list[int] | None = None,
    split: Split = "auto",
    method: Method = "auto",
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """softmax(query·keyᵀ·scale)·value over the rows of all ranks, for this rank's queries, with gradients.

    query (…, heads, rows, d_k), key (…, kv_heads, rows, d_k), value (…, kv_heads, rows, d_v) → (…, heads, rows, d_v),
    where rows are this rank's, as `shard` with the same split lays them out; ranks may hold different numbers of them.
    `offsets` are the ends of packed documents over the whole sequence, 0 first. `method` "exchange" sends rows straight
    to who reads them while others are worked on, "gather" all of them at once, "ulysses" trades rows for heads. The
    log-sum-exp is (…, heads, rows). Every rank of the group makes the same call; what they disagree about, and a rank
    that is lost, is an error on all of them. DTensors come with their tokens sharded over one axis of their mesh, which
    is the group, and go as DTensors; for them "auto" is contiguous, as `Shard` lays rows out.
    """
    if is_distributed(query, key, value):
        options = {"causal": causal, "window": window, "scale": scale, "softcap": softcap, "offsets": offsets}
        return over_mesh(query, key, value, group, split, return_lse, options | {"method": method})
    ring = group_of(group)
    try:
        check_shapes(query, key, value)
        if kernel is None:
            raise HeadworkError(f"attention over several ranks needs the kernel: {REASON}.")
        wanted = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
        call = checked_call(query.shape[-1], causal, window, scale, softcap, split_of(split), method_of(method), wanted)
        ends = None if offsets is None else checked_ends(offsets)
    except Exception as error:  # whatever it is, the others must not wait for this rank
        refuse(ring, error)
    out, lse = operator.ring_attention(query, key, value, ends, call, ring.group_name)
    return (out, lse.to(accumulator(query))) if return_lse else out


def over_mesh(
    query: Any, key: Any, value: Any, group: Any, split: Split, return_lse: bool, options: dict[str, Any]
) -> Any:
    """The same for DTensors, on their local rows."""
    axis = axis_of(query, key, value)
    if group is not None:
        error = HeadworkError("DTensors say themselves over which ranks they lie: leave group out.")
        refuse_placement(query, key, value, error)
    local = [tensor.to_local() for tensor in (query, key, value)]
    ring = query.device_mesh.get_group(axis)
    split = "contiguous" if isinstance(split, str) and split == "auto" else split
    out, lse = ring_attention(*local, group=ring, split=split, return_lse=True, **options)
    whole = wrapped(out, query, (value.shape[-1],))
    return (whole, wrapped(lse, query, ())) if return_lse else whole
