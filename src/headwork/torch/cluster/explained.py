"""`explain_ring`: how a call over ranks would go, from the cost model, before anything is sent."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from headwork.torch.cluster.call import Call, Method, check_shapes, checked_call, checked_ends, ends_of
from headwork.torch.cluster.cost import HERE, WAYS, Machines, chosen, sizes_of
from headwork.torch.cluster.groups import group_of, method_of, split_of
from headwork.torch.cluster.reading import reading
from headwork.torch.cluster.splits import Split, named


@dataclass(frozen=True)
class RingPath:
    """How a call over ranks goes: the way, how rows lie, bytes that this rank sends in each step, the share of the wire
    that is expected to hide behind work, and what machines that is expected of.
    """

    way: str
    split: str
    world: int
    bytes_a_step: tuple[int, ...]
    hidden: float
    machines: Machines

    def __str__(self) -> str:
        steps = "nothing is sent"
        if any(self.bytes_a_step):
            steps = f"{readable(max(self.bytes_a_step))} a step at most, {readable(sum(self.bytes_a_step))} in all"
            steps += f"; {self.hidden:.0%} of the wire hidden at {self.machines.gbit:g} Gbit/s and "
            steps += f"{self.machines.gflops:g} GFLOP/s"
        return f"{self.way} over {self.world} ranks, {self.split}: {steps}"


def explain_ring(
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
    gbit: float = HERE.gbit,
    gflops: float = HERE.gflops,
) -> RingPath:
    """How `ring_attention` would work these tensors on this rank; nothing is sent, so any rank may ask alone.

    The other ranks are taken to hold as many rows as this one. `gbit` is what the line carries in 10⁹ bits a second,
    `gflops` what a rank works.
    """
    ring = group_of(group)
    check_shapes(query, key, value)
    text = checked_call(query.shape[-1], causal, window, scale, softcap, split_of(split), method_of(method), False)
    call, world = Call.of(text), ring.size()
    lie = call.split
    tokens, keys = (x.shape[-2] * world for x in (query, key))
    if not isinstance(lie, str):
        tokens = keys = max((end for mine in lie for _, end in mine), default=0)
    ends = None if offsets is None else checked_ends(offsets)
    if ends is not None:
        tokens = keys = int(ends[-1])
    of = reading(tokens, keys, world, lie, call.scores.window, ends_of(ends, tokens))
    sizes, machines = sizes_of(query, key, value), Machines(gflops, gbit)
    way = chosen(of, sizes) if call.method == "auto" else call.method
    cost = WAYS[way](of, ring.rank(), sizes, machines)
    share = cost.hidden / cost.wire if cost.wire else 1.0
    return RingPath(way, named(lie), world, tuple(cost.steps), share, machines)


def readable(count: float) -> str:
    """
    >>> readable(3_250_000)
    '3.2 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError
