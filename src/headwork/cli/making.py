"""The command `new`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwork.cli.options import refuse
from headwork.cli.terminal import with_progress
from headwork.errors import HeadworkError

if TYPE_CHECKING:
    from headwork.mistakes.make import Plan
    from headwork.render.blocks import Block
    from headwork.working import Working

MANY = 5  # sheets from which a progress bar is worth its line


def new(
    context: typer.Context,
    output: Annotated[Path, typer.Option(help="The directory to write to; made where there is none.")],
    formula: Annotated[str, typer.Option(help="As in `headwork shapes`.")] = "multi_head",
    tokens: Annotated[int, typer.Option(help="2 to 8.")] = 3,
    heads: Annotated[int, typer.Option(help="1 to 8.")] = 2,
    d_model: Annotated[int, typer.Option("--d-model", help="A multiple of heads; d_k is the quotient.")] = 6,
    mask: Annotated[str, typer.Option(help="none or causal.")] = "none",
    biases: Annotated[bool, typer.Option("--biases", help="With biases.")] = False,
    places: Annotated[int, typer.Option(min=1, max=8, help="Decimals asked for.")] = 2,
    seed: Annotated[int, typer.Option(help="The same seed gives the same sheets.")] = 7,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="How many sheets.")] = 1,
    roster: Annotated[
        Path | None, typer.Option(help="A class list, CSV with a column id: a sheet, a paper for each, and one key.")
    ] = None,
    points: Annotated[str, typer.Option(help='With --roster, what parts are worth: "a=3, b=1/2"; 1 each.')] = "",
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also where the sizes leave mistakes that cannot be told apart.")
    ] = False,
) -> None:
    """Draw new sheets: different numbers, the same difficulty. Every mistake is told from every other."""
    from headwork.formulas import formula_named
    from headwork.mistakes.make import Plan, alike_on

    if not formula_named(formula).several:
        refuse(context, ["heads"], f"{formula} has one head")
    plan = Plan(formula, tokens, heads, d_model, mask, biases, places)
    try:
        output.mkdir(parents=True, exist_ok=True)
        if roster is None:
            refuse(context, ["points"], "it is written on the papers of a class; add --roster")
            made = _sheets(plan, seed, count, anyway, output)
        else:
            refuse(context, ["count"], "the class list says how many; choose one of the two")
            made = _class(plan, seed, roster, points, anyway, output)
    except OSError as error:
        raise HeadworkError(f"cannot write to {output}: {error.strerror}; choose another --output") from None
    typer.echo(f"{made} in {output}")
    if anyway:
        for alike in alike_on(plan):
            typer.echo(f"cannot be told apart: {alike.partition(';')[0]}", err=True)


def _sheets(plan: Plan, seed: int, count: int, anyway: bool, output: Path) -> str:
    from headwork.mistakes.make import new_sheet
    from headwork.sheets.save import sheet_toml

    width = len(str(count))
    for number in with_progress(range(1, count + 1), "drawing", count, MANY):
        sheet = new_sheet(plan, seed, number, anyway=anyway)
        (output / f"sheet-{number:0{width}d}.toml").write_text(sheet_toml(sheet), "utf-8")
    return f"{count} sheet{'s' if count > 1 else ''}"


def _class(plan: Plan, seed: int, roster: Path, points: str, anyway: bool, output: Path) -> str:
    """A sheet and a paper for everybody, named by their id, one key, and the list."""
    from headwork.marking.roster import ROSTER, own_sheets, read_points, read_roster, roster_csv
    from headwork.render.papers import blank
    from headwork.render.save import rendered, streamed
    from headwork.sheets.save import sheet_toml
    from headwork.solving import solve

    students = read_roster(roster)
    (output / "papers").mkdir(exist_ok=True)

    def worked() -> Iterator[Working]:
        sheets = own_sheets(students, plan, seed, read_points(points), anyway)
        for student, sheet in with_progress(sheets, "drawing", len(students), MANY):
            (output / f"{student.id}.toml").write_text(sheet_toml(sheet), "utf-8")
            working = solve(sheet)
            (output / "papers" / f"{student.id}.html").write_text(rendered(blank(working), ".html"), "utf-8")
            yield working

    with (output / "key.html").open("wb") as file:
        pieces = streamed(".html", _key(worked()))
        file.writelines(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
    (output / ROSTER).write_text(roster_csv(students), "utf-8")
    return f"{len(students)} sheets and papers, and their key.html,"


def _key(workings: Iterable[Working]) -> Iterator[Block]:
    """Everybody's answers under one another."""
    from headwork.render.blocks import Title
    from headwork.render.page import page
    from headwork.render.papers import answers_only

    yield Title("Key")
    for working in workings:
        yield from page(answers_only(working))
