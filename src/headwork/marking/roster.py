"""A class list, and a sheet of their own for everybody on it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.marking.marks import Student
from headwork.marking.spreadsheet import as_meant, csv_rows, line
from headwork.mistakes.make import Plan, new_sheet
from headwork.sheets.sheet import Sheet

ROSTER = "roster.csv"  # in the folder of a class
MOST = 100_000
COLUMNS = ("id", "student")  # what the column of the names of sheets may be called
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


def read_roster(path: Path) -> tuple[Student, ...]:
    """The students of a CSV with a column `id`, and `name` where there is one."""
    found: dict[str, Student] = {}
    with csv_rows(path) as rows:
        by_name = {(name or "").strip().casefold(): name for name in rows.fieldnames or ()}
        column = next((by_name[name] for name in COLUMNS if name in by_name), None)
        if column is None:
            raise HeadworkError(f"{path} needs a first line with a column 'id', and 'name' if there are names")
        for row in rows:
            if not any(isinstance(cell, str) and cell.strip() for cell in row.values()):
                continue  # spreadsheets leave empty lines at the end
            name = (row.get(by_name.get("name", "")) or "").strip()
            student = Student((row[column] or "").strip(), as_meant(name)[:100])
            where = f"{path}: line {rows.line_num}: '{student.id[:64]}'"
            if not _SAFE.fullmatch(student.id) or student.id.casefold() == Path(ROSTER).stem:
                raise HeadworkError(f"{where} cannot name a sheet; an id has the letters a to z, digits and . _ @ -")
            if student.id.casefold() in found:
                raise HeadworkError(f"{where} stands on the list twice")
            found[student.id.casefold()] = student
            if len(found) > MOST:
                raise HeadworkError(f"{path} has more than {MOST:,} students")
    if not found:
        raise HeadworkError(f"{path} has no students; write one on every line")
    return tuple(found.values())


def roster_csv(students: tuple[Student, ...]) -> str:
    """The list as it lies in the folder of a class, so that marking knows who is who."""
    return "".join([line(["id", "name"]), *(line([student.id, student.name]) for student in students)])


def own_sheets(
    students: tuple[Student, ...], plan: Plan, seed: int, points: Mapping[str, Fraction], anyway: bool
) -> Iterator[tuple[Student, Sheet]]:
    """Everybody's sheet, drawn by their id: the same list, plan and seed give the same sheets, in any order."""
    for student in students:
        sheet = new_sheet(plan, seed, student.id, anyway=anyway)
        yield student, _for(student, sheet, points)


def _for(student: Student, sheet: Sheet, points: Mapping[str, Fraction]) -> Sheet:
    """Who it is for and what each part is worth stand on the paper."""
    (problem,) = sheet.problems
    if stray := [label for label in points if label not in {part.label for part in problem.parts}]:
        labels = ", ".join(part.label for part in problem.parts)
        raise HeadworkError(f"--points names part '{stray[0][:40]}'; there is {labels}")
    parts = tuple(replace(part, points=points.get(part.label, Fraction(1))) for part in problem.parts)
    title = f"{sheet.title}: {student.name}" if student.name else sheet.title
    return replace(sheet, title=title, problems=(replace(problem, title=title, parts=parts),))


def read_points(text: str) -> dict[str, Fraction]:
    """ "a=3, b=1/2" as a table."""
    found: dict[str, Fraction] = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        match = re.fullmatch(r"(\w{1,20})\s*=\s*(\d{1,4}(?:/[1-9]\d{0,3}|\.\d{1,4})?)", item, re.ASCII)
        if match is None:
            raise HeadworkError(f"--points '{item[:40]}' cannot be read; write a=3, b=1/2")
        found[match[1]] = Fraction(match[2])
    return found
