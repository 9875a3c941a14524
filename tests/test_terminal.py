"""The command line where its output goes nowhere, somewhere full, or into an encoding that has no brackets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DOCTOR = [sys.executable, "-m", "headwork", "doctor"]
SOLVE = [sys.executable, "-m", "headwork", "solve"]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "ascii"])
@pytest.mark.parametrize("command", [DOCTOR, [*SOLVE, "two-heads"]], ids=["doctor", "solve"])
def test_a_page_in_a_file_is_utf_8_whatever_the_system_writes_by_itself(command: list[str], encoding: str) -> None:
    """As on Windows: `headwork solve two-heads > page.txt`."""
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}, check=True)
    assert "═════" in done.stdout.decode("utf-8")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*SOLVE, "two-heads"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "headwork: standard output: No space left on device\n")


@pytest.mark.skipif(os.name == "nt", reason="closed as a POSIX shell closes it")
@pytest.mark.parametrize(("sheet", "code"), [("two-heads", 0), ("nowhere", 2)])
def test_nowhere_to_write_is_no_mistake_of_its_own(sheet: str, code: int) -> None:
    """Services are started so."""
    closed = subprocess.run(["sh", "-c", '"$@" >&- 2>&-', "sh", *SOLVE, sheet])
    assert closed.returncode == code


def test_a_name_that_no_system_takes_is_one_line() -> None:
    done = subprocess.run([*SOLVE, "a" * 5000], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("headwork: aaa")
    assert done.stderr.count("\n") == 1
