"""A contender in a process of its own: the threads of one must not spin on the cores that another is timed on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from headwork.engine.bench.cases import CASES, Problem
from headwork.engine.bench.turns import turn
from headwork.errors import HeadworkError


class Contender:
    """A process that prepares the calls of one package and times them when it is their turn."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def prepare(self, peer: str, case: str) -> str | None:
        """Make the call ready and check its result against float64; what stands in the way, if anything does."""
        try:
            trouble: str | None = self._ask("prepare", peer, case)
        except HeadworkError as stopped:
            return str(stopped)
        return trouble

    def time(self, peer: str) -> float:
        """Seconds per call in one turn."""
        return float(self._ask("time", peer))

    def stop(self) -> None:
        self._ours.close()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()

    def _ask(self, *question: str) -> Any:
        try:
            self._ours.send(question)
            return self._ours.recv()
        except (EOFError, OSError):
            raise HeadworkError(f"the process for {' '.join(question[1:])} ended unasked") from None


@dataclass
class _Desk:
    """What one contender's process keeps: the problem at hand and the calls that are ready."""

    case: str = ""
    problem: Problem | None = None
    turns: dict[str, Callable[[], float]] = field(default_factory=dict)

    def prepare(self, peer: str, case: str) -> str | None:
        from headwork.engine.bench.checking import check
        from headwork.engine.bench.peers import MACHINE, prepared

        if case != self.case:
            self.case, self.turns = case, {}
            self.problem = next(known for known in CASES if known.name == case).make()
        assert self.problem is not None
        try:
            call = prepared(peer, self.problem)
            if call is None:
                return f"no {peer}"
            if peer != MACHINE:
                check(self.problem, call(), peer)
        except Exception as trouble:  # whatever a peer may raise: it is told, and the others go on
            return f"{peer}: {trouble}"
        self.turns[peer] = turn(call)
        return None

    def time(self, peer: str) -> float:
        return self.turns[peer]()


def serve(pipe: Connection) -> None:
    """Answer questions until the other side hangs up."""
    desk = _Desk()
    while True:
        try:
            question, *details = pipe.recv()
        except EOFError:
            return
        pipe.send(getattr(desk, question)(*details))
