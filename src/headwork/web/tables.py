"""A sheet as the page holds it: the table of its file, every matrix under a name of its own as rows of texts.

What a reader types stays as it was typed; what cannot be read is said cell by cell.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from headwork.errors import HeadworkError
from headwork.notation import is_vector
from headwork.numbers.parse import NumberError, parse_number
from headwork.readings.exact import Entry, Hidden, Matrix
from headwork.sheets.fields import role_and_head
from headwork.sheets.load import read_sheet
from headwork.sheets.sheet import Key, Problem, Sheet
from headwork.sheets.written import part_table, problem_table, real_text

Table = dict[str, Any]
HIDES = "-inf"
MOST_ENTRIES = 20_000  # of all that is given: more are no sheet


class CellErrors(HeadworkError):
    """Entries that are no numbers: each with its place and the reason."""

    def __init__(self, cells: list[dict[str, Any]]) -> None:
        super().__init__(cells[0]["message"])
        self.cells = cells


def table_of(sheet: Sheet) -> Table:
    """The table of a sheet, as JSON can carry it."""
    return {
        "title": sheet.title,
        "summary": sheet.summary,
        "problem": [_problem_table(problem) for problem in sheet.problems],
    }


def _problem_table(problem: Problem) -> Table:
    first = problem.notation.first_index
    table: Table = {"title": problem.title, **problem_table(problem), "given": _given_table(problem.given, first)}
    table["marking"] = {k: v.isoformat() if isinstance(v, date) else v for k, v in problem.marking.items()}
    table["part"] = [{**part_table(part), "given": _given_table(part.given, first)} for part in problem.parts]
    return table


def _given_table(given: Mapping[Key, Matrix], first: int) -> Table:
    return {
        given_name(key, first): [[_entry_text(entry) for entry in row] for row in matrix]
        for key, matrix in given.items()
    }


def given_name(key: Key, first: int) -> str:
    """W_Q_1: what a matrix is called in a table."""
    role, head = key
    return role if head is None else f"{role}_{head + first}"


def _entry_text(entry: Entry) -> str:
    return HIDES if isinstance(entry, Hidden) else real_text(entry)  # type: ignore[arg-type]  # a sheet gives reals


def sheet_of(table: Any) -> Sheet:
    """The sheet that a table stands for; every key is checked as those of a file are."""
    problems = _problems(table)
    _check_cells(problems)
    plain = {"title": str(table.get("title", "Sheet")), "summary": str(table.get("summary", ""))}
    return read_sheet({**plain, "problem": [_as_written(problem) for problem in problems]}, "sheet")


def _problems(table: Any) -> list[Table]:
    problems = table.get("problem") if isinstance(table, dict) else None
    if not isinstance(problems, list) or not problems or not all(isinstance(p, dict) for p in problems):
        raise HeadworkError("this is no sheet; open one of the list, or a .toml file")
    return problems


def matrices(problems: list[Table]) -> Iterator[tuple[dict[str, Any], list[list[Any]]]]:
    """Every matrix that is given, with its place: the problem, the part if it is one's, the name."""
    for number, problem in enumerate(problems):
        parts = problem.get("part", [])
        given = [(None, problem.get("given", {}))]
        given += [(p.get("label"), p.get("given", {})) for p in parts if isinstance(p, dict)]
        for part, named in given:
            for name, rows in named.items() if isinstance(named, dict) else ():
                if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
                    raise HeadworkError(f"{str(name)[:40]} must be rows of numbers")
                yield {"problem": number, "part": part, "name": name}, rows


def frame(table: Any) -> list[Any]:
    """A table without its numbers: what must be the same for an edit to be one."""
    problems = _problems(table)
    shapes = [[place, [len(row) for row in rows]] for place, rows in matrices(problems)]
    rest = [{key: value for key, value in problem.items() if key not in ("given", "part")} for problem in problems]
    parts = [[{k: v for k, v in part.items() if k != "given"} for part in problem["part"]] for problem in problems]
    return [table.get("title"), table.get("summary"), shapes, rest, parts]


def renumbered(sheet: Sheet, table: Table, was: Table) -> Sheet:
    """The sheet of a table that has the frame of another, whose sheet this is: only matrices that differ are read."""
    pairs = list(zip(matrices(table["problem"]), matrices(was["problem"]), strict=True))
    differing = [(place, rows) for (place, rows), (_, before) in pairs if rows != before]
    _check_numbers(differing)
    problems = list(sheet.problems)
    for place, rows in differing:
        number, label, name = place["problem"], place["part"], place["name"]
        problem = problems[number]
        key = role_and_head(name, problem.notation.first_index)
        numbers = tuple(tuple(parse_number(written(text)) for text in row) for row in rows)
        if label is None:
            problems[number] = replace(problem, given={**problem.given, key: numbers})
        else:
            parts = [replace(p, given={**p.given, key: numbers}) if p.label == label else p for p in problem.parts]
            problems[number] = replace(problem, parts=tuple(parts))
    return replace(sheet, problems=tuple(problems))


def _check_cells(problems: list[Table]) -> None:
    found = list(matrices(problems))
    if sum(len(row) for _, rows in found for row in rows) > MOST_ENTRIES:
        raise HeadworkError(f"more than {MOST_ENTRIES:,} numbers are given; a sheet is worked by hand: give fewer")
    _check_numbers(found)


def _check_numbers(found: Iterable[tuple[dict[str, Any], list[list[Any]]]]) -> None:
    wrong = []
    for place, rows in found:
        for i, row in enumerate(rows):
            for j, text in enumerate(row):
                try:
                    parse_number(written(text))
                except NumberError as error:
                    wrong.append({"where": {**place, "row": i, "column": j}, "message": str(error)})
    if wrong:
        raise CellErrors(wrong)


def written(text: Any) -> str:
    """What was typed, with a decimal comma read as a point; what stays empty is no number."""
    plain = str(text).strip()
    whole, comma, rest = plain.partition(",")
    return f"{whole}.{rest}" if comma and whole.lstrip("+-−").isdecimal() and rest.isdecimal() else plain


def _as_written(problem: Table) -> Table:
    """The table as a file has it: biases as flat rows, days as days."""
    first = problem.get("first_index", 1)
    made = {**problem, "given": _as_given(problem.get("given", {}), first)}
    parts = problem.get("part")
    if isinstance(parts, list):
        made["part"] = [
            {**part, "given": _as_given(part.get("given", {}), first)} if isinstance(part, dict) else part
            for part in parts
        ]
    marking = problem.get("marking", {})
    if isinstance(marking, dict) and isinstance(marking.get("working_from"), str):
        made["marking"] = {**marking, "working_from": _day(marking["working_from"])}
    return made


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise HeadworkError(f"working_from = {text[:40]} is no day; write 2026-12-01") from None


def _as_given(given: Any, first: int) -> Any:
    if not isinstance(given, dict):
        return given
    made = {}
    for name, rows in given.items():
        texts = [[written(text) for text in row] for row in rows]
        role, _ = role_and_head(str(name), first if first in (0, 1) else 1)
        made[name] = texts[0] if is_vector(role) and len(texts) == 1 else texts
    return made
