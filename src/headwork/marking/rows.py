"""Answers in rows: a CSV of ours, Moodle's responses to a cloze question, Canvas's student analysis of a quiz.

Ours has a column `student` and others called part.name: a.Q_1 for a whole matrix ("1 2; 3 4"), a.Q_1[2,1] for an entry.
Canvas puts a number before the name and has columns of its own. Moodle has one cell, in the site's language, with
all that was typed: "part 1: 2; part 2: 0.881"; which box is which the sheet tells.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from headwork.errors import HeadworkError
from headwork.marking.one_file import Answers
from headwork.marking.spreadsheet import csv_reader
from headwork.sheets.questions import questions
from headwork.sheets.ready import Ready
from headwork.sheets.sheet import NUMBERS, Sheet

LONGEST_CELL = 20_000  # characters of one cell
MOST_COLUMNS = 10_000
Column = tuple[str, str]  # part and name
Row = Callable[[list[str], int], Answers]

STUDENT = "student"  # whose row it is, in a CSV of ours
_OURS = re.compile(r"[\w.]+\.[^\W\d]\w*(?:\[[\d,\s]+\])?")  # a column of it: 2.a.Q_1, a.Q_1[2,1]
_CANVAS = re.compile(r"\d+: (\S+)\.([^\s.]+)")
_MOODLE = re.compile(r"(?:^|;\s)[^\d;:]{1,40}?(\d{1,5})\s?:\s?")
_SHEET = re.compile(r".{0,200}, sheet (\S{1,100})$", re.MULTILINE)  # as our cloze questions begin
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")
_COMMA = re.compile(r"([+-]?\d*),(\d+)")


def read_rows(path: Path, sheet: Sheet | None) -> Iterator[Answers]:
    """Every student in a CSV, one at a time."""
    with csv_reader(path) as rows:
        header = [name.strip() for name in next(rows, [])]
        read = _reader(header, path, sheet)
        found = False
        for row in rows:
            if any(len(cell) > LONGEST_CELL for cell in row):
                raise HeadworkError(f"{path}: line {rows.line_num}: a cell has at most {LONGEST_CELL:,} characters")
            if any(cell.strip() for cell in row):
                found = True
                yield read(row, rows.line_num)
        if not found:
            raise HeadworkError(f"{path} has a first line and no student below it; give what the class handed in")


def _reader(header: list[str], path: Path, sheet: Sheet | None) -> Row:
    """Whose CSV it is, told by its first line."""
    if len(header) > MOST_COLUMNS:
        raise HeadworkError(f"{path} has {len(header):,} columns; at most {MOST_COLUMNS:,}")
    who = next((i for i, name in enumerate(header) if name.casefold() == STUDENT), None)
    if who is not None:
        return _by_columns(who, _columns(header, path, who), len(header))
    from_canvas = {i: (found[1], found[2]) for i, name in enumerate(header) if (found := _CANVAS.match(name))}
    if from_canvas:
        return _by_columns(0, from_canvas, len(header))
    if sheet is None or len(header) < 3 or any(map(_OURS.fullmatch, header)):
        raise HeadworkError(f"{path} needs a first line with 'student' and columns such as a.Q_1")
    return _by_order(_boxes(sheet), path)


def _columns(header: list[str], path: Path, who: int) -> dict[int, Column]:
    """For every column but the student's its part and name."""
    columns = {}
    for i, name in enumerate(header):
        # The part is what stands before the last full stop, and may hold one itself: 2.a.Q_1
        part, _, own = name.rpartition(".")
        if i != who:
            if not (part and own):
                raise HeadworkError(f"{path}: column '{name[:40]}' must be written part.name, such as a.Q_1")
            columns[i] = (part, own)
    return columns


def _by_columns(name: int, columns: dict[int, Column], width: int) -> Row:
    def read(row: list[str], line: int) -> Answers:
        student = row[name].strip()[:100] if name < len(row) else ""
        if len(row) != width:
            message = f"line {line} has {len(row)} cells, but the first line has {width}"
            return Answers(student or f"line {line}", unreadable=message)
        answers = ((place, row[i]) for i, place in columns.items())
        return Answers(student or f"line {line}", _parts(answers))

    return read


def _boxes(sheet: Sheet) -> list[Column]:
    """The entries of every answer in numbers, as a form has them one after the other."""
    found = []
    for number, problem in enumerate(sheet.problems, 1):
        prefix = f"{number}." if len(sheet.problems) > 1 else ""
        ready = Ready(problem)
        for part in problem.parts:
            asked = questions(part, ready) if part.kind in NUMBERS else ()
            found += [(prefix + part.label, name) for question in asked for row in question.entries for name in row]
    return found


def _by_order(boxes: list[Column], path: Path) -> Row:
    numbers = [str(i + 1) for i in range(len(boxes))]

    def read(row: list[str], line: int) -> Answers:
        address = next((cell.strip() for cell in row if _EMAIL.fullmatch(cell.strip())), "")
        student = (address or " ".join(row[:2]).strip())[:100] or f"line {line}"
        for cell in row:
            pieces = _MOODLE.split(cell)
            if pieces[1::2] == numbers:
                answers = _parts(zip(boxes, map(_decimal, pieces[2::2]), strict=True))
                return Answers(student, answers, sheet=_sheet(row))
        if any(_MOODLE.split(cell)[1::2][:2] == numbers[:2] for cell in row):
            return Answers(
                student, unreadable=f"line {line} of {path.name} answers another sheet: not {len(boxes)} boxes"
            )
        return Answers(student)

    return read


def _sheet(row: list[str]) -> str:
    """The question's text, where it was downloaded too, says which sheet was drawn for this student."""
    return next((found[1] for cell in row if (found := _SHEET.match(cell.strip()))), "")


def _decimal(text: str) -> str:
    """Sites have decimal commas; in a box of its own one is unmistakable."""
    found = _COMMA.fullmatch(text.strip())
    return f"{found[1]}.{found[2]}" if found else text


def _parts(answers: Any) -> dict[str, dict[str, Any]]:
    parts: dict[str, dict[str, Any]] = {}
    for (part, name), cell in answers:
        if cell.strip():
            parts.setdefault(sys.intern(part), {})[name] = cell
    return parts
