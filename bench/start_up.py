"""Start-up and solving times, each the best of several fresh processes: what a person at a terminal waits for.

    python bench/start_up.py

Figures to reach: `headwork solve two-heads` 0.8 s, `headwork sheets` 0.25 s, a sheet with 8 heads, 16 tokens and
d_model 32 in 5 s, and `import headwork` within 0.1 s beyond NumPy's own import.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5


def seconds(*command: str) -> float:
    """The best wall-clock time of several runs, after one to warm the disk."""
    best = float("inf")
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        best = min(best, time.perf_counter() - start)
    return best


def large_sheet() -> str:
    """8 heads, 16 tokens, d_model 32: random one-decimal entries."""
    draw = random.Random(0)

    def matrix(rows: int, columns: int) -> str:
        return str([[draw.randint(-9, 9) / 10 for _ in range(columns)] for _ in range(rows)])

    each = {letter: f"[{', '.join(matrix(32, 4) for _ in range(8))}]" for letter in "QKV"}
    given = "\n".join(f"W_{letter} = {matrices}" for letter, matrices in each.items())
    return (
        f'formula = "multi_head"\nheads = 8\n[given]\nX = {matrix(16, 32)}\n{given}\nW_O = {matrix(32, 32)}\n'
        '[[part]]\nfind = ["output"]\n'
    )


def main() -> None:
    headwork = str(Path(sys.executable).with_name("headwork"))
    with tempfile.TemporaryDirectory() as folder:
        sheet = Path(folder) / "large.toml"
        sheet.write_text(large_sheet(), "utf-8")
        cases = {
            "headwork solve two-heads": (0.8, seconds(headwork, "solve", "two-heads")),
            "headwork sheets": (0.25, seconds(headwork, "sheets")),
            "8 heads, 16 tokens, d_model 32": (5.0, seconds(headwork, "solve", str(sheet))),
        }
    numpy = seconds(sys.executable, "-c", "import numpy")
    both = seconds(sys.executable, "-c", "import numpy, headwork")
    cases["import headwork beyond NumPy"] = (0.1, both - numpy)
    for name, (limit, found) in cases.items():
        print(f"{name:<32} {found:6.3f} s   (at most {limit} s){'' if found <= limit else '   MISSED'}")


if __name__ == "__main__":
    main()
