"""headwork.torch beside torch, forward and backward, in one run: python bench/gradients.py

Contenders take turns, the machine's multiply-adds with nothing else to do among them; medians are compared, and every
result and gradient is checked against float64 first.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.nn.functional import scaled_dot_product_attention as torchs_own

from headwork.engine.backend import kernel
from headwork.engine.bench.report import duration, would_take
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

    def operations(self) -> float:
        """Of two products forward and five backward, over the keys that are read."""
        batch, heads, tokens, d = self.shape
        pairs = tokens * (tokens + 1) / 2 if self.options else tokens**2
        return (14 if self.gradients else 4) * batch * heads * pairs * d


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


def compare(case: Case) -> tuple[str, ...]:
    """A row of the table."""
    torch.manual_seed(0)
    arrays = [torch.randn(case.shape, requires_grad=case.gradients) for _ in range(3)]
    upward = torch.randn(case.shape)
    doubles = [a.detach().double().requires_grad_(case.gradients) for a in arrays]
    exact = contender(torchs_own, case, doubles, upward.double())()
    ways = {"headwork": scaled_dot_product_attention, "torch": torchs_own}
    calls = {name: contender(function, case, arrays, upward) for name, function in ways.items()}
    for name, call in calls.items():
        check(f"{name}, {case.name}", call(), exact)
    if kernel is not None and case.gradients:  # fewer operations are no load
        calls["limit"] = partial(kernel.multiply_add, int(case.operations()), 0)
    taken = medians({name: turn(call) for name, call in calls.items()}, 25, 8)
    ratio, share = taken["torch"] / taken["headwork"], taken["limit"] / taken["headwork"] if "limit" in taken else None
    shown = f"{ratio:.2f} ≥ {case.target:g}"
    if ratio < case.target:
        shown = f"{ratio:.2f} < {case.target:g}{would_take(share, ratio, case.target)}"
    of_limit = "" if share is None else f"{share:.0%}"
    return case.name, shown, duration(taken["headwork"]), of_limit, str(explain(*arrays, **case.options))


if __name__ == "__main__":
    table = Table("forward + backward", "torch / headwork", "headwork", "of limit", "way", box=None)
    for case in CASES:
        table.add_row(*compare(case))
    Console().print(table)
