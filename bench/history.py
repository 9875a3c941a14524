"""Figures over time: every full run is kept with the machine it ran on; README's speeds are those of the last.

python bench/history.py run              the whole suite, on an idle machine; kept in bench/history/
python bench/history.py table            writes the tables of README.md and docs/ from the last run
python bench/history.py plot ratios.svg  draws every case's ratio to torch and to ONNX Runtime over the runs
"""

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "bench" / "history"
PEERS = {"torch": "torch", "onnx": "ONNX Runtime", "jax": "JAX", "numpy": "NumPy"}
PACKAGES = {"torch": "torch", "onnxruntime": "ONNX Runtime", "jax": "JAX", "numpy": "NumPy"}
ROWS = {  # what README shows, in words that need no key; the rest is in docs/
    "1,8,2048,64": "1, 8, 2048, 64",
    "1,8,512,64": "1, 8, 512, 64",
    "causal 1,8,2048,64": "1, 8, 2048, 64, causal",
    "decode 1 on 4096, 32/8": "decoding: 1 query on 4096 keys, 32 heads on 8, d 128",
    "window 256 of 4096": "1, 8, 4096, 64, window of 256",
    "2×2": "1, 1, 2, 2",
}
PAGES = {"README.md": ROWS, "docs/explanation/benchmarks.md": None}  # None: every case, by its own name
MARKERS = ("<!-- written by bench/history.py -->", "<!-- until here -->")

Run = Mapping[str, Any]


def runs(folder: Path = KEPT) -> list[Run]:
    """Every run that was kept, the oldest first."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]


def keep(folder: Path = KEPT) -> Path:
    """Time everything, and write down what came out, at which commit and on what."""
    from headwork.engine.bench import run

    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise SystemExit(f"a full run has every peer, and here is no {', '.join(missing)}: pip install '.[bench]'")
    folder.mkdir(exist_ok=True)
    out = folder / "running.json"
    run(json_path=out)
    today, commit = date.today().isoformat(), _said("git", "rev-parse", "--short", "HEAD")
    changed = "+" if _said("git", "status", "--porcelain", "--untracked-files=no") else ""
    record = {"date": today, "commit": commit + changed, "machine": machine(), "packages": dict(packages())}
    number = len(list(folder.glob(f"{today}-*.json"))) + 1
    path = folder / f"{today}-{number:02}-{commit}.json"
    path.write_text(json.dumps({**record, **json.loads(out.read_text("utf-8"))}, indent=1) + "\n", "utf-8")
    out.unlink()
    return path


def machine() -> dict[str, Any]:
    cpu = platform.processor() or platform.machine()
    known = Path("/proc/cpuinfo")
    if known.exists() and (named := re.search(r"^model name\s*: (.*)$", known.read_text(), re.M)):
        cpu = named[1]
    return {"cpu": cpu, "cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}


def packages() -> Iterator[tuple[str, str]]:
    for name in ("headwork", *PACKAGES):
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def _said(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def against(line: Mapping[str, Any], peer: str) -> float | None:
    """How many times as long the peer takes; ONNX Runtime has two operators, and the faster counts."""
    ratios = line["ratios"]
    found = [ratios[name] for name in ((peer, "onnx mha") if peer == "onnx" else (peer,)) if name in ratios]
    return min(found, default=None)


def table(run: Run, rows: Mapping[str, str] | None) -> Iterator[str]:
    """The run as Markdown: where and when, a row for every case, and what was slower than a peer, whatever it says."""
    on = run["machine"]
    peers = ", ".join(f"{PACKAGES[name]} {run['packages'][name]}" for name in PACKAGES if name in run["packages"])
    yield (
        f"How many times as long the others take, in the run of {run['date']} at commit {run['commit']}: "
        f"{on['cpu']}, {on['cores']} cores, float32; {peers}."
    )
    yield ""
    yield f"| batch, heads, tokens, d | {' | '.join(PEERS.values())} |"
    yield f"| --- |{' --- |' * len(PEERS)}"
    for line in run["lines"]:
        name = line["name"] if rows is None else rows.get(line["name"])
        if name is not None:
            yield f"| {name} | {' | '.join(_number(against(line, peer)) for peer in PEERS)} |"
    yield ""
    yield from others(run) if rows is None else ()
    slower = [
        f"{line['name']} than {PEERS.get(peer, peer)} ({ratio:.2f})"
        for line in run["lines"]
        for peer, ratio in line["ratios"].items()
        if ratio < 1 and not (peer.startswith("onnx") and (against(line, "onnx") or 0) >= 1)
    ]
    yield f"Slower in this run: {'; '.join(slower)}." if slower else "No case was slower than a peer in this run."


def others(run: Run) -> Iterator[str]:
    """The ratios to ways of doing it that only one case has: a loop over packed sequences, heads folded by hand."""
    for line in run["lines"]:
        ways = {peer: ratio for peer, ratio in line["ratios"].items() if peer not in (*PEERS, "onnx mha")}
        if ways:
            yield f"- {line['name']}: " + ", ".join(f"{ratio:.2f} against {peer}" for peer, ratio in ways.items())
    yield ""


def _number(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def written(page: str, lines: Iterable[str]) -> str:
    """The page with what stands between the markers replaced."""
    start, end = MARKERS
    before, _, rest = page.partition(start)
    if end not in rest:
        raise SystemExit(f"the page lacks a line {start} or a line {end} behind it")
    return before + "\n".join([start, *lines, end]) + rest.partition(end)[2]


def write_tables(root: Path = ROOT, folder: Path = KEPT) -> None:
    kept = runs(folder)
    if not kept:
        raise SystemExit(f"no run is kept in {folder} yet: python bench/history.py run")
    for name, rows in PAGES.items():
        page = root / name
        page.write_text(written(page.read_text("utf-8"), table(kept[-1], rows)), "utf-8")


def plot(kept: list[Run], path: Path) -> None:
    """A panel for torch and one for ONNX Runtime: every case a line over the runs, dashed where the machine changed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(14, 6), sharey=True)
    labels = [f"{run['commit']}\n{run['date']}" for run in kept]
    cases = dict.fromkeys(line["name"] for run in kept for line in run["lines"])
    for panel, peer in zip(panels, ("torch", "onnx"), strict=True):
        for case in cases:
            lines = [(x, line) for x, run in enumerate(kept) for line in run["lines"] if line["name"] == case]
            points = [(x, ratio) for x, line in lines if (ratio := against(line, peer)) is not None]
            if points:
                panel.plot(*zip(*points, strict=True), "o-", markersize=3, linewidth=1, label=case)
        for x, (one, other) in enumerate(pairwise(kept)):
            if one["machine"]["cpu"] != other["machine"]["cpu"]:
                panel.axvline(x + 0.5, color="gray", linestyle="--", linewidth=0.8)
        panel.axhline(1, color="black", linewidth=0.8)
        panel.set_yscale("log")
        panel.set_xticks(range(len(kept)), labels, rotation=90, fontsize=7)
        panel.set_title(f"times as long as headwork: {PEERS[peer]}")
    panels[0].legend(fontsize=6, frameon=False, ncols=2)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def main(arguments: list[str]) -> None:
    match arguments:
        case ["run"]:
            print(keep())
        case ["table"]:
            write_tables()
        case ["plot", path]:
            plot(runs(), Path(path))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
