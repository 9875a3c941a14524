"""Pages and pictures that the build makes from the program itself: nothing on the site is pasted."""

import logging
from collections.abc import Iterator
from functools import cache
from typing import Any


def on_files(files: Any, config: Any) -> Any:
    """MkDocs asks for every file of the site; these are written on the way."""
    from mkdocs.structure.files import File

    made = {
        "reference/command-line.md": "\n".join(command_line()),
        "reference/mistakes.md": "\n".join(catalogue()),
        **{f"pictures/three-heads-{theme}.svg": figure(theme) for theme in ("light", "dark")},
        "pictures/two-heads.svg": screen("solve", "two-heads", "--part", "b"),
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
    from typer.main import get_command
    from typer.testing import CliRunner

    from headwork.cli import app

    yield "# The command line\n\nEvery command says this of itself with `--help`.\n"
    for name in ("", *get_command(app).commands):  # type: ignore[attr-defined]  # a group has them
        said = CliRunner().invoke(app, [*([name] if name else []), "--help"], env={"COLUMNS": "100"}).output
        yield f"## headwork {name}\n\n```text\n{said.strip()}\n```\n"


def catalogue() -> Iterator[str]:
    """Every mistake with its tag, its advice and the example that is run as a test."""
    from headwork.mistakes.catalogue import CATALOGUE
    from headwork.mistakes.slips import ADVICE

    yield (
        "# The catalogue of mistakes\n\nA mistake is a rewrite of the graph with a stable tag. The same list marks a "
        "student's matrix and inspects a function: [how a mistake is named](../explanation/naming-a-mistake.md).\n"
    )
    for tag, mistake in CATALOGUE.items():
        yield f"## {tag}\n\n{mistake.advice}\n"
    yield "## Slips of the pen\n"
    yield from (f"- **{tag}**: {advice}" for tag, advice in ADVICE.items())


def figure(theme: str) -> str:
    import headwork
    from headwork.render.diagram import draw
    from headwork.render.svg import svg

    return svg(draw(headwork.diagram(heads=3), wide=True), theme)


def screen(*arguments: str) -> str:
    """A terminal as it looks after a command, drawn by Rich."""
    import io

    from rich.console import Console
    from rich.text import Text
    from typer.testing import CliRunner

    from headwork.cli import app

    console = Console(record=True, width=104, file=io.StringIO())
    console.print(Text(f"$ headwork {' '.join(arguments)}", style="bold"))
    console.print(Text(CliRunner().invoke(app, list(arguments)).output))
    return console.export_svg(title="headwork")
