"""The block of `context_parallel` that a program is in, if any."""

from typing import Any, NamedTuple


class Shared(NamedTuple):
    """What holds within the block: the ranks, how rows lie on them, the way."""

    group: Any
    split: Any
    method: Any


within: list[Shared] = []
