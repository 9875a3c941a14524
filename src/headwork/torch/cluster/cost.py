"""What a call over ranks costs, by a model of a few numbers: the arithmetic, the bytes, and what hides behind what.

A message of b bytes takes x = 2·delay + 70 µs + b/rate, for gloo asks before it sends; packing costs 0.4 ns a byte. The
rows of step t + 1 are under way while step t is worked on: T = Σ max(c_t, x_{t+1}) + c_last. Ulysses hides nothing.
"""

from functools import lru_cache
from math import prod
from typing import NamedTuple

from torch import Tensor

from headwork.torch.cluster.reading import Reading, area
from headwork.torch.cluster.splits import rows
from headwork.torch.cluster.ulysses import heads_of, width

ASKING = 70e-6  # seconds that gloo takes for a message, whatever its size
PACKING = 0.4e-9  # seconds a byte is copied in
BACKWARD = 2.5  # times the arithmetic of the forward
GRADIENTS = 2  # gradients travel as well as rows


class Machines(NamedTuple):
    """What a rank works in a second, in 10⁹ operations; what a line carries, in 10⁹ bits; its delay in seconds."""

    gflops: float = 150.0
    gbit: float = 10.0
    delay: float = 50e-6


HERE = Machines()


class CostSizes(NamedTuple):
    batch: int
    heads: int
    kv_heads: int
    d_k: int
    d_v: int
    itemsize: int


def sizes_of(query: Tensor, key: Tensor, value: Tensor) -> CostSizes:
    width = query.element_size()
    return CostSizes(prod(query.shape[:-3]), query.shape[-3], key.shape[-3], key.shape[-1], value.shape[-1], width)


class Cost(NamedTuple):
    """One way of one call for one rank, forward: bytes sent in each step, seconds of work in each, seconds in all."""

    way: str
    steps: list[int]
    work: list[float]
    seconds: float
    wire: float
    hidden: float

    @property
    def bytes(self) -> int:
        return sum(self.steps)


def exchange(of: Reading, rank: int, sizes: CostSizes, machines: Machines) -> Cost:
    world = len(of.tokens)
    work = [seconds_of(of, rank, (rank - t) % world, sizes, machines) for t in range(world)]
    coming = [message(of, rank, (rank - t) % world, sizes) for t in range(1, world)]
    going = [message(of, (rank + t) % world, rank, sizes) for t in range(1, world)]
    wires = [on_the_wire(max(a, b), machines) for a, b in zip(coming, going, strict=True)]
    behind = [min(w, x) for w, x in zip(work, wires, strict=False)]
    seconds = sum(work) + sum(wires) - sum(behind) + PACKING * sum(going)
    return Cost("exchange", going, work, seconds, sum(wires), sum(behind))


def ulysses(of: Reading, rank: int, sizes: CostSizes, machines: Machines) -> Cost:
    world = len(of.tokens)
    heads = heads_of(sizes.heads, sizes.kv_heads, world)
    tokens, keys = rows(of.tokens[rank]), rows(of.keys[rank])
    one = sizes.itemsize * sizes.batch
    steps = []
    for t in range(1, world):
        there, here = heads[(rank + t) % world], heads[rank]
        given = one * (tokens * width(there.query) * sizes.d_k + keys * width(there.key) * (sizes.d_k + sizes.d_v))
        back = width(here.query) * rows(of.tokens[(rank + t) % world]) * (one * sizes.d_v + 8 * sizes.batch)
        steps.append(given + back)
    whole = sum(seconds_of(of, reader, owner, sizes, machines) for reader in range(world) for owner in range(world))
    work = whole * max(width(h.query) for h in heads) / sizes.heads
    wire = sum(on_the_wire(b, machines) + on_the_wire(0, machines) for b in steps)
    return Cost("ulysses", steps, [work], work + wire + 2 * PACKING * sum(steps), wire, 0.0)


def gather(of: Reading, rank: int, sizes: CostSizes, machines: Machines) -> Cost:
    """All rows at once: one delay for all of them, hidden behind the own block alone."""
    found = exchange(of, rank, sizes, machines)
    wire = on_the_wire(found.bytes, machines) if found.bytes else 0.0
    hidden = min(wire, found.work[0])
    seconds = sum(found.work) + wire - hidden + PACKING * found.bytes
    return Cost("gather", found.steps, found.work, seconds, wire, hidden)


WAYS = {"exchange": exchange, "ulysses": ulysses, "gather": gather}


@lru_cache(256)
def chosen(of: Reading, sizes: CostSizes, machines: Machines = HERE) -> str:
    """Exchange, unless Ulysses is sooner done by a tenth; the same on every rank, as all know the sizes."""
    world = len(of.tokens)
    if world == 1 or sizes.heads < world:
        return "exchange"
    ours = max(exchange(of, rank, sizes, machines).seconds for rank in range(world))
    theirs = max(ulysses(of, rank, sizes, machines).seconds for rank in range(world))
    return "ulysses" if 1.1 * theirs < ours else "exchange"


def seconds_of(of: Reading, reader: int, owner: int, sizes: CostSizes, machines: Machines) -> float:
    pairs = sum(area(span, of.window) for call in of.pair(reader, owner).calls for span in call)
    return 2 * pairs * sizes.batch * sizes.heads * (sizes.d_k + sizes.d_v) / (machines.gflops * 1e9)


def message(of: Reading, reader: int, owner: int, sizes: CostSizes) -> int:
    return rows(of.pair(reader, owner).rows) * sizes.batch * sizes.kv_heads * (sizes.d_k + sizes.d_v) * sizes.itemsize


def on_the_wire(size: int, machines: Machines) -> float:
    return 2 * machines.delay + ASKING + size * 8e-9 / machines.gbit if size else 0.0


def with_backward(cost: Cost) -> float:
    """The arithmetic and the wire once more, rows again and gradients of theirs home."""
    more = BACKWARD * sum(cost.work)
    wire = (1 + GRADIENTS) * cost.wire
    shown = wire
    if cost.way != "ulysses":
        shown = max(wire - more, wire * (1 - (cost.hidden / cost.wire if cost.wire else 1)))
    return cost.seconds + more + shown + (1 + GRADIENTS) * PACKING * cost.bytes
