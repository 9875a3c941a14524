"""Attention over several processes of this machine: what it costs beside one process, and whether it holds its limits.

    python bench/cluster.py            # everything, four to five minutes on an idle machine of two cores
    python bench/cluster.py memory     # one part: bytes, losses, precision, memory, times

Times are CPU seconds of all processes together, 2 of 1 thread against 1 of 2 threads, taken in turns: the median over
the rounds of one's time over the other's. What is timed is compared with one process's result first. At the end comes
a table of every figure with its limit; exit code 1 where one is missed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from headwork.errors import HeadworkError
from headwork.torch import attention, ring_attention, shard
from headwork.torch.cluster.operator import sent

# A server that has torch loaded already forks each rank: they start at once.
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(["torch", "headwork.torch.cluster.ring"])


class Limit(NamedTuple):
    """A figure, what it must not exceed, and how far the middle half of its rounds spreads."""

    what: str
    figure: float
    most: float
    spread: str = ""

    @property
    def held(self) -> bool:
        return self.figure <= self.most

    def __str__(self) -> str:
        verdict = "held" if self.held else "MISSED"
        return f"{verdict:6}  {self.figure:9.3f}  {self.most:9.3f}  {self.what}{self.spread}"


class Ranks:
    """Processes that are the ranks of a group and do what they are told, one task after another."""

    def __init__(self, world: int, timeout: float = 300) -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        self.lines, self.processes = [], []
        for rank in range(world):
            here, there = PROCESSES.Pipe()
            self.processes.append(PROCESSES.Process(target=serve, args=(rank, world, port, timeout, there)))
            self.processes[-1].start()
            there.close()  # a rank that ends is seen by its line
            self.lines.append(here)

    def all(self, work: Callable[..., Any], *args: Any, lost: int = -1) -> list[Any]:
        """What each rank found; a rank that is lost finds nothing."""
        for line in self.lines:
            line.send((work, args))
        return [None if rank == lost else line.recv() for rank, line in enumerate(self.lines)]

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes:
            process.kill()
            process.join()


def serve(rank: int, world: int, port: int, timeout: float, line: Any) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    where = f"tcp://127.0.0.1:{port}"
    limit = timedelta(seconds=timeout)
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=world, timeout=limit)
    while True:
        work, args = line.recv()
        line.send(work(rank, *args))


def on_ranks(world: int, work: Callable[..., Any], *args: Any, timeout: float = 300, lost: int = -1) -> list[Any]:
    with Ranks(world, timeout) as ranks:
        return ranks.all(work, *args, lost=lost)


@lru_cache(1)
def inputs(tokens: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(1, 8, tokens, 64).to(dtype) for _ in range(4)]


class Timed(NamedTuple):
    """A call of 1, 8, tokens, 64, how often it is timed, and what its CPU time may be over one process's."""

    what: str
    tokens: int
    backward: bool
    options: dict[str, Any]
    split: str
    rounds: int
    most: float


CAUSAL: dict[str, Any] = {"causal": True}
CALLS = (
    Timed("causal with backward, 4096", 4096, True, CAUSAL, "zigzag", 15, 1.20),
    Timed("causal with backward, 8192", 8192, True, CAUSAL, "zigzag", 9, 1.10),
    Timed("causal forward, 16384", 16384, False, CAUSAL, "zigzag", 9, 1.06),
    Timed("window 512 of 16384 with backward", 16384, True, CAUSAL | {"window": (511, 0)}, "contiguous", 15, 1.12),
)


def timed(call: Callable[..., Any], three: list[torch.Tensor], above: torch.Tensor, backward: bool) -> Any:
    """(CPU seconds, output and gradients) of this process."""
    mine = [x.clone().requires_grad_(backward) for x in three]
    start = time.process_time()
    out: Any = call(*mine)
    found = [out.detach(), *(torch.autograd.grad(out, mine, above) if backward else ())]
    return time.process_time() - start, found


def one_process(of: Timed) -> Any:
    *three, above = inputs(of.tokens)
    return timed(lambda *x: attention(*x, **of.options), three, above, of.backward)


def over_ranks(rank: int, of: Timed, way: str, compared: bool) -> float:
    *three, above = (shard(x, split=of.split) for x in inputs(of.tokens))
    exchange = partial(ring_attention, split=of.split, method="exchange", **of.options)
    call: Callable[..., Any] = exchange if way == "exchange" else TorchsRing.apply
    dist.barrier()
    seconds, found = timed(call, three, above, of.backward)
    if compared:
        right = one_process(of)[1]
        wrong = max(
            float((a - shard(b, split=of.split)).abs().max() / b.abs().max()) for a, b in zip(found, right, strict=True)
        )
        assert wrong < 2e-5, f"{way} is {wrong} away from one process"
    return float(seconds)


