"""Contenders take turns in one run, and medians are compared."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

TIMED = 0.02  # seconds that a turn is timed at least, after as many that are not


def turn(call: Callable[[], Any]) -> Callable[[], float]:
    """What gives, each time, the seconds that one call takes."""
    call()
    start = time.perf_counter()
    call()
    repeats = max(1, int(TIMED / max(time.perf_counter() - start, 1e-7)))

    def seconds() -> float:
        taken = 0.0
        for _ in range(2):  # the first wakes the threads and fills the caches, for every contender alike
            begun = time.perf_counter()
            for _ in range(repeats):
                call()
            taken = time.perf_counter() - begun
        return taken / repeats

    return seconds


def medians(turns: Mapping[str, Callable[[], float]], rounds: int, budget: float) -> dict[str, float]:
    """Seconds per call of each: the median over rounds in which each has its turn."""
    taken: dict[str, list[float]] = {name: [] for name in turns}
    begun = time.perf_counter()
    for done in range(rounds):
        if done >= 5 and time.perf_counter() - begun > budget:
            break
        for name, seconds in turns.items():
            taken[name].append(seconds())
    return {name: statistics.median(times) for name, times in taken.items()}
