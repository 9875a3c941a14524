"""What `fuzz.py` runs once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """Files, and the command that is run beside them."""

    arguments: list[str]
    files: Mapping[str, bytes] = field(default_factory=dict)
