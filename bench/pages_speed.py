"""How long a page takes from a cold start, as a person waits for it: `python bench/pages_speed.py`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMITS = {".html": 1.0, ".pdf": 1.5, ".md": None, ".tex": None, ".ipynb": None, ".svg": None}
SHEET = "thinking-machine"
RUNS = 5
PROGRAM = "from headwork.cli import main; main()"


def seconds(path: Path) -> float:
    """One run of the command, a new interpreter each time; the file must be there afterwards."""
    path.unlink(missing_ok=True)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", PROGRAM, "solve", SHEET, "--output", str(path)], check=True)
    took = time.perf_counter() - start
    assert path.stat().st_size > 1000
    return took


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for ending, limit in LIMITS.items():
            path = Path(folder) / f"page{ending}"
            runs = sorted(seconds(path) for _ in range(RUNS))
            size = path.stat().st_size / 1000
            goal = f"   must stay under {limit} s" if limit else ""
            print(f"{ending:7} median {runs[RUNS // 2]:.2f} s, best {runs[0]:.2f} s, {size:.0f} kB{goal}")


if __name__ == "__main__":
    main()
