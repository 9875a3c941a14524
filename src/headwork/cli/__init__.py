"""The command line. Commands gather what was asked; readings do the work; one place reports what went wrong."""

import gc
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from io import TextIOWrapper
from typing import Annotated, NoReturn

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
    _in_every_letter()
    try:
        asked_for(sys.argv[1:])()
    except HeadworkError as error:
        _refuse(str(error))
    except BrokenPipeError:
        sys.stderr.close()  # the reader, such as `head`, has seen enough
        sys.exit(0)
    except OSError as error:  # a name too long, a folder that nobody may enter, a disk that is full
        _refuse(f"{error.filename or 'standard output'}: {error.strerror}")
    finally:
        gc.freeze()


def _refuse(why: str) -> NoReturn:
    typer.secho(f"headwork: {why}", fg="red", err=True)
    sys.exit(2)


def _in_every_letter() -> None:
    """Pages hold brackets and roots that few encodings have; and a program may be started with nowhere to write."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # open to the very end
        elif isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8")
