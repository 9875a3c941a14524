"""How time and memory grow with the number of tokens."""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PEAK = Path("/proc/self/clear_refs")  # Linux alone forgets a peak and tells the next one
CODE = """
import sys
import numpy as np
from headwork.engine import attention
from headwork.engine.bench.growth import peak, start_peak

tokens = int(sys.argv[1])
q, k, v, out = (np.ones((1, 8, tokens, 64), np.float32) for _ in range(4))
before = start_peak()
attention(q, k, v, out=out)
print(peak() - before)
"""


@dataclass(frozen=True)
class Growth:
    tokens: int
    seconds: float
    extra_bytes: int | None  # at the peak, beside the arrays that go in and come out, where the system tells


def start_peak() -> int:
    """Forget the peak so far; the memory in use now, in bytes."""
    PEAK.write_text("5")
    return _status("VmRSS")


def peak() -> int:
    return _status("VmHWM")


def _status(key: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))


def extra_memory(tokens: int) -> int | None:
    """Bytes that attention on (1, 8, tokens, 64) needs at its peak, measured in a process of its own."""
    if not PEAK.exists():
        return None
    done = subprocess.run([sys.executable, "-c", CODE, str(tokens)], capture_output=True, text=True, check=True)
    return int(done.stdout)


def grow(largest: int) -> list[Growth]:
    """From 1024 tokens, doubling, one head of width 64."""
    import numpy as np

    from headwork.engine import attention

    found, tokens = [], 1024
    while tokens <= largest:
        q = np.ones((1, 1, tokens, 64), np.float32)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            attention(q, q, q)
            times.append(time.perf_counter() - start)
        found.append(Growth(tokens, min(times), extra_memory(tokens)))
        tokens *= 2
    return found
