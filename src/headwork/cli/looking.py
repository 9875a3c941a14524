"""The command `look`: the heads of a real model on a real text."""

from pathlib import Path
from typing import Annotated

import typer

from headwork.cli.options import check_place
from headwork.errors import HeadworkError


def look(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A transformers model: a folder, or a name on the hub.")
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What it reads.")],
    output: Annotated[Path | None, typer.Option(help="The page, an .html file that needs nothing else.")] = None,
    layer: Annotated[list[int] | None, typer.Option(min=0, help="Only this layer, from 0; may be given again.")] = None,
    head: Annotated[int | None, typer.Option(min=0, help="For --sheet: which head of the layer, from 0.")] = None,
    sheet: Annotated[Path | None, typer.Option(help="Also a .toml sheet of one head, to work by hand.")] = None,
) -> None:
    """Show the heads of a transformers model on a text. The page has maps, strongest pairs, scores taken apart."""
    check_place(output, ".html")
    check_place(sheet, ".toml")
    if output is None and sheet is None:
        raise HeadworkError("nothing to write: give --output heads.html, or --sheet head.toml with --layer and --head")
    if (sheet is None) != (head is None) or (sheet is not None and len(layer or ()) != 1):
        raise HeadworkError("a sheet is of one head: give --sheet, --layer and --head together")
    from headwork.cli.terminal import patience
    from headwork.looking.capture import capture

    with patience("the model reads the text"):
        captured = capture(model, text)
    if sheet is not None:
        from headwork.looking.by_hand import small_sheet
        from headwork.sheets.save import sheet_toml

        assert layer is not None
        assert head is not None
        sheet.write_text(sheet_toml(small_sheet(captured, layer[0], head)), "utf-8")
        typer.echo(f"{sheet}: one head, small enough for pencil; headwork solve {sheet}")
    if output is not None:
        from headwork.looking.page import heads_page

        shown = captured.only(layer)
        output.write_text(heads_page(shown), "utf-8")
        typer.echo(f"{output}: {len(shown.tokens)} tokens, {len(shown.layers)} layer(s)")
