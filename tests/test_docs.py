"""Every command and every piece of code in the documentation is run, and what it shows is what it says.

    ```toml title="two.toml"    a file, written where the page's commands run
    ```console                  `$ headwork …` or `$ python …`, and the output; a line … stands for any lines
    ```pycon                    Python's prompt, as doctest has it
    ```python                   code, run; with a title it is written to a file instead
    ```sh                       commands that must succeed; nothing looks at what they print
    ```toml                     without a title: a whole sheet, which is solved, or parts to put behind the one before

HEADWORK_UPDATE_DOCS=1 writes the output of every console block anew: read the diff.
"""

import doctest
import glob
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group
from typer.testing import CliRunner

import headwork
from headwork.cli import COMMANDS, app
from headwork.sheets.load import parse_sheet
from tests.render.conftest import require
from tests.web.built import build

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(
    r"^(?P<fence>```+)(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<body>.*?)^(?P=fence)$", re.M | re.S
)
# Set-up, which CI itself goes through, and what happens on somebody else's machine.
ELSEWHERE = (
    "make ",
    "pip ",
    ". ",
    "git ",
    "cd ",
    "otter ",
    "nbgrader ",
    "torchrun ",
    "#",
    "unzip ",
    "native/",
    "python bench/",
    "headwork open",  # which serves until it is ended; tests/web has it
)


@dataclass
class Fence:
    """A block of a page: where it stands, what it is and what is in it."""

    language: str
    title: str | None
    body: str


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def fences(page: str) -> Iterator[Fence]:
    for found in _FENCE.finditer(text_of(page)):
        yield Fence(found["language"], found["title"], found["body"])


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a width that does not depend on the terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs(page: str, desk: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    names: dict[str, Any] = {}
    if "headwork site" in (ROOT / page).read_text("utf-8"):
        build(tmp_path_factory)  # skips where its tools are missing, and no two processes compile the same
    for fence in fences(page):
        if fence.title is not None:
            require(
                *(
                    name
                    for name in ("torch", "transformers")
                    if f"import {name}\n" in fence.body or f"from {name} " in fence.body
                )
            )
            (desk / fence.title).parent.mkdir(exist_ok=True)
            (desk / fence.title).write_text(fence.body, "utf-8")
        elif fence.language in RUN:
            RUN[fence.language](fence, names, page)


def _python(fence: Fence, names: dict[str, Any], page: str) -> None:
    if "torch" in fence.body:
        require("torch")
    exec(compile(fence.body, page, "exec"), names)  # our own text, not a user's


def _pycon(fence: Fence, names: dict[str, Any], page: str) -> None:
    if "torch" in fence.body:
        require("torch")
    test = doctest.DocTestParser().get_doctest(fence.body, names, page, page, 0)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not said, "".join(said)


def _console(fence: Fence, names: dict[str, Any], page: str) -> None:
    body = fence.body
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.M):
        printed = _printed(command)
        if os.environ.get("HEADWORK_UPDATE_DOCS") and "…\n" not in expected:
            body = body.replace(f"$ {command}\n{expected}", f"$ {command}\n{printed}")
        else:
            pattern = ".*".join(re.escape(piece) for piece in re.split(r"^…\n", expected, flags=re.M))
            assert re.fullmatch(pattern, printed, re.S), f"$ {command} prints\n{printed}"
    if body != fence.body:
        text = (ROOT / page).read_text("utf-8")
        (ROOT / page).write_text(text.replace(fence.body, body), "utf-8")


def _sh(fence: Fence, names: dict[str, Any], page: str) -> None:
    for line in fence.body.splitlines():
        if line.strip() and not line.startswith(ELSEWHERE):
            printed = _printed(line.partition("  #")[0])
            assert not printed.startswith("headwork: "), f"{line}: {printed}"


def _toml(fence: Fence, names: dict[str, Any], page: str) -> None:
    whole = fence.body.startswith("title")
    names["sheet"] = fence.body if whole else f"{names['sheet']}\n{fence.body}"
    headwork.solve(parse_sheet(names["sheet"], page))


def _words(command: str) -> Iterator[str]:
    """As a shell gives them to a program: a pattern becomes the files that there are."""
    for word in shlex.split(command):
        yield from sorted(glob.glob(word)) if "*" in word else [word]


