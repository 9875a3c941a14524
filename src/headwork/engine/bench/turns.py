"""Contenders take turns in one run, and medians are compared."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

FAR_BEHIND = 3  # times as long
TIMED = 0.04  # seconds, about, that a turn is timed, after as many that are not


def turn(call: Callable[[], Any]) -> Callable[[], float]:
    """What gives, each time, the seconds that one call takes."""

    def seconds() -> float:
        repeats = calls_within(TIMED, call)  # wakes the threads and fills the caches, for every contender alike
        begun = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - begun) / repeats

    return seconds


def calls_within(seconds: float, call: Callable[[], Any]) -> int:
    """How many calls fit into the time; at least one."""
    done, end = 0, time.perf_counter() + seconds
    while done == 0 or time.perf_counter() < end:
        call()
        done += 1
    return done


def medians(turns: Mapping[str, Callable[[], float]], rounds: int, budget: float) -> dict[str, float]:
    """Seconds per call of each: the median over rounds in which each has its turn.

    Who is far behind the first of them after a few rounds has no more turns: they would take the time of those that are
    close.
    """
    taken: dict[str, list[float]] = {name: [] for name in turns}
    left = list(turns)
    begun = time.perf_counter()
    for done in range(rounds):
        if done >= 5 and time.perf_counter() - begun > budget:
            break
        if done == 3:
            so_far = [statistics.median(times) for times in taken.values()]
            left = [name for name, seconds in zip(turns, so_far, strict=True) if seconds < FAR_BEHIND * so_far[0]]
        for name in left:
            taken[name].append(turns[name]())
    return {name: statistics.median(times) for name, times in taken.items()}
