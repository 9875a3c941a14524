"""`python -m headwork.torch.cluster_plan`: what attention over several machines would take, from the cost model.

A message of b bytes takes 2·delay + 70 µs + b/rate, and hides behind the block that is worked on meanwhile; a rank
works 2·(d_k + d_v) operations for every head and pair of a token and a key that it reads, and 2.5 times that backward.
It plans, it does not promise: measure a step of your own before you buy machines.
"""

import argparse
import sys

from headwork.errors import HeadworkError
from headwork.torch.cluster.cost import WAYS, Cost, CostSizes, Machines, chosen, with_backward
from headwork.torch.cluster.explained import readable
from headwork.torch.cluster.reading import Reading, reading
from headwork.torch.cluster.splits import checked

HEADINGS = ("ranks", "rows", "way", "a step", "sent", "work", "wire", "hidden", "forward", "with backward", "× faster")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m headwork.torch.cluster_plan", description=__doc__.splitlines()[0])
    found.add_argument("--tokens", type=int, required=True, help="of the whole sequence")
    found.add_argument("--heads", type=int, required=True)
    found.add_argument("--kv-heads", type=int, help="as many as heads unless given")
    found.add_argument("--width", type=int, default=128, help="of a head (128)")
    found.add_argument("--batch", type=int, default=1)
    found.add_argument("--bytes", type=int, default=2, choices=(2, 4, 8), help="of a number: 2 for bfloat16, 4, 8")
    found.add_argument("--gbit", type=float, default=10.0, help="what a line carries, 10⁹ bits a second (10)")
    found.add_argument("--gflops", type=float, default=150.0, help="what a rank works, 10⁹ operations a second (150)")
    found.add_argument("--delay-us", type=float, default=50.0, help="of a line, one way (50)")
    found.add_argument("--ranks", default="1,2,4,8,16", help="numbers of ranks, 1,2,4,8,16")
    found.add_argument("--window", type=int, help="keys that a token reads before its own; all without it")
    found.add_argument("--dense", action="store_true", help="tokens read all keys, not those up to their own alone")
    found.add_argument("--split", help="contiguous or zigzag; contiguous for windows and dense calls unless given")
    return found


def main(arguments: list[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    try:
        print("\n".join(lines(given)))
    except HeadworkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def lines(given: argparse.Namespace) -> list[str]:
    sizes, machines = checked_sizes(given)
    window = (-1 if given.window is None else given.window, -1 if given.dense else 0)
    even = given.dense or given.window is not None
    split = checked(given.split or ("contiguous" if even else "zigzag"))
    table: list[tuple[str, ...]] = [HEADINGS]
    alone = 0.0
    for world in checked_ranks(given.ranks):
        of = reading(given.tokens, given.tokens, world, split, window, ())
        best = chosen(of, sizes, machines)
        for way in ("exchange", "ulysses") if world > 1 else ("exchange",):
            cost = slowest(of, way, sizes, machines)
            whole = with_backward(cost)
            alone = alone or sum(cost.work) * world * 3.5
            mark = " ←" if way == best and world > 1 else ""
            table.append(row(world, -(-given.tokens // world), cost, whole, alone / whole, mark))
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADINGS))]
    return [
        told(given, split, machines),
        *("  ".join(c.rjust(w) for c, w in zip(r, widths, strict=True)) for r in table),
    ]


def told(given: argparse.Namespace, split: object, machines: Machines) -> str:
    what = "dense" if given.dense else "causal"
    what += "" if given.window is None else f", window {given.window}"
    return (
        f"{given.tokens} tokens, {given.heads} heads of {given.width}, {what}, {split}; {machines.gbit:g} Gbit/s, "
        f"{machines.gflops:g} GFLOP/s a rank. The busiest rank's figures; ← marks the way to take."
    )


def slowest(of: Reading, way: str, sizes: CostSizes, machines: Machines) -> Cost:
    return max((WAYS[way](of, rank, sizes, machines) for rank in range(len(of.tokens))), key=lambda cost: cost.seconds)


def row(world: int, rows: int, cost: Cost, whole: float, faster: float, mark: str) -> tuple[str, ...]:
    hidden = f"{cost.hidden / cost.wire:.0%}" if cost.wire else "–"
    return (
        str(world),
        str(rows),
        (cost.way if world > 1 else "alone") + mark,
        readable(max(cost.steps, default=0)),
        readable(cost.bytes),
        seconds(sum(cost.work)),
        seconds(cost.wire),
        hidden,
        seconds(cost.seconds),
        seconds(whole),
        f"{faster:.2f}",
    )


def seconds(time: float) -> str:
    """
    >>> seconds(0.0123), seconds(4.2)
    ('12.3 ms', '4.20 s')
    """
    return f"{time * 1e3:.1f} ms" if time < 1 else f"{time:.2f} s"


def checked_sizes(given: argparse.Namespace) -> tuple[CostSizes, Machines]:
    kv_heads = given.kv_heads or given.heads
    for name in ("tokens", "heads", "width", "batch", "gbit", "gflops"):
        if not getattr(given, name) > 0:
            raise HeadworkError(f"--{name} is {getattr(given, name)}. Give a number above 0.")
    if kv_heads < 1 or given.heads % kv_heads:
        raise HeadworkError(f"{kv_heads} key heads do not divide {given.heads} heads.")
    if given.window is not None and given.window < 0:
        raise HeadworkError(f"--window is {given.window}. Give a number of keys, 0 or more.")
    if not given.delay_us >= 0:
        raise HeadworkError(f"--delay-us is {given.delay_us}. Give a number of microseconds, 0 or more.")
    sizes = CostSizes(given.batch, given.heads, kv_heads, given.width, given.width, given.bytes)
    return sizes, Machines(given.gflops, given.gbit, given.delay_us * 1e-6)


def checked_ranks(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1 or max(found) > 1024:
        raise HeadworkError(f"--ranks is {text!r}. Give numbers from 1 to 1024 with commas: 1,2,4.")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