class TorchsRing(torch.autograd.Function):  # type: ignore[misc]  # torch is Any to the checker
    """torch's own ring template, called by hand with torch's kernel for the CPU, causal, rows in zigzag."""

    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, value: Any) -> Any:
        from torch.distributed.tensor.experimental._context_parallel import _attention as own

        operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        out, lse = own._templated_ring_attention(
            dist.group.WORLD, 2, operator, query, key, value, is_causal=True, dropout_p=0.0
        )[:2]
        ctx.save_for_backward(query, key, value, out, lse)
        return out

    @staticmethod
    def backward(ctx: Any, *above: Any) -> Any:
        from torch.distributed.tensor.experimental._context_parallel import _attention as own

        operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
        query, key, value, out, lse = ctx.saved_tensors
        found = own._templated_ring_attention_backward(
            dist.group.WORLD,
            2,
            operator,
            above[0],
            "grad_out",
            query,
            key,
            value,
            out,
            lse,
            is_causal=True,
            dropout_p=0.0,
        )
        return found[:3]


def times() -> list[Limit]:
    torch.set_num_threads(2)
    found = []
    with Ranks(2) as ranks:
        for of in CALLS:
            ways = ["exchange", "torch"] if of is CALLS[0] else ["exchange"]
            one_process(of)
            for way in ways:
                ranks.all(over_ranks, of, way, True)
            rounds = []
            for _ in range(of.rounds):
                rounds.append([one_process(of)[0], *(sum(ranks.all(over_ranks, of, way, False)) for way in ways)])
            found.append(ratio(f"CPU time over one process's: {of.what}", [(r[1], r[0]) for r in rounds], of.most))
            if len(ways) == 2:
                what = "CPU time over that of torch's ring template with torch's kernel, 4096 (1/1.15)"
                found.append(ratio(what, [(r[1], r[2]) for r in rounds], 1 / 1.15))
    return found


def ratio(what: str, pairs: list[tuple[float, float]], most: float) -> Limit:
    of_rounds = [ours / theirs for ours, theirs in pairs]
    low, _, high = quantiles(of_rounds, n=4)
    return Limit(what, median(of_rounds), most, f" ({len(pairs)} rounds, half of them {low:.3f} to {high:.3f})")


def resident(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(field))


def peak(rank: int, rows: int, backward: bool) -> float:
    """The most memory beyond inputs that a call has, in shards: a rank's rows of one of query, key, value.

    Dense, so that every step has all rows of a rank, and more ranks no more than few.
    """
    ctypes.CDLL(None).mallopt(-3, 65536)  # M_MMAP_THRESHOLD: what is freed is given back, so that a peak is seen
    mine = [torch.randn(8, 8, rows, 64).requires_grad_(backward) for _ in range(3)]
    small = [x[:1].detach().clone().requires_grad_(backward) for x in mine]
    out: Any = ring_attention(*small, split="contiguous", method="exchange")
    if backward:
        out.sum().backward()
    del out
    above = torch.randn(8, 8, rows, 64)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    out = ring_attention(*mine, split="contiguous", method="exchange")
    if backward:
        torch.autograd.grad(out, mine, above)
    return float((resident("VmHWM") - before) / (mine[0].numel() * 4))


def memory() -> list[Limit]:
    found = []
    for backward, most in ((False, 10.0), (True, 18.0)):
        few, many = (max(on_ranks(world, peak, 256, backward)) for world in (4, 8))
        twice = max(on_ranks(4, peak, 512, backward))
        what = "with backward" if backward else "forward"
        found.append(Limit(f"shards of memory beyond the inputs, {what}, 4 ranks", few, most))
        found.append(Limit(f"8 ranks' over 4 ranks', {what} ({many:.2f} shards)", many / few, 1.05))
        found.append(Limit(f"twice the rows' over 4 ranks', in shards, {what} ({twice:.2f})", twice / few, 1.05))
    return found


def bytes_of(rank: int, tokens: int, split: str, options: dict[str, Any]) -> int:
    mine = shard(torch.randn(1, 8, tokens, 64), split=split)
    ring_attention(mine, mine, mine, split=split, method="exchange", **options)
    return int(sent[dist.group.WORLD.group_name] - 32 * (dist.get_world_size() - 1))


