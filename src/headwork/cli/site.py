"""The commands `open` and `site`: the bench on this machine, and as files for any other."""

from pathlib import Path
from typing import Annotated

import typer

from headwork.cli.terminal import patience
from headwork.errors import HeadworkError

FIRST = "two-heads"


def open(
    sheet: Annotated[str, typer.Argument(metavar="SHEET", help="A built-in name or a path.")] = FIRST,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser, or only say where the page is.")] = True,
) -> None:
    """Open the bench: a sheet whose numbers are alive. It runs in the browser, on this machine alone."""
    import webbrowser

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


def site(
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="The folder to write, for any host.")] = None,
    single: Annotated[
        Path | None, typer.Option(metavar="FILE", help="One .html file that works from a disk, without a network.")
    ] = None,
    sheet: Annotated[
        list[str] | None, typer.Option(metavar="SHEET", help="A sheet of your own, too; may be given again.")
    ] = None,
    pyodide: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Pyodide's npm package, unpacked; without it npm fetches it.")
    ] = None,
) -> None:
    """Write the bench as a site that needs no server of its own. The same Python runs in the reader's browser."""
    if folder is None and single is None:
        raise HeadworkError("name a folder for the site, or --single FILE for one file with everything in it")
    own = sheet or []
    with patience("making the site") as wait:
        if folder is not None:
            from headwork.web.site import write_site

            files = write_site(folder, own, pyodide, wait.now)
            size = sum(map(len, files.values()))
    if folder is not None:
        typer.echo(f"{folder}: {len(files)} files, {size / 1e6:.1f} MB")
    if single is not None:
        from headwork.web.site import write_single

        with patience("making the file") as wait:
            written = write_single(single, own, pyodide, wait.now)
        typer.echo(f"{single}: {written / 1e6:.1f} MB")
