"""The commands `inspect` and `bench`: about code rather than sheets."""

from pathlib import Path
from typing import Annotated

import typer

from headwork.cli.options import check_place
from headwork.extras import needs


def inspect(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="package.module:function or file.py:function.")],
    seconds: Annotated[float, typer.Option(min=1, help="It is stopped after so long.")] = 60.0,
    megabytes: Annotated[int, typer.Option(min=64, help="So much memory it may take.")] = 4096,
) -> None:
    """Say what is wrong with your attention. A function or a torch module is compared with the formula."""
    from headwork.inspecting.inspect import inspect as look

    found = look(target, seconds=seconds, megabytes=megabytes)
    typer.echo(str(found))
    if not found.agrees:
        raise typer.Exit(1)


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the longest cases.")] = False,
    json: Annotated[Path | None, typer.Option(help="Keep the figures, for comparison across commits.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw ratios and growth, as .svg, .png or .pdf.")] = None,
) -> None:
    """Time the engine beside torch, ONNX Runtime, JAX and NumPy."""
    from headwork.engine.bench import run

    check_place(json, ".json")
    check_place(plot, ".svg", ".png", ".pdf")
    if plot is not None:
        needs("matplotlib")  # now, and not after minutes
    run(quick=quick, json_path=json, plot=plot)
