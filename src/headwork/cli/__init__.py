"""The command line. Commands gather what was asked; readings do the work; one place reports what went wrong."""

import gc
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import typer

from headwork.cli import code, doctor, looking, making, marking, pages, readings, site
from headwork.errors import HeadworkError

COMMANDS = (
    *(pages.sheets, pages.solve, readings.draw, readings.shapes, readings.count, readings.prove, readings.moments),
    *(site.open, site.site, making.new, marking.mark, marking.export, code.inspect, looking.look, code.bench),
    doctor.doctor,
)


def _say_version(asked: bool) -> None:
    if asked:
        import headwork

        typer.echo(f"headwork {headwork.__version__}")
        raise typer.Exit


def _before_any_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    pass


def _made_of(commands: Iterable[Callable[..., None]]) -> typer.Typer:
    made = typer.Typer(
        help="Multi-head attention, worked: by hand, in the open, at full speed.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_before_any_command)
    for command in commands:
        made.command()(command)
    return made


app = _made_of(COMMANDS)


def asked_for(words: Sequence[str]) -> typer.Typer:
    """The command line with the one command that is asked for, if it is one: typer makes ready all that it knows,
    which takes longer than to work a sheet."""
    chosen = [command for command in COMMANDS if [command.__name__] == list(words[:1])]
    return _made_of(chosen) if chosen else app


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    gc.freeze()  # modules stay to the end: no collection need walk over them, nor the last one, when Python ends
    try:
        asked_for(sys.argv[1:])()
    except HeadworkError as error:
        typer.secho(f"headwork: {error}", fg="red", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader, such as `head`, has seen enough
        sys.exit(0)
    finally:
        gc.freeze()
