"""The native sources: laid out by clang-format, and a build that fails leaves a package that works."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.render.conftest import require

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


def test_what_only_linux_has_stands_behind_one_guard() -> None:
    """So that a build can be asked to do without all of it: -DHEADWORK_NO_LINUX=ON."""
    assert [path.name for path in SOURCES if "__linux__" in path.read_text("utf-8")] == ["system.h"]


def test_lists_in_braces_bring_their_header() -> None:
    """libstdc++ brings it along with others; libc++, which macOS has and wheels are built with, does not."""
    brings = re.compile(r"#include <(?:initializer_list|utility|vector)>")
    loops = {path: text for path in SOURCES if re.search(r"for \([^;]*: \{", text := path.read_text("utf-8"))}
    assert loops
    assert not [path.name for path, text in loops.items() if not brings.search(text)]


def failing(name: str, folder: Path) -> dict[str, str]:
    """An environment in which one native step cannot be done."""
    broken = folder / "broken"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    return {
        "no compiler": {"CXX": str(folder / "no-such-compiler")},
        "a broken compiler": {"CXX": str(broken)},
        "a compiler that lacks something": {"CXXFLAGS": "-Dhw_type=int"},
        "a kernel that does not compile": {"CXXFLAGS": "-Din_parallel=3"},
        "no cmake": {"PATH": str(folder)},
        "no ninja": {"CMAKE_GENERATOR": "Ninja", "CMAKE_ARGS": f"-DCMAKE_MAKE_PROGRAM={folder}/no-such-ninja"},
    }[name]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no compiler", "no C++ compiler that works was found"),
        ("a broken compiler", "no C++ compiler that works was found"),
        ("a compiler that lacks something", "cannot compile the kernel (error: "),
        ("a kernel that does not compile", "the kernel does not compile ("),
        ("no cmake", "the kernel could not be built (Could not find CMake"),
        ("no ninja", "no-such-ninja"),
    ],
)
def test_a_build_that_fails_leaves_a_package_in_numpy(name: str, reason: str, tmp_path: Path) -> None:
    """And says so, with the reason, in one line."""
    needs("scikit_build_core")
    needs("nanobind")
    command = [sys.executable, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "-w", str(tmp_path)]
    done = subprocess.run(
        [*command, str(ROOT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **failing(name, tmp_path)},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    (said,) = {line.strip() for line in done.stdout.splitlines() if "attention will run in NumPy" in line}
    assert said.startswith("headwork: ")
    assert reason in said
    (wheel,) = tmp_path.glob("*.whl")
    names = ZipFile(wheel).namelist()
    assert "headwork/engine/attention.py" in names
    assert not [name for name in names if name.endswith(".so")]
    record = ZipFile(wheel).read("headwork/engine/no_kernel.txt").decode()
    assert f"headwork: {record.strip()}; attention will run in NumPy" == said, "doctor says it again"


def test_a_build_where_only_the_wheels_folder_can_be_written(tmp_path: Path) -> None:
    """Sources and folders for temporary files are read-only, as in a locked-down container."""
    needs("scikit_build_core")
    require("bwrap")
    options = ["--no-cache-dir", "--no-build-isolation", "--no-deps", "--wheel-dir", str(tmp_path)]
    pip = [sys.executable, "-m", "pip", "wheel", *options, str(ROOT)]  # root's pip fails at a cache it cannot write
    place = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(tmp_path), str(tmp_path)]
    done = subprocess.run(
        ["bwrap", *place, "--chdir", str(tmp_path), "--", *pip],
        capture_output=True,
        text=True,
        env={**os.environ, **failing("no compiler", tmp_path)},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (wheel,) = tmp_path.glob("*.whl")
    assert "headwork/engine/no_kernel.txt" in ZipFile(wheel).namelist()
