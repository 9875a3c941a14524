"""What ran: calls counted by function, way and reason, while somebody listens."""

from collections import Counter
from threading import Lock
from typing import Any, NamedTuple, Self

from headwork.torch.path import Path


class Ran(NamedTuple):
    """One kind of call: the function that was called, the way it went, and why."""

    function: str
    way: str
    reason: str

    def __str__(self) -> str:
        return f"{self.function}, {self.way}: {self.reason}"


class Report:
    """Calls counted while it is open: `with report() as ran:`; afterwards `ran.calls`, or print it.

    >>> import torch
    >>> from headwork.torch import attention
    >>> x = torch.eye(2)
    >>> with report() as ran:
    ...     _ = attention(x, x, x)
    >>> print(ran)
    1 × attention, kernel: without gradients
    """

    def __init__(self) -> None:
        self.calls: Counter[Ran] = Counter()
        self.lock = Lock()

    def __enter__(self) -> Self:
        listening.append(self)
        return self

    def __exit__(self, *raised: Any) -> None:
        if self in listening:
            listening.remove(self)

    def __str__(self) -> str:
        return "\n".join(f"{n} × {ran}" for ran, n in self.calls.most_common()) or "no calls"

    def on_kernel(self) -> int:
        """How many ran on our kernel, at once or through the operator."""
        return sum(n for ran, n in self.calls.items() if ran.way != "torch")

    def elsewhere(self) -> int:
        """How many were torch's own to work out."""
        return sum(n for ran, n in self.calls.items() if ran.way == "torch")


listening: list[Report] = []


def report() -> Report:
    """Count the calls of our functions, of torch's under `use` and of transformers' models, within a `with` block."""
    return Report()


def count(function: str, path: Path) -> None:
    for one in listening:
        with one.lock:
            one.calls[Ran(function, path.way, path.reason)] += 1
