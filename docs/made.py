"""Pages and pictures that the build makes from the program itself: nothing on the site is pasted."""

import doctest
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from functools import cache
from inspect import cleandoc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import griffe

README = Path(__file__).parent.parent / "README.md"


def on_files(files: Any, config: Any) -> Any:
    """MkDocs asks for every file of the site; these are written on the way."""
    from mkdocs.structure.files import File

    made = {
        "reference/command-line.md": "\n".join(command_line()),
        "reference/mistakes.md": "\n".join(catalogue()),
        **{f"pictures/three-heads-{theme}.svg": figure(theme) for theme in ("light", "dark")},
        "pictures/solved.svg": screen("solve", "two.toml"),
        "pictures/marked.svg": screen("mark", "two.toml", "ada.toml"),
        **{f"pictures/ratios-{theme}.svg": over_the_runs(theme) for theme in ("light", "dark")},
        "pictures/why.svg": screen("moments", "--mean", "0", "--variance", "1"),
    }
    for name, content in [*made.items(), *bench().items()]:
        files.append(File.generated(config, name, content=content))
    return files


@cache  # `mkdocs serve` asks again with every change of a page
def bench() -> dict[str, bytes]:
    """The live bench as `headwork site` writes it, in a folder of its own; without Node.js a warning instead."""
    from headwork.errors import HeadworkError
    from headwork.web.site import site

    try:
        return {f"live/{name}": content for name, content in site().items()}
    except HeadworkError as error:
        logging.getLogger("mkdocs.hooks.made").warning("the site lacks the live bench: %s", error)
        return {}


def command_line() -> Iterator[str]:
    """Every command's own help."""
    from typer.main import get_group
    from typer.testing import CliRunner

    from headwork.cli import app

    yield "# The command line\n\nEvery command says this of itself with `--help`.\n"
    for name in ("", *get_group(app).commands):
        asked = [*([name] if name else []), "--help"]
        said = CliRunner().invoke(app, asked, prog_name="headwork", env={"COLUMNS": "100"}).output
        yield f"## {f'headwork {name}'.strip()}\n\n```text\n{said.strip()}\n```\n"


def catalogue() -> Iterator[str]:
    """Every mistake with its tag, its advice and the example that is run as a test."""
    from headwork.mistakes.catalogue import SUBJECTS
    from headwork.mistakes.rewriting import ENTERED
    from headwork.mistakes.slips import ADVICE

    yield (
        "# The catalogue of mistakes\n\nA mistake is a rewrite of the graph with a stable tag. The same list marks a "
        "student's matrix and inspects a function: [how a mistake is named](../explanation/naming-a-mistake.md).\n\n"
        "Every mistake here has the line that a student reads, what is computed with it, and an example that is run as "
        "a test. `compare`, from `headwork.mistakes.example`, works a step of a small problem twice: right, and "
        "mistaken.\n"
    )
    for subject in SUBJECTS:
        heading, _, about = (subject.__doc__ or "").strip().partition(": ")
        yield f"## {heading}\n\n{about.capitalize()}\n"
        examples = {test.name.rpartition(".")[2]: test for test in doctest.DocTestFinder().find(subject)}
        for tag, mistake in ENTERED[subject.__name__].items():
            yield f"### {tag}\n\n{mistake.advice}\n\n{example(examples[tag.replace('-', '_')])}\n"
    yield "## Slips of the pen\n"
    yield from (f"- **{tag}**: {advice}" for tag, advice in ADVICE.items())


def example(test: doctest.DocTest) -> str:
    """What a mistake's docstring says, with what its module calls by a short name written out before the prompts."""
    text = cleandoc(test.docstring or "")
    names = [name for name in dict.fromkeys(re.findall(r"\b_[A-Z]+\b", text)) if name in test.globs]
    told = "".join(f">>> {name} = {test.globs[name]}\n" for name in names)
    return fenced(text.replace(">>> ", f"{told}>>> ", 1))


def fenced(docstring: str) -> str:
    """A docstring in Markdown: the prompts of Python and what they print, up to an empty line, are a block of code."""
    pieces = re.split(r"((?:^>>> .*\n?(?:^.+\n?)*)+)", cleandoc(docstring), flags=re.M)
    return "".join(
        f"```pycon\n{piece.strip()}\n```\n" if piece.startswith(">>> ") else defined(piece) for piece in pieces
    )


ROW = r"(?P<names>[a-z_]\w*(?:, \w+)*) {2,}(?P<told>\S.*(?:\n {4,}\S.*)*)"


def defined(prose: str) -> str:
    """What a docstring tells of each argument, in two columns, as a list of definitions: a paragraph has no columns."""

    def listed(row: re.Match[str]) -> str:
        names = ", ".join(f"`{name}`" for name in row["names"].split(", "))
        return f"\n{names}\n:   {' '.join(row['told'].split())}\n"

    return re.sub(rf"^{ROW}$", listed, prose, flags=re.M)


class Prompts(griffe.Extension):
    """The prompts in docstrings are blocks of code on the page about the API, and columns are lists."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def figure(theme: str) -> str:
    import headwork
    from headwork.render.diagram import draw
    from headwork.render.svg import svg

    return svg(draw(headwork.diagram(heads=3), wide=True), theme)


def over_the_runs(theme: str) -> str:
    """The full runs of the bench that were kept, as `python bench/history.py plot` draws them."""
    command = [sys.executable, "bench/history.py", "plot"]
    with TemporaryDirectory() as folder:
        subprocess.run([*command, f"{folder}/ratios.svg", theme], cwd=README.parent, check=True)
        return Path(folder, "ratios.svg").read_text("utf-8")


def screen(*arguments: str) -> str:
    """A terminal as it looks after a command, drawn by Rich; README's files are there for the command to read."""
    import io

    from rich.console import Console
    from rich.text import Text
    from typer.testing import CliRunner

    from headwork.cli import app

    with TemporaryDirectory() as folder, chdir(folder):
        for name, content in re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', README.read_text("utf-8"), re.M | re.S):
            Path(name).write_text(content, "utf-8")
        printed = CliRunner().invoke(app, list(arguments)).output.rstrip()
    command = f"$ headwork {' '.join(arguments)}"
    width = max(map(len, [command, *printed.splitlines()])) + 1
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(Text(command, style="bold"))
    console.print(Text(f"{printed}\n"))  # Rich would cut the feet off the last line
    # As large as the code on a page, not as wide as the page: two thirds of Rich's own size.
    drawn = console.export_svg(title="headwork")
    return re.sub(r'viewBox="0 0 ([\d.]+)', lambda box: f'width="{float(box[1]) * 2 / 3:.0f}" {box[0]}', drawn, count=1)
