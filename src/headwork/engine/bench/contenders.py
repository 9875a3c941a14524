"""The contenders of a run: one process for each package, so that the threads of one never spin on the cores that
another is timed on."""

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache, lru_cache, partial
from multiprocessing import get_context
from typing import Any, Self

from headwork.engine.bench.cases import CASES, Problem
from headwork.engine.bench.checking import check
from headwork.engine.bench.peers import MACHINE, package_of, prepared
from headwork.engine.bench.turns import medians, turn
from headwork.errors import HeadworkError

SETTLE = 0.2  # seconds between turns: threads of the last one spin for as long as 0.1, waiting for more work


class Contenders:
    """A process starts when a call of its package is first prepared, and ends with the run."""

    def __init__(self) -> None:
        self.running: dict[str, ProcessPoolExecutor] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running.values():
            process.shutdown()

    def prepare(self, peer: str, case: str) -> str | None:
        """Make a peer's call ready and check its result against float64; what stands in the way, if anything does."""
        try:
            trouble: str | None = self._ask(_prepare, peer, case)
        except HeadworkError as ended:
            return str(ended)
        return trouble

    def time(self, peer: str, case: str) -> float:
        """Seconds per call in one turn."""
        return float(self._ask(_time, peer, case))

    def medians(self, peers: list[str], case: str, rounds: int, budget: float) -> dict[str, float]:
        """Seconds per call of each, taking turns."""
        return medians({peer: partial(self._settled, peer, case) for peer in peers}, rounds, budget)

    def _settled(self, peer: str, case: str) -> float:
        time.sleep(SETTLE)
        return self.time(peer, case)

    def _ask(self, question: Callable[[str, str], Any], peer: str, case: str) -> Any:
        package = package_of(peer)
        if package not in self.running:
            self.running[package] = ProcessPoolExecutor(1, get_context("spawn"))
        try:
            return self.running[package].submit(question, peer, case).result()
        except BrokenProcessPool:
            raise HeadworkError(f"the process for {peer} ended unasked") from None


# What a contender's process does.


@lru_cache(maxsize=1)
def _at_hand(case: str) -> tuple[Problem, dict[str, Callable[[], float]]]:
    """The problem, and the calls that are ready for it; the last one is let go."""
    return next(known for known in CASES if known.name == case).make(), {}


@cache
def _without_gradients() -> Any:
    """As torch's users run what they do not train: in inference mode, entered once, not with every call."""
    import torch

    mode = torch.inference_mode()
    mode.__enter__()
    return mode  # kept: it would leave the mode when it is forgotten


def _prepare(peer: str, case: str) -> str | None:
    problem, ready = _at_hand(case)
    try:
        if package_of(peer) == "torch":
            _without_gradients()
        call = prepared(peer, problem)
        if call is None:
            return f"no {peer}"
        if peer != MACHINE:
            check(problem, call(), peer)
    except Exception as trouble:  # whatever a peer may raise: it is told, and the others go on
        return f"{peer}: {trouble}"
    ready[peer] = turn(call)
    return None


def _time(peer: str, case: str) -> float:
    return _at_hand(case)[1][peer]()
