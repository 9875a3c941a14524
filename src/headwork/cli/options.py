"""Options that several commands have, and the refusal of those that cannot be honoured."""

import re
from collections.abc import Callable, Collection, Mapping
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from headwork.errors import HeadworkError

SheetName = Annotated[str, typer.Argument(metavar="SHEET", help="A built-in name (see `headwork sheets`) or a path.")]
MaybeSheet = Annotated[
    str | None, typer.Argument(metavar="SHEET", help="A built-in name or a path; without it the sizes below count.")
]
Formula = Annotated[
    str, typer.Option(help="dot_product, scaled_dot_product, single_head, multi_head, multi_head_blocks")
]
PlotFile = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Plot it into this file: .svg, .png or .pdf.")
]
SizeOption = Annotated[str | None, typer.Option(metavar="SIZE", help="A number, or a symbol such as n.")]
SIZES: Mapping[str, tuple[Any, bool | None]] = {  # every size of a configuration, as an option and its default
    **dict.fromkeys(("batch", "tokens", "keys", "d_model", "heads", "d_k", "d_v"), (SizeOption, None)),
    "kv_heads": (Annotated[int | None, typer.Option(help="Key and value heads, when fewer than heads.")], None),
    "mask": (Annotated[bool, typer.Option("--mask", help="With a mask.")], False),
    "biases": (Annotated[bool, typer.Option("--biases", help="With biases.")], False),
}
Command = TypeVar("Command", bound=Callable[..., None])


def with_sizes(command: Command) -> Command:
    """A command that takes **sizes, with an option for each of them."""
    own = [p for p in signature(command).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    sizes = [Parameter(n, Parameter.KEYWORD_ONLY, default=d, annotation=o) for n, (o, d) in SIZES.items()]
    command.__signature__ = Signature([*own, *sizes])  # type: ignore[attr-defined]  # typer reads it
    return command


def sizes_given(sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were given, numbers as numbers; what the others are is the configuration's to say."""
    given = {name: size for name, size in sizes.items() if size is not None and size is not False}
    return {name: int(size) if re.fullmatch(r"[0-9]{1,10}", str(size)) else size for name, size in given.items()}


def given(context: typer.Context) -> dict[str, Any]:
    """What stands on the command line itself, defaults left out."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name: context.params[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def refuse(context: typer.Context, names: Collection[str], why: str) -> None:
    """An option that would be ignored is an error, not a surprise."""
    for name in given(context):
        if name in names:
            raise HeadworkError(f"--{name.replace('_', '-')} cannot be honoured here: {why}")


def refuse_beside_sheet(context: typer.Context, *allowed: str) -> None:
    """A sheet has sizes and a formula of its own."""
    others = context.params.keys() - {"sheet", *allowed}
    refuse(
        context, others, f"'{context.params['sheet']}' is a sheet and has its own; leave the sheet or the option out"
    )


def check_place(path: Path | None, *endings: str) -> None:
    """Whether a file has one of these endings and a folder to be written to, before anything takes long."""
    if path is not None and (path.suffix.lower() not in endings or not path.parent.is_dir()):
        raise HeadworkError(f"{path} cannot be written; name a {' or '.join(endings)} file in a folder that is there")


def check_format(format: str, output: Path | None, endings: Mapping[str, str]) -> None:
    """Whether there is such a format, and the file is not named as another: that deceives whoever opens it."""
    if format not in endings:
        raise HeadworkError(f"there is no format '{format}'; choose from {', '.join(endings)}")
    if output is not None and output.suffix.lower() not in ("", endings[format]):
        raise HeadworkError(f"{output} is no name for {format}, which ends in {endings[format]}; change one of the two")