def messages() -> list[Limit]:
    row, tokens = 8 * 128 * 4, 4096
    ring = 3 * tokens * row
    halo = sum(on_ranks(4, bytes_of, tokens, "contiguous", {"causal": True, "window": (255, 0)}))
    inside = sum(
        on_ranks(4, bytes_of, tokens, "contiguous", {"causal": True, "offsets": [0, 500, 1024, 2048, 3072, 4096]})
    )
    zigzag = sum(on_ranks(4, bytes_of, tokens, "zigzag", {"causal": True}))
    return [
        Limit("zigzag causal, bytes over a ring's", zigzag / ring, 0.76),
        Limit("window 255, bytes over its halo's", halo / (3 * 255 * row), 1.0),
        Limit("documents that do not cross ranks, bytes", float(inside), 0.0),
    ]


def error_of(rank: int, right: list[torch.Tensor]) -> list[tuple[float, float]]:
    """(Σ difference², Σ right²) of the output and gradients of this rank."""
    mine = [shard(x).requires_grad_() for x in inputs(1024, torch.bfloat16)[:3]]
    above = shard(inputs(1024, torch.bfloat16)[3])
    out: Any = ring_attention(*mine, causal=True, method="exchange")
    found = (out.detach(), *torch.autograd.grad(out, mine, above))
    pairs = [(a.double(), shard(b)) for a, b in zip(found, right, strict=True)]
    return [(float((a - b).square().sum()), float(b.square().sum())) for a, b in pairs]


def precision() -> list[Limit]:
    q, k, v, above = (x.double() for x in inputs(1024, torch.bfloat16))
    exact = [x.requires_grad_() for x in (q, k, v)]
    out: Any = attention(*exact, causal=True)
    right = [out.detach(), *torch.autograd.grad(out, exact, above)]

    def error(world: int) -> float:
        of_ranks = on_ranks(world, error_of, right)
        kinds = zip(*of_ranks, strict=True)
        return float(sum((sum(a for a, _ in kind) / sum(b for _, b in kind)) ** 0.5 for kind in kinds))

    return [Limit("bfloat16's error at 8 ranks over one rank's", error(8) / error(1), 1.02)]


def lose(rank: int, lost: int, how: int) -> float:
    """Seconds until this rank was told."""
    mine = shard(torch.randn(1, 8, 256, 64))
    ring_attention(mine, mine, mine)
    dist.barrier()
    if rank == lost:
        os.kill(os.getpid(), how)
    start = time.monotonic()
    try:
        ring_attention(mine, mine, mine)
    except HeadworkError as error:
        if f"rank {lost} of" in str(error):
            return time.monotonic() - start
    raise AssertionError("a result without all ranks, or another one named")


def disagree(rank: int, odd: dict[str, Any]) -> float:
    """Seconds until this rank was told that rank 1 makes another call."""
    mine = shard(torch.randn(1, 8, 256, 64))
    dist.barrier()
    start = time.monotonic()
    try:
        ring_attention(mine, mine, mine, **(odd if rank == 1 else {}))
    except HeadworkError as error:
        if "rank 1 of" in str(error):
            return time.monotonic() - start
    raise AssertionError("a result though the ranks disagree, or another one named")


def losses() -> list[Limit]:
    dead = on_ranks(3, lose, 2, signal.SIGKILL, timeout=5, lost=2)
    hung = on_ranks(3, lose, 2, signal.SIGSTOP, timeout=5, lost=2)
    with Ranks(3, timeout=5) as ranks:
        told = [max(ranks.all(disagree, odd)) for odd in ({"causal": True}, {"window": "wide"}, {"method": "best"})]
    return [
        Limit("seconds until a dead rank is named", max(x for x in dead if x is not None), 1.0),
        Limit("seconds until a hung one is, timeout 5 s", max(x for x in hung if x is not None), 10.0),
        Limit("seconds until all know of a disagreement or a bad argument", max(told), 10.0),
    ]


PARTS = {"bytes": messages, "losses": losses, "precision": precision, "memory": memory, "times": times}


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("parts", nargs="*", default=list(PARTS), metavar="part", help=", ".join(PARTS))
    names = asked.parse_args().parts
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"no part {unknown[0]!r}: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    limits: list[Limit] = []
    begin = time.monotonic()
    for name in names:
        limits += PARTS[name]()
        print(f"{name}: done after {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    held = sum(limit.held for limit in limits)
    print(f"{'':6}  {'figure':>9}  {'at most':>9}  torch {torch.__version__}, {os.cpu_count()} cores")
    print(*limits, f"{held} of {len(limits)} limits are held", sep="\n")
    return 0 if held == len(limits) else 1


if __name__ == "__main__":
    raise SystemExit(main())
