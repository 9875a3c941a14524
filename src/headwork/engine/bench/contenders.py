"""The contenders of a run, and the turns they take."""

import time
from functools import partial
from typing import Self

from headwork.engine.bench.contender import Contender
from headwork.engine.bench.peers import package_of
from headwork.engine.bench.turns import medians

SETTLE = 0.2  # seconds between turns: threads of the last one spin for as long as 0.1, waiting for more work


class Contenders:
    """One process for each package, started when first needed."""

    def __init__(self) -> None:
        self._running: dict[str, Contender] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for contender in self._running.values():
            contender.stop()

    def of(self, peer: str) -> Contender:
        package = package_of(peer)
        if package not in self._running:
            self._running[package] = Contender()
        return self._running[package]

    def medians(self, peers: list[str], rounds: int, budget: float) -> dict[str, float]:
        """Seconds per call of each, taking turns."""
        return medians({peer: partial(self._time, peer) for peer in peers}, rounds, budget)

    def _time(self, peer: str) -> float:
        time.sleep(SETTLE)
        return self.of(peer).time(peer)
