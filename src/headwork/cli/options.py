"""Options that several commands have, and the refusal of those that cannot be honoured."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from headwork.errors import HeadworkError

SheetName = Annotated[str, typer.Argument(metavar="SHEET", help="A built-in name (see `headwork sheets`) or a path.")]
MaybeSheet = Annotated[
    str | None, typer.Argument(metavar="[SHEET]", help="A built-in name or a path; without it the sizes below count.")
]
Formula = Annotated[
    str, typer.Option(help="dot_product, scaled_dot_product, single_head, multi_head, multi_head_blocks")
]
SizeOption = Annotated[str | None, typer.Option(metavar="SIZE", help="A number, or a symbol such as n.")]
KeyHeads = Annotated[int | None, typer.Option(help="Key and value heads, when fewer than heads.")]
WithMask = Annotated[bool, typer.Option("--mask", help="With a mask.")]
WithBiases = Annotated[bool, typer.Option("--biases", help="With biases.")]
PlotFile = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Plot it into this file: .svg, .png or .pdf.")
]


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


def check_format(format: str, output: Path | None, endings: Mapping[str, str]) -> None:
    """Whether there is such a format, and the file is not named as another: that deceives whoever opens it."""
    if format not in endings:
        raise HeadworkError(f"there is no format '{format}'; choose from {', '.join(endings)}")
    if output is not None and output.suffix.lower() not in ("", endings[format]):
        raise HeadworkError(f"{output} is no name for {format}, which ends in {endings[format]}; change one of the two")
