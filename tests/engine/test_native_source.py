"""The native sources: laid out by clang-format, and a build that fails leaves a package that works."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES = sorted(path for path in (ROOT / "native").rglob("*") if path.suffix in (".h", ".cpp"))


def needs(module: str) -> None:
    if find_spec(module) is None and "HEADWORK_REQUIRE_ALL" not in os.environ:
        pytest.skip(f"{module} is not installed")


def test_every_source_is_laid_out_by_clang_format() -> None:
    needs("clang_format")
    assert len(SOURCES) > 20
    command = [str(Path(sys.executable).with_name("clang-format")), "--dry-run", "--Werror", *map(str, SOURCES)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]


def test_every_source_is_in_the_guide() -> None:
    """native/README.md says what each file holds."""
    guide = (ROOT / "native" / "README.md").read_text("utf-8")
    assert not [path.name for path in SOURCES if f"`{path.name}`" not in guide]


@pytest.mark.parametrize(
    "flags",
    [
        "-Dhw_attention=int",  # the compiler works, the kernel does not compile
        "-include no_such_file.h",  # the compiler itself fails
    ],
)
def test_a_build_that_fails_leaves_a_package_in_numpy(flags: str, tmp_path: Path) -> None:
    needs("scikit_build_core")
    needs("nanobind")
    command = [sys.executable, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "-w", str(tmp_path)]
    done = subprocess.run(
        [*command, str(ROOT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "CXXFLAGS": flags},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    (said,) = {line.strip() for line in done.stdout.splitlines() if "attention will run in NumPy" in line}
    assert said.startswith("headwork: ")
    (wheel,) = tmp_path.glob("*.whl")
    names = ZipFile(wheel).namelist()
    assert "headwork/engine/attention.py" in names
    assert not [name for name in names if name.endswith(".so")]
