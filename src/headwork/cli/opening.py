"""The command `open`."""

from typing import Annotated

import typer

DEFAULT = "two-heads"


def open(
    sheet: Annotated[str, typer.Argument(metavar="[SHEET]", help="A built-in name or a path.")] = DEFAULT,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser, or only say where the page is.")] = True,
) -> None:
    """Open the bench: a sheet whose numbers are alive, in the browser, on this machine alone."""
    import webbrowser
    from pathlib import Path

    from headwork.sheets.load import load
    from headwork.web.serve import Bench
    from headwork.web.tables import table_of

    with Bench(table_of(load(sheet)), Path(sheet).stem, port) as bench:
        typer.echo(f"{bench.url} (Ctrl+C ends it)")
        if browser:
            webbrowser.open(bench.url)
        try:
            bench.serve_forever()
        except KeyboardInterrupt:
            typer.echo("closed")
