"""`headwork bench`: the engine beside what is installed of torch, ONNX Runtime, JAX and NumPy, in one run."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from headwork.engine.backend import backend
from headwork.engine.bench import report
from headwork.engine.bench.cases import CASES, Case
from headwork.engine.bench.contenders import Contenders
from headwork.engine.bench.growth import Growth, extra_memory, grow


@dataclass(frozen=True)
class Line:
    """One case: our seconds, and how many times as long each peer takes."""

    name: str
    seconds: float
    ratios: dict[str, float]
    targets: dict[str, float]
    share: float | None  # of the machine's limit, operations or bytes
    notes: list[str] = field(default_factory=list)

    @property
    def slower_than(self) -> list[str]:
        return [peer for peer, ratio in self.ratios.items() if ratio < 1]


@dataclass(frozen=True)
class Results:
    backend: dict[str, Any]
    limits: dict[str, float]  # operations and bytes a second, measured in this run
    lines: list[Line]
    growth: list[Growth]
    extra_bytes: int  # for 1, 8, 16384, 64


def run(*, quick: bool = False, json_path: Path | None = None, plot: Path | None = None) -> Results:
    """Time every case against every peer, print the table, and write JSON and a plot where asked.

    Contenders, each in a process of its own, take turns within one run; medians are compared, every timed result is
    checked against float64 first, and the limits of the machine are measured in the same run. `quick` leaves out the
    longest cases.
    """
    console = Console()
    chosen = [case for case in CASES if case.quick or not quick]
    lines = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress, Contenders() as contenders:
        task = progress.add_task("the machine's limits", total=len(chosen) + 1)
        limits = contenders.of("headwork").limits()
        for case in chosen:
            progress.update(task, description=case.name)
            lines.append(work(case, contenders, limits, quick))
            progress.advance(task)
        progress.update(task, description="growth")
        growth = grow(4096 if quick else 32768)
    results = Results(asdict(backend()), limits, lines, growth, extra_memory(16384))
    report.table(results, console)
    if json_path is not None:
        json_path.write_text(json.dumps(asdict(results), indent=1) + "\n")
    if plot is not None:
        report.plot(results, plot)
    return results


def work(case: Case, contenders: Contenders, limits: dict[str, float], quick: bool) -> Line:
    notes, ready = [], []
    for peer in ("headwork", *case.peers):
        trouble = contenders.of(peer).prepare(peer, case.name)
        if trouble is None:
            ready.append(peer)
        else:
            notes.append(trouble)
    taken = contenders.medians(ready, 9 if quick else 15, 6 if quick else 15)
    ours = taken.pop("headwork")
    ratios = {peer: seconds / ours for peer, seconds in taken.items()}
    return Line(case.name, ours, ratios, dict(case.targets), share(case, ours, limits), notes)


def share(case: Case, seconds: float, limits: dict[str, float]) -> float | None:
    """How much of what the machine can do was reached."""
    if not limits:
        return None
    problem = case.make()
    if case.reads_memory:
        return (problem.k.nbytes + problem.v.nbytes) / seconds / limits["bytes"]
    return problem.operations() / seconds / limits["operations"]


__all__ = ["Line", "Results", "run"]
