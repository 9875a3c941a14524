"""What ran: calls counted by function, way and reason, while somebody listens."""

from collections import Counter
from threading import Lock, local
from typing import Any, NamedTuple, Self

from torch.compiler import is_compiling

from headwork.torch.path import Path

COMPILED = Path("operator", "in compiled code")


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
    """Count the calls of our functions, of torch's under `use` and of transformers' models, within a `with` block.

    What was compiled is counted when it runs, as `headwork::attention`: who called it, and why that way, is gone then.
    """
    return Report()


class Within(local):
    """Whether this thread is in a call that was counted where it was made."""

    counted = False


within = Within()


def count(function: str, path: Path) -> None:
    """While it is being compiled, nothing is called: compiled code is counted by the operator, when it runs."""
    if is_compiling():
        return
    for one in listening:
        with one.lock:
            one.calls[Ran(function, path.way, path.reason)] += 1


def dispatched(operator: Any, *given: Any) -> Any:
    """The operator, for a call that has been counted."""
    if is_compiling():
        return operator(*given)
    within.counted = True
    try:
        return operator(*given)
    finally:
        within.counted = False


def count_compiled(operator: str) -> None:
    """By the operator that runs: what compiled or traced code calls, nobody has counted."""
    if listening and not within.counted:
        count(operator, COMPILED)
