"""The command line. Commands gather what was asked; readings do the work; one place reports what went wrong."""

import sys
from typing import Annotated

import typer

from headwork.cli import code, doctor, looking, making, marking, opening, pages, readings, site
from headwork.errors import HeadworkError

app = typer.Typer(
    help="Multi-head attention, worked: by hand, in the open, at full speed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    *(pages.sheets, pages.solve, readings.draw, readings.shapes, readings.count, readings.prove, readings.moments),
    *(opening.open, site.site, making.new, marking.mark, marking.export, code.inspect, looking.look, code.bench),
    doctor.doctor,
)
for command in COMMANDS:
    app.command()(command)


def _say_version(asked: bool) -> None:
    if asked:
        import headwork

        typer.echo(f"headwork {headwork.__version__}")
        raise typer.Exit


@app.callback()
def _before_any_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    try:
        app()
    except HeadworkError as error:
        typer.secho(f"headwork: {error}", fg="red", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader, such as `head`, has seen enough
        sys.exit(0)
