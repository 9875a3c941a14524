"""headwork.torch beside torch, forward and backward, in one run: python bench/gradients.py

Contenders take turns, medians are compared, and every result and gradient is checked against float64 first.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.nn.functional import scaled_dot_product_attention as torchs_own

from headwork.engine.bench.turns import medians, turn
from headwork.torch import explain, scaled_dot_product_attention


@dataclass(frozen=True)
class Case:
    """`target` is how many times as long torch should take."""

    name: str
    shape: tuple[int, ...]
    target: float
    options: dict[str, Any] = field(default_factory=dict)
    gradients: bool = True


CAUSAL = {"is_causal": True}
CASES = (
    Case("1,8,1024,64", (1, 8, 1024, 64), 1.3),
    Case("1,8,1024,64 causal", (1, 8, 1024, 64), 1.8, CAUSAL),
    Case("1,1,4096,64", (1, 1, 4096, 64), 1.8),
    Case("1,1,4096,64 causal", (1, 1, 4096, 64), 1.8, CAUSAL),
    Case("2×2, no gradients", (1, 1, 2, 2), 1.0, gradients=False),
)


def contender(function: Any, case: Case, arrays: list[torch.Tensor], upward: torch.Tensor) -> Callable[[], Any]:
    if not case.gradients:
        return lambda: function(*arrays, **case.options)

    def run() -> tuple[torch.Tensor, ...]:
        out = function(*arrays, **case.options)
        return (out, *torch.autograd.grad(out, arrays, upward))

    return run


def check(name: str, got: Any, exact: Any) -> None:
    found, wanted = ((x,) if isinstance(x, torch.Tensor) else x for x in (got, exact))
    for a, b in zip(found, wanted, strict=True):
        off = ((a.double() - b).abs().max() / b.abs().max()).item()
        if not off < 1e-4:
            raise AssertionError(f"{name} is off by {off:.1e}")


def run() -> None:
    table = Table("forward + backward", "torch / headwork", "headwork", "way", box=None)
    for case in CASES:
        torch.manual_seed(0)
        arrays = [torch.randn(case.shape, requires_grad=case.gradients) for _ in range(3)]
        upward = torch.randn(case.shape)
        doubles = [a.detach().double().requires_grad_(case.gradients) for a in arrays]
        exact = contender(torchs_own, case, doubles, upward.double())()
        calls = {
            name: contender(function, case, arrays, upward)
            for name, function in (("headwork", scaled_dot_product_attention), ("torch", torchs_own))
        }
        for name, call in calls.items():
            check(f"{name}, {case.name}", call(), exact)
        taken = medians({name: turn(call) for name, call in calls.items()}, 25, 8)
        ratio = taken["torch"] / taken["headwork"]
        shown = f"{ratio:.2f} {'≥' if ratio >= case.target else '<'} {case.target:g}"
        seconds = taken["headwork"]
        duration = f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"
        table.add_row(case.name, shown, duration, str(explain(*arrays, **case.options)))
    Console().print(table)


if __name__ == "__main__":
    run()
