"""`headwork bench`: the engine beside what is installed of torch, ONNX Runtime, JAX and NumPy, in one run."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from headwork.engine.backend import backend, kernel
from headwork.engine.bench import report
from headwork.engine.bench.cases import CASES, Case
from headwork.engine.bench.growth import Growth, extra_memory, grow
from headwork.engine.bench.peers import prepared
from headwork.engine.bench.timing import check, medians


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

    Contenders take turns within one run, medians are compared, every timed result is checked against float64
    first, and the limits of the machine are measured in the same run. `quick` leaves out the longest cases.
    """
    console = Console()
    chosen = [case for case in CASES if case.quick or not quick]
    limits = measured_limits()
    lines = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(chosen))
        for case in chosen:
            progress.update(task, description=case.name)
            lines.append(work(case, limits, quick))
            progress.advance(task)
    growth = grow(4096 if quick else 32768)
    results = Results(asdict(backend()), limits, lines, growth, extra_memory(16384))
    report.table(results, console)
    if json_path is not None:
        json_path.write_text(json.dumps(asdict(results), indent=1) + "\n")
    if plot is not None:
        report.plot(results, plot)
    return results


def measured_limits() -> dict[str, float]:
    if kernel is None:
        return {}
    operations, read = kernel.measure(np.ones(256 << 20, np.uint8), 0)
    return {"operations": operations, "bytes": read}


def work(case: Case, limits: dict[str, float], quick: bool) -> Line:
    problem = case.make()
    calls = {"headwork": problem.ours}
    check(problem, problem.ours(), 2e-5)
    notes = []
    for peer in case.peers:
        call = prepared(peer, problem)
        if call is None:
            notes.append(f"no {peer}")
            continue
        try:
            check(problem, call(), 2e-2 if "bfloat16" in peer else 2e-4)
        except AssertionError as wrong:
            notes.append(f"{peer} {wrong}")
            continue
        calls[peer] = call
    taken = medians(calls, 9 if quick else 25, 4 if quick else 15)
    ours = taken.pop("headwork")
    share = None
    if limits:
        done = problem.k.nbytes + problem.v.nbytes if case.reads_memory else problem.operations()
        share = done / ours / limits["bytes" if case.reads_memory else "operations"]
    ratios = {peer: seconds / ours for peer, seconds in taken.items()}
    return Line(case.name, ours, ratios, dict(case.targets), share, notes)


__all__ = ["Line", "Results", "run"]
