"""headwork.torch beside torch: training, short batches and masks, in one run.

    python bench/gradients.py                     # a table
    python bench/gradients.py --json out.json     # and what stands in it, as bench/history.py keeps it

Contenders take turns, the machine's multiply-adds with nothing else to do among them; medians are compared, and every
result and gradient is checked against float64 first. What is slower than torch is printed first.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch.nn.functional import scaled_dot_product_attention as torchs_own

from headwork.engine.backend import kernel
from headwork.engine.bench.report import duration, would_take
from headwork.engine.bench.turns import medians, turn
from headwork.torch import explain, scaled_dot_product_attention

LOAD = 1_000_000  # operations: fewer do not tell the machine's limit


@dataclass(frozen=True)
class Case:
    """`target` is how many times as long torch should take; `threads` is 0 for as many as there are cores."""

    shape: tuple[int, ...]
    target: float
    mask: str = ""  # "causal", "padding" of keys, or "Boolean", the same for all heads
    keys: int = 0  # where they are not as many as the tokens
    gradients: bool = True
    threads: int = 1

    @property
    def name(self) -> str:
        size = ",".join(map(str, self.shape)) + (f" on {self.keys} keys" if self.keys else "")
        kind = "forward + backward" if self.gradients else "forward"
        return f"{size}{self.mask and ', ' + self.mask}, {kind}, {'1 thread' if self.threads else 'all threads'}"

    def inputs(self) -> tuple[list[torch.Tensor], dict[str, Any]]:
        batch, heads, tokens, d = self.shape
        keys = self.keys or tokens
        shapes = [self.shape, *[(batch, heads, keys, d)] * 2]
        arrays = [torch.randn(shape, requires_grad=self.gradients) for shape in shapes]
        if self.mask == "causal":
            return arrays, {"is_causal": True}
        if self.mask == "padding":
            real = torch.arange(keys) < torch.randint(keys // 2, keys + 1, (batch, 1))
            return arrays, {"attn_mask": real[:, None, None, :]}
        if self.mask == "Boolean":
            return arrays, {"attn_mask": (torch.rand(batch, 1, tokens, keys) < 0.7) | torch.eye(tokens, keys).bool()}
        return arrays, {}

    def operations(self) -> float:
        """Of two products forward and five backward, over the keys that are read."""
        batch, heads, tokens, d = self.shape
        pairs = tokens * (tokens + 1) / 2 if self.mask == "causal" else tokens * (self.keys or tokens)
        return (14 if self.gradients else 4) * batch * heads * pairs * d


@dataclass(frozen=True)
class Line:
    """One case: our seconds, how many times as long torch takes, and how near we are to the machine's limit."""

    name: str
    seconds: float
    ratios: dict[str, float]
    target: float
    share: float | None
    way: str

    def row(self) -> tuple[str, ...]:
        ratio = self.ratios["torch"]
        shown = f"{ratio:.2f} ≥ {self.target:g}"
        if ratio < self.target:
            shown = f"{ratio:.2f} < {self.target:g}{would_take(self.share, ratio, self.target)}"
        return self.name, shown, duration(self.seconds), "" if self.share is None else f"{self.share:.0%}", self.way


CASES = (
    Case((4, 16, 1, 64), 1.3, "padding", 512, gradients=False),
    *(Case((4, 12, 32, 64), 1.15, mask, gradients=False) for mask in ("padding", "Boolean")),
    *(Case((32, 12, 32, 32), 1.15, mask, gradients=False) for mask in ("padding", "Boolean")),
    *(Case((4, 12, n, 64), target) for n, target in ((16, 1.0), (32, 1.1), (64, 1.15))),
    *(Case((4, 12, n, 64), 1.25) for n in (96, 128, 256)),
    Case((2, 12, 197, 64), 1.25),
    Case((4, 12, 32, 64), 1.1, "padding"),
    Case((4, 12, 128, 64), 1.25, "padding"),
    Case((1, 1, 2, 2), 0.9),
    Case((1, 1, 2, 2), 1.0, gradients=False),
    Case((1, 8, 1024, 64), 1.35, threads=0),
    Case((1, 8, 1024, 64), 1.9, "causal", threads=0),
    Case((1, 1, 4096, 64), 1.6, threads=0),
    Case((1, 1, 4096, 64), 1.6, "causal", threads=0),
)


def contender(
    function: Any, arrays: list[torch.Tensor], options: Any, upward: torch.Tensor | None
) -> Callable[[], Any]:
    if upward is None:
        return lambda: function(*arrays, **options)

    def run() -> tuple[torch.Tensor, ...]:
        out = function(*arrays, **options)
        return (out, *torch.autograd.grad(out, arrays, upward))

    return run


def check(name: str, got: Any, exact: Any) -> None:
    found, wanted = ((x,) if isinstance(x, torch.Tensor) else x for x in (got, exact))
    for a, b in zip(found, wanted, strict=True):
        off = ((a.double() - b).abs().max() / b.abs().max()).item()
        if not off < 1e-4:
            raise AssertionError(f"{name} is off by {off:.1e}")


def compare(case: Case) -> Line:
    torch.manual_seed(0)
    torch.set_num_threads(case.threads or ALL_THREADS)
    arrays, options = case.inputs()
    upward = torch.randn(case.shape) if case.gradients else None
    doubles = [a.detach().double().requires_grad_(case.gradients) for a in arrays]
    exact = contender(torchs_own, doubles, options, None if upward is None else upward.double())()
    ways = {"headwork": scaled_dot_product_attention, "torch": torchs_own}
    calls = {name: contender(function, arrays, options, upward) for name, function in ways.items()}
    for name, call in calls.items():
        check(f"{name}, {case.name}", call(), exact)
    if kernel is not None and case.operations() > LOAD:
        calls["limit"] = partial(kernel.multiply_add, int(case.operations()), case.threads)
    taken = medians({name: turn(call) for name, call in calls.items()}, 25, 8)
    share = min(1.0, taken["limit"] / taken["headwork"]) if "limit" in taken else None
    ratios = {"torch": taken["torch"] / taken["headwork"]}
    return Line(case.name, taken["headwork"], ratios, case.target, share, str(explain(*arrays, **options)))


ALL_THREADS = torch.get_num_threads()

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="a file for the figures")
    given = parser.parse_args()
    lines = [compare(case) for case in track(CASES, "cases", transient=True)]
    table = Table("case", "torch / headwork", "headwork", "of limit", "way", box=None)
    for line in sorted(lines, key=lambda line: line.ratios["torch"] >= 1):
        table.add_row(*line.row())
    Console(width=200).print(table)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(line) for line in lines]), "utf-8")
