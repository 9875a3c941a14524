"""`headwork bench`: the engine beside what is installed of torch, ONNX Runtime, JAX and NumPy, in one run."""

import json
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from headwork.engine.backend import backend
from headwork.engine.bench import report
from headwork.engine.bench.cases import CASES, Case, Problem
from headwork.engine.bench.contenders import Contenders
from headwork.engine.bench.growth import Growth, extra_memory, grow
from headwork.engine.bench.peers import MACHINE

SCHEMA = 1  # of the figures as JSON: docs/reference/json.md


@dataclass(frozen=True)
class Limit:
    """The machine at its best on one case, timed among the contenders."""

    seconds: float
    operations: float | None  # a second; None where reading memory is the limit
    bytes: float | None  # a second, the other way round

    @classmethod
    def of(cls, problem: Problem, seconds: float) -> Self:
        if problem.reads_memory:
            return cls(seconds, None, (problem.k.nbytes + problem.v.nbytes) / seconds)
        return cls(seconds, problem.operations() / seconds, None)


@dataclass(frozen=True)
class Line:
    """One case: our seconds, and how many times as long each peer takes."""

    name: str
    seconds: float
    ratios: dict[str, float]
    targets: dict[str, float]
    limit: Limit | None
    notes: list[str] = field(default_factory=list)

    @property
    def share(self) -> float | None:
        """Of what the machine can do at best."""
        return None if self.limit is None else self.limit.seconds / self.seconds

    def against(self, peer: str) -> float:
        """The ratio; ONNX Runtime has two operators, and the faster counts."""
        ratio = self.ratios[peer]
        return min(ratio, self.ratios.get("onnx mha", ratio)) if peer == "onnx" else ratio

    @property
    def short_of(self) -> dict[str, float]:
        """The targets that are missed, by peer."""
        return {
            peer: target for peer, target in self.targets.items() if peer in self.ratios and self.against(peer) < target
        }

    @property
    def slower_than(self) -> list[str]:
        return [peer for peer, ratio in self.ratios.items() if ratio < 1]


@dataclass(frozen=True)
class Results:
    backend: dict[str, Any]
    lines: list[Line]
    growth: list[Growth]
    extra_bytes: int | None  # for 1, 8, 16384, 64, where the system tells


def run(*, quick: bool = False, json_path: Path | None = None, plot: Path | None = None) -> Results:
    """Time every case against every peer, print the table, and write JSON and a plot where asked.

    Contenders, each in a process of its own, take turns within one run; medians are compared, every timed result is
    checked against float64 first, and the machine at its limit takes its turns among them. `quick` leaves out the
    longest cases.
    """
    console = Console()
    wanted = [case for case in CASES if case.quick or not quick]
    chosen = [case for case in wanted if case.needs is None or find_spec(case.needs) is not None]
    lines = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress, Contenders() as contenders:
        task = progress.add_task("", total=len(chosen) + 1)
        for case in chosen:
            progress.update(task, description=case.name)
            lines.append(work(case, contenders, quick))
            progress.advance(task)
        progress.update(task, description="growth")
        growth = grow(4096 if quick else 32768)
    results = Results(asdict(backend()), lines, growth, extra_memory(16384))
    report.table(results, console)
    for case in wanted:
        if case not in chosen:
            console.print(f"{case.name}: left out, because {case.needs} is not installed", style="yellow")
    if json_path is not None:
        json_path.write_text(json.dumps({"schema": SCHEMA, **asdict(results)}, indent=1) + "\n")
    if plot is not None:
        report.plot(results, plot)
    return results


def work(case: Case, contenders: Contenders, quick: bool) -> Line:
    notes, ready = [], []
    for peer in ("headwork", MACHINE, *case.peers):
        trouble = contenders.prepare(peer, case.name)
        if trouble is None:
            ready.append(peer)
        else:
            notes.append(trouble)
    taken = contenders.medians(ready, case.name, 9 if quick else 15, 6 if quick else 25)
    ours, at_best = taken.pop("headwork"), taken.pop(MACHINE, None)
    ratios = {peer: seconds / ours for peer, seconds in taken.items()}
    # What was reached can be reached: a probe that was held up is no limit.
    limit = None if at_best is None else Limit.of(case.make(), min(at_best, ours))
    return Line(case.name, ours, ratios, dict(case.targets), limit, notes)


__all__ = ["Limit", "Line", "Results", "run"]
