"""Figures over time: every full run is kept with the machine it ran on; README's speeds are those of the last.

python bench/history.py run              the whole suite, on an idle machine; kept in bench/history/
python bench/history.py table            writes the tables of README.md and docs/ from the last run
python bench/history.py plot ratios.svg  draws every case's ratios to its peers over the runs; `dark` behind it: on dark
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
COLOURS = {"torch": "#c2410c", "onnx": "#1d4ed8", "jax": "#15803d", "numpy": "#71717a"}
LIGHT_COLOURS = {"torch": "#fb923c", "onnx": "#7aa7ff", "jax": "#4ade80", "numpy": "#b4b4bb"}
THEMES = {  # "slower" is the band below 1
    "light": {"paper": "#ffffff", "ink": "#1c1e21", "slower": "#ebebeb"} | COLOURS,
    "dark": {"paper": "#17181b", "ink": "#e9e6df", "slower": "#34363c"} | LIGHT_COLOURS,
}
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
    out, training = folder / "running.json", folder / "training.json"
    run(json_path=out)
    subprocess.run([sys.executable, ROOT / "bench" / "gradients.py", "--json", training], check=True)
    today, commit = date.today().isoformat(), _said("git", "rev-parse", "--short", "HEAD")
    changed = "+" if _said("git", "status", "--porcelain", "--untracked-files=no") else ""
    record = {"date": today, "commit": commit + changed, "machine": machine(), "packages": dict(packages())}
    number = len(list(folder.glob(f"{today}-*.json"))) + 1
    path = folder / f"{today}-{number:02}-{commit}.json"
    found = {**json.loads(out.read_text("utf-8")), "training": json.loads(training.read_text("utf-8"))}
    path.write_text(json.dumps({**record, **found}, indent=1) + "\n", "utf-8")
    out.unlink()
    training.unlink()
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
        if name is not None and any(against(line, peer) is not None for peer in PEERS):
            yield f"| {name} | {' | '.join(_number(against(line, peer)) for peer in PEERS)} |"
    yield ""
    if rows is None:
        yield from others(run)
        yield from training(run)
    slower = [
        f"{in_words(line['name'])} than {PEERS.get(peer, peer)} ({ratio:.2f})"
        for line in (*run["lines"], *run.get("training", ()))
        for peer, ratio in line["ratios"].items()
        if ratio < 1 and not (peer.startswith("onnx") and (against(line, "onnx") or 0) >= 1)
    ]
    yield f"Slower in this run: {'; '.join(slower)}." if slower else "No case was slower than a peer in this run."


def others(run: Run) -> Iterator[str]:
    """The ratios to ways of doing it that only one case has: a loop over packed sequences, heads folded by hand."""
    yield "Against other ways that a user of torch has for a case:"
    yield ""
    for line in run["lines"]:
        ways = {peer: ratio for peer, ratio in line["ratios"].items() if peer not in (*PEERS, "onnx mha")}
        if ways:
            yield f"- {line['name']}: " + ", ".join(f"{ratio:.2f} against {peer}" for peer, ratio in ways.items())
    yield ""


def training(run: Run) -> Iterator[str]:
    """Through `headwork.torch`: gradients, short batches and masks."""
    if "training" not in run:  # runs of earlier days had no such part
        return
    yield "Tensors, with gradients, in short batches or with masks (`bench/gradients.py`):"
    yield ""
    yield "| batch, heads, tokens, d | torch | of the machine's limit |"
    yield "| --- | --- | --- |"
    for line in run["training"]:
        share = "" if line["share"] is None else f"{line['share']:.0%}"
        yield f"| {in_words(line['name'])} | {line['ratios']['torch']:.2f} | {share} |"
    yield ""


def in_words(name: str) -> str:
    """Runs of earlier days left the number open."""
    return name.replace("1 thread(s)", "1 thread").replace("all thread(s)", "all threads")


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


def plot(kept: list[Run], path: Path, theme: str = "light") -> None:
    """Draw the runs in the colours of a light or a dark page."""
    import matplotlib

    if theme not in THEMES:
        raise SystemExit(f"a plot is {' or '.join(THEMES)}, not {theme}")
    matplotlib.use("Agg")
    colours = THEMES[theme]
    paper = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    ink = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    with matplotlib.rc_context(dict.fromkeys(paper, colours["paper"]) | dict.fromkeys(ink, colours["ink"])):
        draw(kept, path, colours)


def draw(kept: list[Run], path: Path, colours: Mapping[str, str]) -> None:
    """A panel for every case: the ratios to its peers over the runs, with a dashed line where the machine changed."""
    from matplotlib import pyplot

    cases = [case for case in dict.fromkeys(line["name"] for run in kept for line in run["lines"]) if drawn(kept, case)]
    columns = min(4, len(cases))
    rows = -(-len(cases) // columns)
    figure, panels = pyplot.subplots(
        rows, columns, figsize=(2.9 * columns, 2.1 * rows + 0.9), sharex=True, squeeze=False, layout="constrained"
    )
    for panel, case in zip(panels.flat, cases, strict=False):
        draw_case(panel, kept, case, colours)
    for panel in panels.flat[len(cases) :]:
        panel.set_axis_off()
    for column in range(columns):  # under the lowest panel of each column, which need not be in the last row
        lowest = panels[rows - 1 if (rows - 1) * columns + column < len(cases) else rows - 2, column]
        labels = [f"{run['commit']}\n{run['date']}" for run in kept]
        lowest.set_xticks(range(len(kept)), labels, rotation=90, fontsize=7)
        lowest.tick_params(labelbottom=True)
    keys = [pyplot.Line2D([], [], color=colours[peer], marker="o", label=name) for peer, name in PEERS.items()]
    figure.legend(handles=keys, loc="outside upper right", ncols=len(keys), frameon=False)
    last = kept[-1]
    told = f"How many times as long the others take (batch, heads, tokens, d)\nlast on {last['machine']['cpu']}"
    figure.suptitle(told, x=0.01, ha="left", fontsize=11)
    figure.savefig(path)
    pyplot.close(figure)


def drawn(kept: list[Run], case: str) -> dict[str, list[tuple[int, float]]]:
    """What there is to draw of a case: for every peer that has it, the run's number and the ratio."""
    lines = [(x, line) for x, run in enumerate(kept) for line in run["lines"] if line["name"] == case]
    found = {peer: [(x, r) for x, line in lines if (r := against(line, peer)) is not None] for peer in PEERS}
    return {peer: points for peer, points in found.items() if points}


