"""Attention over several processes of this machine: what it costs beside one process, and whether it holds its limits.

    python bench/cluster.py            # everything, about five minutes on an idle machine of two cores
    python bench/cluster.py memory     # one part: times, memory, bytes, precision, losses

Times are CPU seconds of all processes together: 2 processes of 1 thread against 1 of 2 threads, the least of several
runs of each. Every result that is timed is compared with one process's. Exit code 1 where a limit is missed.
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
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from headwork.errors import HeadworkError
from headwork.torch import attention, ring_attention, shard
from headwork.torch.cluster.operator import sent

# A server that has torch loaded already forks each rank: they start at once.
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(["torch", "headwork.torch.cluster.ring"])
ROUNDS = 3


class Limit(NamedTuple):
    """A figure, what it must not exceed, and whether it does."""

    what: str
    figure: float
    most: float

    def __str__(self) -> str:
        return (
            f"{'ok  ' if self.figure <= self.most else 'OVER'}  {self.figure:8.3f}  at most {self.most:<6g} {self.what}"
        )


def enter(rank: int, world: int, port: int, timeout: float, line: Any, work: Callable[..., Any], args: Any) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    where = f"tcp://127.0.0.1:{port}"
    limit = timedelta(seconds=timeout)
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=world, timeout=limit)
    line.send(work(rank, *args))
    os._exit(0)


def on_ranks(world: int, work: Callable[..., Any], *args: Any, timeout: float = 300, lost: int = -1) -> list[Any]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    lines, processes = [], []
    for rank in range(world):
        here, there = PROCESSES.Pipe(duplex=False)
        processes.append(PROCESSES.Process(target=enter, args=(rank, world, port, timeout, there, work, args)))
        processes[-1].start()
        lines.append(here)
    found = [None if rank == lost else line.recv() for rank, line in enumerate(lines)]
    if lost >= 0:
        processes[lost].kill()
    for process in processes:
        process.join()
    return found


def cpu_seconds() -> float:
    return time.process_time()


def inputs(tokens: int, heads: int = 8, batch: int = 1, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(batch, heads, tokens, 64).to(dtype) for _ in range(4)]


def one_process(tokens: int, backward: bool, options: dict[str, Any]) -> tuple[float, list[torch.Tensor]]:
    """(CPU seconds, output and gradients) of one process with two threads."""
    q, k, v, above = inputs(tokens)
    least, kept = float("inf"), []
    for _ in range(ROUNDS):
        mine = [x.clone().requires_grad_(backward) for x in (q, k, v)]
        start = cpu_seconds()
        out: Any = attention(*mine, **options)
        found = [out.detach(), *(torch.autograd.grad(out, mine, above) if backward else ())]
        least, kept = min(least, cpu_seconds() - start), found
    return least, kept


def over_ranks(
    rank: int, tokens: int, backward: bool, options: dict[str, Any], right: Any, split: str, way: str
) -> Any:
    q, k, v, above = (shard(x, split=split) for x in inputs(tokens))
    times = []
    for _ in range(ROUNDS):
        mine = [x.clone().requires_grad_(backward) for x in (q, k, v)]
        dist.barrier()
        start = cpu_seconds()
        out = called(way, mine, options, split)
        found = [out.detach(), *(torch.autograd.grad(out, mine, above) if backward else ())]
        times.append(cpu_seconds() - start)
    wrong = max(
        float((a - shard(b, split=split)).abs().max() / b.abs().max()) for a, b in zip(found, right, strict=True)
    )
    assert wrong < 2e-5, f"{way} is {wrong} away from one process"
    return times


def called(way: str, mine: list[torch.Tensor], options: dict[str, Any], split: str) -> Any:
    if way == "torch":
        return TorchsRing.apply(*mine)
    method: Any = way
    return ring_attention(*mine, split=split, method=method, **options)


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


def summed(of_ranks: list[list[float]]) -> float:
    """The least round, over both processes."""
    return min(map(sum, zip(*of_ranks, strict=True)))


def times() -> list[Limit]:
    torch.set_num_threads(2)
    causal: dict[str, Any] = {"causal": True}
    window: dict[str, Any] = {"causal": True, "window": (511, 0)}
    found = []
    for what, tokens, backward, options, split, most in (
        ("causal with backward, 4096", 4096, True, causal, "zigzag", 1.20),
        ("causal with backward, 8192", 8192, True, causal, "zigzag", 1.10),
        ("causal forward, 16384", 16384, False, causal, "zigzag", 1.06),
        ("window 512 of 16384 with backward", 16384, True, window, "contiguous", 1.12),
    ):
        alone, right = one_process(tokens, backward, options)
        ours = summed(on_ranks(2, over_ranks, tokens, backward, options, right, split, "exchange"))
        again, _ = one_process(tokens, backward, options)
        found.append(Limit(f"CPU time over one process's: {what}", ours / min(alone, again), most))
        print(found[-1], flush=True)
        if what.endswith("4096"):
            theirs = summed(on_ranks(2, over_ranks, tokens, backward, options, right, split, "torch"))
            found.append(Limit("CPU time over torch's ring template's, 4096 (1/1.15)", ours / theirs, 1 / 1.15))
            print(found[-1], flush=True)
    return found


def resident(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(field))


def peak(rank: int, rows: int, backward: bool) -> float:
    """The most memory beyond inputs that a call has, in shards: a rank's rows of one of query, key, value.

    Dense, so that every step has all rows of a rank, and more ranks no more than few.
    """
    ctypes.CDLL(None).mallopt(-3, 65536)  # M_MMAP_THRESHOLD: what is freed is given back, so that a peak is seen
    mine = [torch.randn(16, 8, rows, 64).requires_grad_(backward) for _ in range(3)]
    small = [x[:1].detach().clone().requires_grad_(backward) for x in mine]
    out: Any = ring_attention(*small, split="contiguous", method="exchange")
    if backward:
        out.sum().backward()
    del out
    above = torch.randn(16, 8, rows, 64)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    out = ring_attention(*mine, split="contiguous", method="exchange")
    if backward:
        torch.autograd.grad(out, mine, above)
    return float((resident("VmHWM") - before) / (mine[0].numel() * 4))


def memory() -> list[Limit]:
    found = []
    for backward, most in ((False, 10.0), (True, 18.0)):
        figures = {world: max(on_ranks(world, peak, 256, backward)) for world in (2, 4, 8)}
        what = "with backward" if backward else "forward"
        found.append(Limit(f"shards beyond the inputs, {what}, 4 ranks", figures[4], most))
        found.append(Limit(f"8 ranks' over 4 ranks', {what}", figures[8] / figures[4], 1.05))
        twice = max(on_ranks(4, peak, 512, backward))
        found.append(Limit(f"twice the rows' over 4 ranks', in shards, {what}", twice / figures[4], 1.05))
        print(*found[-3:], sep="\n", flush=True)
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
    found = [
        Limit("zigzag causal, bytes over a ring's", zigzag / ring, 0.76),
        Limit("window 255, bytes over its halo's", halo / (3 * 255 * row), 1.0),
        Limit("documents that do not cross ranks, bytes", float(inside), 0.0),
    ]
    print(*found, sep="\n", flush=True)
    return found


def error_of(rank: int, right: list[torch.Tensor]) -> list[tuple[float, float]]:
    """(Σ difference², Σ right²) of the output and gradients of this rank."""
    mine = [shard(x).requires_grad_() for x in inputs(1024, dtype=torch.bfloat16)[:3]]
    above = shard(inputs(1024, dtype=torch.bfloat16)[3])
    out: Any = ring_attention(*mine, causal=True, method="exchange")
    found = (out.detach(), *torch.autograd.grad(out, mine, above))
    pairs = [(a.double(), shard(b)) for a, b in zip(found, right, strict=True)]
    return [(float((a - b).square().sum()), float(b.square().sum())) for a, b in pairs]


def precision() -> list[Limit]:
    q, k, v, above = (x.double() for x in inputs(1024, dtype=torch.bfloat16))
    exact = [x.requires_grad_() for x in (q, k, v)]
    out: Any = attention(*exact, causal=True)
    right = [out.detach(), *torch.autograd.grad(out, exact, above)]

    def error(world: int) -> float:
        of_ranks = on_ranks(world, error_of, right)
        kinds = zip(*of_ranks, strict=True)
        return float(sum((sum(a for a, _ in kind) / sum(b for _, b in kind)) ** 0.5 for kind in kinds))

    found = [Limit("bfloat16's error at 8 ranks over one rank's", error(8) / error(1), 1.02)]
    print(*found, sep="\n", flush=True)
    return found


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


def losses() -> list[Limit]:
    dead = on_ranks(3, lose, 2, signal.SIGKILL, timeout=5, lost=2)
    hung = on_ranks(3, lose, 2, signal.SIGSTOP, timeout=5, lost=2)
    found = [
        Limit("seconds until a dead rank is named", max(x for x in dead if x is not None), 1.0),
        Limit("seconds until a hung one is, timeout 5 s", max(x for x in hung if x is not None), 10.0),
    ]
    print(*found, sep="\n", flush=True)
    return found


PARTS = {"bytes": messages, "losses": losses, "precision": precision, "memory": memory, "times": times}


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("parts", nargs="*", default=list(PARTS), metavar="part", help=", ".join(PARTS))
    names = asked.parse_args().parts
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"no part {unknown[0]!r}: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    limits = [limit for name in names for limit in PARTS[name]()]
    over = [limit for limit in limits if not limit.figure <= limit.most]
    print(f"{len(limits) - len(over)} of {len(limits)} limits are held")
    return 1 if over else 0


if __name__ == "__main__":
    raise SystemExit(main())
