"""A newcomer's path in one test: install, solve, mark, export, attention, torch, by the words of the documentation.

test_docs.py runs every block inside this process. Here the package is installed into an empty folder, and what the
install page and the tutorials say is typed, page after page, in one folder, each command a process of its own.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import headwork
from tests.engine.test_native_source import needs
from tests.render.conftest import require
from tests.test_docs import ELSEWHERE, ROOT, fences

PATH = (
    "docs/index.md",
    "docs/tutorials/two-tokens.md",
    "docs/tutorials/first-sheet.md",
    "docs/tutorials/your-model.md",
)
MUST_MEET = (
    "pip install .",
    "headwork solve",
    "headwork mark",
    "headwork export",
    "headwork.attention(",
    "headwork.torch",
)


def run(command: list[str], folder: Path, **env: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **env})
    assert done.returncode in (0, 1), f"{command}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def installed(folder: Path) -> Path:
    """`pip install .` as the page says, but beside the packages that are here, and with the kernel compiled before."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(folder), "-C", "wheel.cmake=false"]
    said = run([sys.executable, "-m", "pip", "install", *options, str(ROOT)], folder.parent)
    assert (folder / "bin" / "headwork").is_file(), said
    for suffix in EXTENSION_SUFFIXES:
        for kernel in (Path(headwork.__file__).parent / "engine").glob(f"_native{suffix}"):
            (folder / "headwork" / "engine" / kernel.name).write_bytes(kernel.read_bytes())
    return folder


def commands(page: str, desk: Path) -> Iterator[tuple[list[str], str | None]]:
    """What is typed, and what should be seen where the page says so; files are written on the way."""
    session = ""
    for fence in fences(page):
        if fence.title is not None:
            (desk / fence.title).write_text(fence.body, "utf-8")
        elif fence.language == "console":
            for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", fence.body, re.M):
                yield command.split(), expected
        elif fence.language == "sh":
            lines = [line.partition("  #")[0] for line in fence.body.splitlines()]
            yield from ((line.split(), None) for line in lines if line.strip() and not line.startswith(ELSEWHERE))
        elif fence.language == "pycon":
            session += fence.body
        elif fence.language == "python":
            (desk / "code.py").write_text(fence.body, "utf-8")
            yield ["python", "code.py"], ""
    if session:
        (desk / "session.txt").write_text(session, "utf-8")
        yield ["python", "-m", "doctest", "-o", "ELLIPSIS", "session.txt"], ""


def unquoted(words: list[str]) -> list[str]:
    return [word.strip("\"'") for word in words]


def test_the_newcomers_path(tmp_path: Path) -> None:
    needs("scikit_build_core")
    require("torch")
    site = installed(tmp_path / "site")
    desk = tmp_path / "desk"
    desk.mkdir()
    programs = {"headwork": [sys.executable, str(site / "bin" / "headwork")], "python": [sys.executable]}
    for page in PATH:
        for words, expected in commands(page, desk):
            program, *arguments = unquoted(words)
            seen = run([*programs[program], *arguments], desk, PYTHONPATH=str(site), COLUMNS="100")
            if expected is not None:
                pattern = ".*".join(re.escape(piece) for piece in re.split(r"^…\n", expected, flags=re.M))
                assert re.fullmatch(pattern, seen, re.S), f"{' '.join(words)} prints\n{seen}"
    told = "\n".join((ROOT / page).read_text("utf-8") for page in PATH)
    assert not [words for words in MUST_MEET if words not in told]
    where = run([sys.executable, "-c", "import headwork; print(headwork.__file__)"], desk, PYTHONPATH=str(site))
    assert where.startswith(str(site)), "it was the installed package that was walked"