def draw_case(panel: Any, kept: list[Run], case: str, colours: Mapping[str, str]) -> None:
    """A line for every peer, its last ratio written beside it; what lies below 1 is slower than the peer."""
    panel.set_title(case, fontsize=9)
    panel.set_yscale("log")
    panel.axhspan(1e-3, 1, color=colours["slower"], linewidth=0)
    lines = drawn(kept, case)
    ratios = [ratio for points in lines.values() for _, ratio in points]
    lowest, highest = min(1.0, *ratios) * 0.8, max(2.0, *ratios) * 1.7
    place, gap = 0.0, (highest / lowest) ** 0.085  # numbers stand above one another, however near the ratios are
    for peer, points in sorted(lines.items(), key=lambda line: line[1][-1][1]):
        panel.plot(*zip(*points, strict=True), "o-", markersize=3, linewidth=1, color=colours[peer])
        x, ratio = points[-1]
        place = max(ratio, place * gap)
        panel.annotate(f"{ratio:.2f}", (x, place), (5, -2), textcoords="offset points", fontsize=7, color=colours[peer])
    for x, (one, other) in enumerate(pairwise(kept)):
        if one["machine"]["cpu"] != other["machine"]["cpu"]:
            panel.axvline(x + 0.5, color="gray", linestyle="--", linewidth=0.8)
    panel.set_xlim(-0.5, len(kept) - 0.5 + 0.12 * len(kept))
    panel.set_ylim(lowest, highest)
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50) if tick < highest]
    panel.set_yticks(ticks, [str(tick) for tick in ticks], fontsize=7)
    panel.minorticks_off()


def main(arguments: list[str]) -> None:
    match arguments:
        case ["run"]:
            print(keep())
        case ["table"]:
            write_tables()
        case ["plot", path, *theme] if len(theme) < 2:
            plot(runs(), Path(path), *theme)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
