"""The suite again on other code paths, NumPy and the narrowest vectors, without the files these do not touch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwork.engine import backend

HERE = Path(__file__).parent
NAMES = ("every_cpu", "native_source", "bench", "layer_from_checkpoint", "minilm")
UNTOUCHED = tuple(f"test_{name}.py" for name in NAMES)


@pytest.mark.parametrize("cpu", ["numpy", "baseline"])
def test_the_suite_passes_on(cpu: str) -> None:
    if not backend().native or "HEADWORK_CPU" in os.environ:
        return  # this is already a run on a chosen path
    options = ["-q", "-x", "-p", "no:cacheprovider", *(f"--ignore={HERE / name}" for name in UNTOUCHED)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(HERE)],
        capture_output=True,
        text=True,
        env={**os.environ, "HEADWORK_CPU": cpu},
        cwd=HERE.parent.parent,
    )
    assert done.returncode == 0, done.stdout[-3000:]
