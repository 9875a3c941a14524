"""Processes that are the ranks of a group, on this machine: what each returned, or the error it ended with."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

# A server that has torch loaded already forks each rank: they start at once.
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(["torch", "torch.distributed.tensor", "headwork.torch", "headwork.torch.cluster.ring"])
Work = Callable[..., Any]


class Ended(NamedTuple):
    """How a rank ended: its exit code (negative for a signal), what it returned or raised, and after how long."""

    code: int | None
    result: Any
    error: str
    seconds: float


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def run(world: int, work: Work, *args: Any, timeout: float = 300, limit: float = 600, lost: int = -1) -> list[Ended]:
    """`work(rank, *args)` on every rank of a new group with that timeout; a rank that is `lost`, or never ends, is
    ended here.
    """
    port, lines, processes = free_port(), [], []
    for rank in range(world):
        here, there = PROCESSES.Pipe(duplex=False)
        processes.append(PROCESSES.Process(target=enter, args=(rank, world, port, timeout, there, work, args)))
        processes[-1].start()
        there.close()
        lines.append(here)
    end, found = time.monotonic() + limit, {}
    for rank in sorted(range(world), key=lambda rank: rank == lost):
        process, line = processes[rank], lines[rank]
        patience = 0.1 if rank == lost else max(0.1, end - time.monotonic())
        told = None
        if line.poll(patience):
            try:
                told = line.recv()
            except EOFError:
                told = None
        process.join(patience if told is None else 5)
        if process.is_alive():
            process.kill()
            process.join()
        result, error, seconds = told or (None, "never ended" if process.exitcode == -9 else "told nothing", 0.0)
        found[rank] = Ended(process.exitcode, result, error, seconds)
    return [found[rank] for rank in range(world)]


def enter(
    rank: int, world: int, port: int, timeout: float, line: Connection, work: Work, args: tuple[Any, ...]
) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    where = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=world, timeout=timedelta(seconds=timeout))
    dist.barrier()
    begin = time.monotonic()
    try:
        told: tuple[Any, ...] = (work(rank, *args), "", time.monotonic() - begin)
    except Exception as error:
        told = (None, f"{type(error).__name__}: {error}", time.monotonic() - begin)
    line.send(told)
    if not told[1]:
        dist.barrier()  # a rank that leaves early takes its store and its lines along
    os._exit(0)  # a group with a lost rank is not taken down in an orderly way


def results(world: int, work: Work, *args: Any, timeout: float = 300) -> list[Any]:
    """What every rank returned; an error of one is this test's."""
    ended = run(world, work, *args, timeout=timeout)
    wrong = [
        f"rank {rank}, exit code {one.code}: {one.error}" for rank, one in enumerate(ended) if one.error or one.code
    ]
    if wrong:
        raise AssertionError("\n".join(wrong))
    return [one.result for one in ended]
