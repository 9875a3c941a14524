"""The table and the plots of a run."""

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from headwork.engine.bench import Line, Results


def table(results: "Results", console: Console) -> None:
    """Ratios first: how many times as long each peer takes. Red: below target; cases in which a peer is faster come
    first, and are listed."""
    view = Table(title="times as long as headwork takes, ≥ what it should be", title_justify="left", box=None)
    for name in ("case", "torch", "onnx", "headwork", "of limit"):
        view.add_column(name, justify="left" if name == "case" else "right", no_wrap=True)
    lines = sorted(results.lines, key=lambda line: not line.slower_than)
    for line in lines:
        share = "" if line.share is None else f"{line.share:.0%}"
        view.add_row(line.name, ratio(line, "torch"), ratio(line, "onnx"), duration(line.seconds), share)
    console.print(view)
    others = Table("case", "others", box=None)  # which are too many for columns
    for line in lines:
        peers = [peer for peer in line.ratios if peer not in ("torch", "onnx", "onnx mha")]
        if peers:
            others.add_row(line.name, ", ".join(f"{peer} {ratio(line, peer)}" for peer in peers))
    console.print(others)
    limits = [line.limit for line in results.lines if line.limit is not None]
    operations = [limit.operations / 1e9 for limit in limits if limit.operations is not None]
    read = [limit.bytes / 1e9 for limit in limits if limit.bytes is not None]
    if operations and read:
        console.print(f"limits: {median(operations):.0f} GF/s float32, {median(read):.1f} GB/s read")
    if results.extra_bytes is not None:
        extra = f"{results.extra_bytes / 1e6:.1f} MB (wanted: under 8)"
        console.print(f"extra memory at the peak for 1,8,16384,64: {extra}")
    for line in results.lines:
        for peer, target in line.short_of.items():
            console.print(f"short: {line.name} against {peer}{would_take(line.share, line.against(peer), target)}")
        for peer in line.slower_than:
            console.print(f"slower than {peer}: {line.name}, {line.ratios[peer]:.2f}", style="red")
        for note in line.notes:
            if not note.startswith("no "):
                console.print(f"{line.name}: {note}", style="yellow")


def ratio(line: "Line", peer: str) -> str:
    """The ratio and what it should be."""
    if peer not in line.ratios:
        return ""
    value, wanted = line.against(peer), line.targets.get(peer)
    if wanted is None:
        return f"{value:.2f}"
    return f"{value:.2f} ≥ {wanted:g}" if value >= wanted else f"[red]{value:.2f} < {wanted:g}[/red]"


def would_take(share: float | None, reached: float, target: float) -> str:
    """What a missed target asks of the machine: as much more of its limit as the ratio falls short."""
    if share is None:
        return ""
    return f"; {target:g} would take {share * target / reached:.0%} of the limit, reached is {share:.0%}"


def duration(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


MARKERS = {"torch": "o", "onnx": "s", "onnx mha": "^", "jax": "v", "numpy": "x"}
OTHER_WAYS = "torch, folded, flex, loop, padded, bfloat16"


def plot(results: "Results", path: Path) -> None:
    """Two panels: the ratios of every case, and time and memory over tokens."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (bars, growth) = pyplot.subplots(1, 2, figsize=(13, 6), width_ratios=(3, 2))
    for label, marker in (MARKERS | {OTHER_WAYS: "D"}).items():
        points = [
            (ratio, i)
            for i, line in enumerate(results.lines)
            for peer, ratio in line.ratios.items()
            if peer == label or (label == OTHER_WAYS and peer not in MARKERS)
        ]
        bars.plot([x for x, _ in points], [y for _, y in points], marker, label=label, fillstyle="none")
    bars.axvline(1, color="black", linewidth=0.8)
    bars.set_xscale("log")
    bars.set_yticks(range(len(results.lines)), [line.name for line in results.lines])
    bars.invert_yaxis()
    bars.set_xlabel("times as long as headwork takes")
    bars.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
    tokens = [point.tokens for point in results.growth]
    seconds = [point.seconds for point in results.growth]
    growth.loglog(tokens, seconds, "o-", label="seconds, 1 head")
    growth.loglog(tokens, [seconds[0] * (n / tokens[0]) ** 2 for n in tokens], ":", color="gray", label="∝ tokens²")
    extra = [(point.tokens, point.extra_bytes / 1e6) for point in results.growth if point.extra_bytes is not None]
    if extra:
        growth.loglog(*zip(*extra, strict=True), "s-", label="extra MB, 8 heads")
    growth.set_xlabel("tokens")
    growth.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
