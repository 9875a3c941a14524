"""The command `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwork.marking.graders import GRADERS


def export(
    sheet: Annotated[str, typer.Argument(metavar="SHEET", help="A built-in name, a path, or a folder of sheets.")],
    to: Annotated[str, typer.Option(help=f"{', '.join(GRADERS)}.")],
    output: Annotated[Path | None, typer.Option(help="The package; named after the sheet unless given.")] = None,
) -> None:
    """Make the package that a grader or a learning platform takes: it marks as `headwork mark` does."""
    from headwork.marking.graders import export as make

    typer.echo(f"{make(sheet, to, output)}: what to do with it is in docs/graders.md, under {to}")
