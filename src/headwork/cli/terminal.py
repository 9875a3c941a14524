"""What goes to the terminal: pages in colour, a file instead, and a sign of life while it takes long."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from headwork.render import save

if TYPE_CHECKING:
    from headwork.render.text import Passage

T = TypeVar("T")


def show_lines(*lines: Any) -> None:
    from headwork.render.text import lines_pieces

    show(lines_pieces(lines, width()))


_STYLES = {"title": "bold", "problem": "bold", "part": "bold", "note": "dim"}


def show(page: Iterable[Passage]) -> None:
    """A page on the terminal, in colour where the terminal has it."""
    if not sys.stdout.isatty():
        typer.echo("\n".join(line for piece in page for line in piece.lines))
        return
    from rich.console import Console
    from rich.text import Text

    from headwork.render.colours import TERMINAL

    console = Console(highlight=False, soft_wrap=True)
    for piece in page:
        style = TERMINAL.get(piece.colour) or _STYLES.get(piece.kind, "")
        console.print(Text("\n".join(piece.lines), style=style))


def width() -> int:
    from shutil import get_terminal_size

    from headwork.render.text import WIDTH

    return min(max(get_terminal_size().columns, 60), 160) if sys.stdout.isatty() else WIDTH


def write(pieces: Iterable[str | bytes], output: Path | None) -> None:
    """Into the file, or to the terminal where there is none."""
    if output is None:
        for piece in pieces:
            typer.echo(piece, nl=False)
        return
    save.write(output, pieces)


class patience:
    """A spinner on the terminal for work that takes longer than a moment."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.status: Any = None

    def __enter__(self) -> patience:
        if sys.stderr.isatty():
            from threading import Timer

            self.timer = Timer(1.0, self._start)
            self.timer.daemon = True
            self.timer.start()
        return self

    def now(self, what: str) -> None:
        """What the work has come to."""
        self.what = what
        if self.status is not None:
            self.status.update(f"{what} …")

    def _start(self) -> None:
        from rich.console import Console

        self.status = Console(stderr=True).status(f"{self.what} …")
        self.status.start()

    def __exit__(self, *_: object) -> None:
        if sys.stderr.isatty():
            self.timer.cancel()
            if self.status is not None:
                self.status.stop()


def with_progress(items: Iterable[T], what: str, number: int, many: int) -> Iterator[T]:
    """A bar on standard error, where that is a terminal and there are many."""
    if number < many or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, what, total=number, console=Console(stderr=True), transient=True)