def _printed(command: str) -> str:
    """What a command prints; pages hold to `headwork` and `python FILE`, and to commands that succeed or find fault."""
    program, *arguments = _words(command)
    if program == "python":
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert program == "headwork", f"pages show headwork and python, not {program}"
    result = CliRunner().invoke(app, arguments)
    if result.exception and not isinstance(result.exception, SystemExit):
        return f"headwork: {result.exception}\n"
    assert result.exit_code in (0, 1), result.output
    return result.output if result.output.endswith("\n") else f"{result.output}\n"


RUN: dict[str, Callable[[Fence, dict[str, Any], str], None]] = {
    "python": _python,
    "pycon": _pycon,
    "console": _console,
    "sh": _sh,
    "toml": _toml,
}


def test_that_test_can_fail(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWORK_UPDATE_DOCS", raising=False)
    with pytest.raises(AssertionError):
        _console(Fence("console", None, "$ headwork sheets\nnothing at all\n"), {}, "README.md")
    with pytest.raises(AssertionError):
        _pycon(Fence("pycon", None, ">>> 1 + 1\n3\n"), {}, "README.md")


def test_every_language_is_known() -> None:
    """A block that nothing looks at says so by its name: text, or data."""
    assert {fence.language for page in PAGES for fence in fences(page) if fence.title is None} <= {"text", *RUN}


@pytest.mark.parametrize("page", PAGES)
def test_no_block_escapes(page: str) -> None:
    """One that is not closed, stands further in or is HTML would be shown to readers and run by nobody."""
    outside = _FENCE.sub("", text_of(page))
    assert not re.findall(r"^.*(?:```|~~~).*$|\n\n(?: {4}|\t)\S.*$|<(?:pre|code)\b.*$", outside, re.M)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_of_a_page_is_used(page: str) -> None:
    """A block with a title is written and not run: it is no session, and a command after it reads it."""
    blocks = list(fences(page))
    for at, fence in enumerate(blocks):
        if fence.language == "console":
            assert fence.body.startswith("$ "), fence.body
        if fence.title is not None:
            assert fence.language in ("toml", "csv", "python"), fence.title
            typed = [line for block in blocks[at + 1 :] if block.title is None for line in block.body.splitlines()]
            assert any(Path(fence.title).name in line for line in typed), fence.title


def test_what_is_run_elsewhere_is_there() -> None:
    """Nobody runs the set-up and the benches here, but their files and make's targets are known."""
    pages = "\n".join(map(text_of, [*PAGES, "CONTRIBUTING.md", "SECURITY.md"]))
    scripts = set(re.findall(r"(?:python |`)((?:bench|native|wheels)/[\w/]+\.(?:py|sh|md))", pages))
    assert scripts
    assert not [name for name in scripts if not (ROOT / name).is_file()]
    typed = {line for page in [*PAGES, "CONTRIBUTING.md"] for fence in fences(page) for line in fence.body.splitlines()}
    wanted = {line.split()[1] for line in typed if line.startswith("make ")} | set(re.findall(r"`make (\w+)", pages))
    assert wanted <= set(re.findall(r"^(\w+):", text_of("Makefile"), re.M))


TOUR = "docs/tour.md"
# Named within a sentence or a table, where no output stands beside it.
PASSING = sorted({(page, found) for page in PAGES for found in re.findall(r"`(headwork [a-z][^`]*)`", text_of(page))})
# What needs a file, a model or a browser, or would time something; the pages about them run them.
AFAR = ("headwork bench", "headwork inspect", "headwork look", "headwork mark", "headwork open", "headwork site")


@pytest.mark.parametrize(("page", "command"), PASSING)
def test_a_command_named_in_passing_exists(page: str, command: str) -> None:
    name, *words = shlex.split(command)[1:]
    known = {option for parameter in get_group(app).commands[name].params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("command", [said for page, said in PASSING if page == TOUR and not said.startswith(AFAR)])
def test_the_tours_commands_run(command: str, desk: Path) -> None:
    if ".pdf" in command:
        require("typst")
    assert CliRunner().invoke(app, shlex.split(command)[1:]).exit_code == 0


def test_every_command_is_on_the_tour() -> None:
    toured = {command.split()[1] for page, command in PASSING if page == TOUR}
    assert toured == {command.__name__ for command in COMMANDS}
