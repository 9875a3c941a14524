"""The commands `mark` and `export`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwork.cli.options import check_format, given, refuse
from headwork.cli.terminal import with_progress, write
from headwork.errors import HeadworkError
from headwork.marking.graders import GRADERS
from headwork.render.save import PAGES as ENDINGS
from headwork.render.save import streamed

if TYPE_CHECKING:
    from headwork.marking.answers import Answers
    from headwork.marking.class_marker import ClassOf
    from headwork.marking.marks import Marks
    from headwork.sheets.sheet import Sheet

PAGES = {"text" if ending == ".txt" else ending[1:]: ending for ending in ENDINGS}
FORMATS = {**PAGES, "json": ".json", "csv": ".csv", "gradescope": ".json", "class": ".html"}
MANY = 20  # students from which a progress bar is worth its line


def mark(
    context: typer.Context,
    sheet: Annotated[str, typer.Argument(metavar="SHEET", help="A built-in name, a path, or a class's folder.")],
    answers: Annotated[
        list[Path] | None,
        typer.Argument(metavar="ANSWERS", help=".toml, .json, .ipynb or .csv files, folders or zips, hand-in links."),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help=f"{', '.join(PAGES)}, json, gradescope; csv and class for a class.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write to this file, whose ending chooses the form where no format does.")
    ] = None,
    pages: Annotated[
        Path | None, typer.Option(help="A folder for a page to hand back to each, the class's page and a table.")
    ] = None,
    gradebook: Annotated[
        Path | None, typer.Option(help="A CSV from Canvas, Moodle or Gradescope, to fill with points.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Its column; the sheet's title unless given.")] = None,
    overrides: Annotated[
        Path | None, typer.Option(help="Points set by hand: a CSV with student, part, score, reason.")
    ] = None,
    since: Annotated[
        Path | None, typer.Option(help="An earlier --format csv: who changes, instead of the marks.")
    ] = None,
    template: Annotated[bool, typer.Option("--template", help="The empty file of answers instead.")] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=256, help="Processes that mark; all cores for many students.")
    ] = None,
) -> None:
    """Mark answers and name the mistakes. What follows from an earlier mistake is right from there on."""
    _refuse(context)
    chosen = _chosen_page(format, output) if since or pages else "text" if template else _chosen(format, output)
    if template:
        from headwork.marking.class_marker import ClassMarker, load_class
        from headwork.marking.template import template_toml

        family = load_class(sheet)  # all ask for the same
        write([template_toml(replace(ClassMarker(family).first.sheet, title=family.title))], output)
        return
    if not answers:
        raise HeadworkError("whose answers? Give the files, or --template for an empty one")
    from headwork.marking.class_marker import ClassMarker, load_class
    from headwork.marking.pool import WORTH_IT, cores, marked

    sheets = load_class(sheet, overrides)
    marker = ClassMarker(sheets)
    first = marker.first.sheet
    number = sum(map(_how_many, answers))
    students = with_progress(_students(answers, first), "marking", number, MANY)
    jobs = jobs or (cores() if number >= WORTH_IT else 1)
    marks = marked(marker, students, jobs, with_working=chosen in PAGES)
    if since is not None:
        from headwork.marking.changes import changes_blocks

        write(streamed(PAGES[chosen], changes_blocks(sheets.title, since, marks)), output)
        return
    if gradebook is not None:
        from headwork.marking.gradebook import fill

        write(fill(gradebook, column or sheets.title, marks), output)
        return
    if pages is None:
        write(_report(chosen, sheets, first.problems[0].places, marks, output), output)
        return
    from headwork.marking.returned import give_back

    places = first.problems[0].places
    number = give_back(sheets.title, marks, pages, PAGES[chosen], places, sheets.students or ())
    typer.echo(f"{number} page{'s' if number != 1 else ''}, class{PAGES[chosen]} and marks.csv in {pages}")


def _chosen(format: str | None, output: Path | None) -> str:
    """The format asked for, or the one that the file's ending names."""
    ending = "" if output is None else output.suffix.lower()
    if format is None:
        named = {"": "text"} | {end: name for name, end in reversed(FORMATS.items()) if name != "gradescope"}
        if ending not in named:
            endings = " ".join(filter(None, named))
            raise HeadworkError(f"{output}: marks are not written as '{ending}'; choose from {endings}")
        return named[ending]
    check_format(format, None if format == "class" and ending in PAGES.values() else output, FORMATS)
    return format


def _refuse(context: typer.Context) -> None:
    """What would be ignored, option by option."""
    asked = given(context)
    if "template" in asked:
        others = context.params.keys() - {"sheet", "output", "template"}
        refuse(context, others, "--template writes an empty file of answers, and marks nothing")
    if "since" in asked:
        refuse(context, ["pages", "gradebook"], "--since says who changes; leave it out")
    if "pages" in asked:
        refuse(context, ["output"], "--pages writes a folder and --output a file; choose one of the two")
    if "gradebook" in asked:
        refuse(context, ["format", "pages"], "a gradebook is filled as it is; leave it out")
    else:
        refuse(context, ["column"], "it names the column of a gradebook; add --gradebook")


def _chosen_page(format: str | None, output: Path | None) -> str:
    """The format of a page: to hand back, or of who changes."""
    if output is not None:
        format = _chosen(format, output)
    if format is not None and format not in PAGES:
        raise HeadworkError(f"a page to hand back is not written as '{format}'; choose from {', '.join(PAGES)}")
    return format or "html"


def _students(paths: Iterable[Path], sheet: Sheet) -> Iterator[Answers]:
    from headwork.marking.answers import read_answers

    for path in paths:
        yield from read_answers(path, sheet)


def _report(
    format: str, sheets: ClassOf, places: int, marks: Iterator[Marks], output: Path | None
) -> Iterator[str | bytes]:
    if format == "json":
        from headwork.marking.report_json import class_json

        return class_json(marks)
    if format == "gradescope":
        return _gradescope(marks)
    if format == "csv":
        from headwork.marking.spreadsheet import class_csv

        return class_csv(marks)
    from headwork.marking.report import class_blocks, students_blocks

    if format == "class":
        ending = output.suffix.lower() if output is not None and output.suffix else FORMATS["class"]
        return streamed(ending, class_blocks(sheets.title, marks, sheets.students or ()))
    return streamed(PAGES[format], students_blocks(sheets.title, marks, places))


def _gradescope(marks: Iterator[Marks]) -> Iterator[str]:
    from time import perf_counter

    from headwork.marking.graders.gradescope import gradescope_json

    start = perf_counter()
    first = next(marks, None)
    if first is None or next(marks, None) is not None:
        raise HeadworkError("gradescope takes one student's answers at a time; give one file")
    yield gradescope_json(first, perf_counter() - start)


def _how_many(path: Path) -> int:
    """About how many students a file or a folder holds."""
    if path.is_dir():
        return sum(1 for file in path.rglob("*") if file.is_file())
    if path.suffix.lower() != ".csv" or not path.is_file():
        return 1
    with path.open("rb") as file:
        return max(0, sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b"")) - 1)


def export(
    sheet: Annotated[str, typer.Argument(metavar="SHEET", help="A built-in name, a path, or a folder of sheets.")],
    to: Annotated[str, typer.Option(help=f"{', '.join(GRADERS)}.")],
    output: Annotated[Path | None, typer.Option(help="The package; named after the sheet unless given.")] = None,
) -> None:
    """Make the package that a grader or a platform takes. It marks as `headwork mark` does."""
    from headwork.marking.graders import export as make

    typer.echo(f"{make(sheet, to, output)}: what to do with it is in docs/how-to/graders.md, under {to}")
