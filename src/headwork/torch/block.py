"""The block of `context_parallel` that a thread is in, if any."""

import threading
from typing import Any, NamedTuple


class Shared(NamedTuple):
    """What holds within the block: the ranks, how rows lie on them, the way."""

    group: Any
    split: Any
    method: Any


class Blocks(threading.local):
    """Those that this thread has entered, the innermost last: torch's modes, too, are a thread's own."""

    def __init__(self) -> None:
        self.entered: list[Shared] = []


blocks = Blocks()


def block() -> Shared | None:
    return blocks.entered[-1] if blocks.entered else None
