"""The commands `sheets` and `solve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwork.cli.options import SheetName, check_format, given, refuse
from headwork.cli.terminal import patience, show, width, write
from headwork.errors import HeadworkError

if TYPE_CHECKING:
    from headwork.working import Working

PAPERS = ("blank", "fade", "answers_only")
FORMATS = {"text": ".txt", "json": ".json"}


def sheets() -> None:
    """List the built-in sheets."""
    from headwork.sheets.shelf import summaries

    found = summaries()
    widest = max(len(name) for name, _ in found)
    for name, summary in found:
        typer.echo(f"{name:<{widest}}  {summary}")


def solve(
    context: typer.Context,
    sheet: SheetName,
    part: Annotated[str | None, typer.Option(help="Only the parts with this label.")] = None,
    places: Annotated[int | None, typer.Option(min=0, max=50, help="Decimals for numbers that are not exact.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Closed forms instead of decimals.")] = False,
    entry: Annotated[str | None, typer.Option(help='The arithmetic of one entry, such as "scores_1[2,1]".')] = None,
    unfold: Annotated[
        bool, typer.Option("--unfold", help="Every softmax in steps: exponentials, sums, quotients.")
    ] = False,
    safe: Annotated[bool, typer.Option("--safe", help="With --unfold: less the row's maximum first.")] = False,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
    output: Annotated[
        Path | None, typer.Option(help="A file whose ending chooses the form: .md .tex .pdf .html .ipynb .svg .png …")
    ] = None,
    blank: Annotated[bool, typer.Option("--blank", help="A question paper: nothing worked, room to write.")] = False,
    fade: Annotated[int | None, typer.Option(min=0, metavar="N", help="The first N steps worked, then blanks.")] = None,
    answers_only: Annotated[bool, typer.Option("--answers-only", help="The key: results without the way.")] = False,
) -> None:
    """Work a sheet, step by step."""
    from headwork.formulas import formula_named
    from headwork.solving import solve as work

    _refuse(context, format, output)
    softmax = ("safe-steps" if safe else "steps") if unfold else None
    with patience("working the sheet"):
        worked = work(sheet, part=part, places=places, entry=entry, softmax=softmax)
        if all(formula_named(problem.problem.formula).blocks for problem in worked.problems):
            refuse(context, ["unfold"], "keys that are taken block by block have their softmax in steps already")
        working = _adapted(worked, blank, fade, answers_only)
        if output is not None and format == "text":
            from headwork.render.save import save

            save(working, output, exact=exact)
            return
        if format == "json":
            from headwork.render.json import working_json

            write([working_json(working)], output)
            return
        from headwork.render.text import working_pieces

        page = list(working_pieces(working, width(), exact=exact))
    show(page)


def _refuse(context: typer.Context, format: str, output: Path | None) -> None:
    """What would be ignored, option by option."""
    asked = given(context)
    check_format(format, output if "format" in asked else None, FORMATS)
    ending = "" if output is None else output.suffix.lower()
    if format == "json" or ending == ".json":
        refuse(context, PAPERS, "JSON holds every step, to be read by programs; choose another format")
        refuse(context, ["places"], "JSON holds 12 figures of every number, and its closed form; leave it out")
    if ending in (".svg", ".png"):
        refuse(context, [*PAPERS, "exact", "places"], f"{output} is a picture of the steps, without numbers")
    if len(asked.keys() & set(PAPERS)) > 1:
        raise HeadworkError("--blank, --fade and --answers-only are three different pages; choose one")
    if "entry" in asked:
        refuse(context, ["blank"], "of one entry nothing is left when nothing is worked; leave --entry out")
    if "unfold" not in asked:
        refuse(context, ["safe"], "it says how a softmax is unfolded; add --unfold")
    if "exact" in asked:
        refuse(context, ["places"], "--exact rounds nothing; choose one of the two")


def _adapted(working: Working, blank: bool, fade: int | None, answers_only: bool) -> Working:
    """The working as it is, or as one of the three things to hand out."""
    if not blank and fade is None and not answers_only:
        return working
    from headwork.render import papers

    if fade is not None:
        return papers.fade(working, fade)
    return papers.blank(working) if blank else papers.answers_only(working)
