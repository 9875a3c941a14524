"""What is missing is named with a command that brings it, wherever headwork came from."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from headwork.errors import HeadworkError
from headwork.extras import EXTRAS, how_to_install, needs

PYTHON = sys.executable


def came_from(monkeypatch: pytest.MonkeyPatch, url: str | None) -> None:
    """As pip records it: nothing for a package from an index."""
    record = None if url is None else json.dumps({"url": url})
    found = SimpleNamespace(read_text={"direct_url.json": record}.get)
    monkeypatch.setattr("importlib.metadata.distribution", {"headwork": found}.__getitem__)


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with Python and pip in it, first on PATH: what an activated environment is."""
    (tmp_path / "bin").mkdir()
    for name in ("python", "pip"):
        (tmp_path / "bin" / name).touch(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


@pytest.mark.parametrize("other", [False, True])
def test_where_pip_is_another_pythons_ours_is_named(
    monkeypatch: pytest.MonkeyPatch, programs: Path, other: bool
) -> None:
    """Who calls .venv/bin/headwork by its path, as `make run` tells, would install for the system's Python."""
    (programs / "pip").rename(programs.parent / "pip")
    monkeypatch.setenv("PATH", str(programs.parent) if other else "")
    came_from(monkeypatch, None)
    ours = f"{programs}/python -m pip install"
    assert how_to_install("typst") == f"in a checkout of headwork, {ours} '.[pages]'; elsewhere, {ours} typst"


def test_from_a_wheel_its_file_brings_the_extras(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel = tmp_path / "my wheels" / "headwork-0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    came_from(monkeypatch, wheel.as_uri())
    assert how_to_install("typst", "nbformat", "torch") == f"pip install '{wheel}[pages,torch]'"


@pytest.mark.parametrize("url", [None, "file:///nowhere/headwork-0-py3-none-any.whl", Path.cwd().as_uri()])
def test_without_the_file_the_packages_themselves_are_named(monkeypatch: pytest.MonkeyPatch, url: str | None) -> None:
    came_from(monkeypatch, url)
    told = "in a checkout of headwork, pip install '.[pages]'; elsewhere, pip install typst nbformat"
    assert how_to_install("typst", "nbformat") == told


def test_what_is_missing_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, "no_such_package", ("pages", "nothing"))
    came_from(monkeypatch, None)
    with pytest.raises(HeadworkError, match=r"^this needs no_such_package, which is not installed: in a checkout"):
        needs("no_such_package.part")


@pytest.mark.parametrize(
    "asked", ["import headwork.transformers", "import headwork.looking.capture as c; c.capture('x', 'y')"]
)
def test_what_is_there_and_fails_says_why(asked: str, tmp_path: Path) -> None:
    """A torchvision that was built for another torch: transformers imports it where it finds it."""
    pytest.importorskip("transformers")
    broken = tmp_path / "torchvision"
    record = tmp_path / "torchvision-0.28.0.dist-info" / "METADATA"
    broken.mkdir()
    record.parent.mkdir()
    (broken / "__init__.py").write_text("raise RuntimeError('no such operator: nms')")
    record.write_text("Metadata-Version: 2.1\nName: torchvision\nVersion: 0.28.0\n")
    code = f"""
from headwork.errors import HeadworkError
try:
    {asked}
except HeadworkError as error:
    print(error)
"""
    path = os.pathsep.join((str(tmp_path), *sys.path))
    ran = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    why = "transformers is installed and cannot be imported (RuntimeError: no such operator: nms)."
    assert ran.stdout.strip() == why, ran.stderr
