"""Answers as they are handed in: TOML, JSON, a filled-in notebook, or a CSV with one student in every row.

    student = "Ada"              # or the file's name
    [a]
    Q_1 = [["1", "2"], ["3", "4"]]
    [b]
    "scores_1[2,1]" = "7/2"

A file is data: it is read by a parser, its numbers keep their text, and nothing in it is ever run. What cannot be
read is reported for that student, and the others are marked.
"""

import csv
import json
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwork.errors import HeadworkError

SUFFIXES = (".toml", ".json", ".csv", ".ipynb")
LARGEST_FILE = 1_000_000  # bytes of one student's answers
LONGEST_CELL = 20_000  # characters of one cell of a CSV
MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class Answers:
    """One student's: part → name → what was written. Parts are "a", or "2.a" on a sheet of several problems."""

    student: str
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unreadable: str = ""


def one_student(source: Answers | Mapping[str, Any] | str | Path) -> Answers:
    """A single student's answers, from a mapping or a file; a file that cannot be read is an error here."""
    if isinstance(source, Answers):
        return source
    if isinstance(source, Mapping):
        return from_table(source, "student")
    found = list(_first_two(read_answers(Path(source))))
    if len(found) != 1:
        raise HeadworkError(f"{source} holds {'no' if not found else 'several'} students; mark the class instead")
    if found[0].unreadable:
        raise HeadworkError(found[0].unreadable)
    return found[0]


def _first_two(students: Iterable[Answers]) -> Iterator[Answers]:
    for number, student in enumerate(students):
        if number == 2:
            return
        yield student


def read_answers(path: Path) -> Iterator[Answers]:
    """Every student in a file, one at a time."""
    if path.is_dir():
        raise HeadworkError(f"{path} is a directory; give the files in it")
    if not path.exists():
        raise HeadworkError(f"there is no file '{path}' of answers; give {', '.join(SUFFIXES)} files")
    readers = {".toml": _toml, ".json": _json, ".ipynb": _notebook}
    if path.suffix.lower() == ".csv":
        yield from _csv(path)
    elif path.suffix.lower() in readers:
        try:
            yield from_table(readers[path.suffix.lower()](_text(path)), path.stem)
        except HeadworkError as error:
            yield Answers(path.stem, unreadable=f"{path.name} {error}")
    else:
        raise HeadworkError(f"{path} is no file of answers; give {', '.join(SUFFIXES)}")


def from_table(table: Mapping[str, Any], student: str) -> Answers:
    """Answers from nested tables: {"a": {"Q": …}}, {"2": {"a": {…}}} or {"2.a": {…}}."""
    parts: dict[str, Mapping[str, Any]] = {}
    for key, value in table.items():
        if key == "student" and isinstance(value, str):
            student = value[:100]
        elif not isinstance(value, Mapping):
            raise HeadworkError(f"holds '{str(key)[:40]}' outside a part; put it under [a] or another part's label")
        elif str(key).isdecimal() and value and all(isinstance(v, Mapping) for v in value.values()):
            parts |= {f"{key}.{label}": part for label, part in value.items()}
        else:
            parts[str(key)] = value
    return Answers(student, parts)


def _text(path: Path) -> str:
    """The file's text, unless it is too large to be one student's work, or not UTF-8."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise HeadworkError(f"has {path.stat().st_size:,} bytes; answers have at most {LARGEST_FILE:,}")
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise HeadworkError("is not text in UTF-8; save it in that encoding") from None
    except OSError as error:
        raise HeadworkError(f"cannot be read: {error.strerror}") from None


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=str)
    except tomllib.TOMLDecodeError as error:
        raise HeadworkError(f"is not a TOML file: {str(error)[:160]}") from None
    except (ValueError, RecursionError):
        raise HeadworkError("holds a number or nesting too long to read; shorten it") from None


def _json(text: str) -> dict[str, Any]:
    try:
        table = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise HeadworkError(f"is not a JSON file: {str(error)[:160]}") from None
    except (ValueError, RecursionError):
        raise HeadworkError("holds nesting too deep to read") from None
    if not isinstance(table, dict):
        raise HeadworkError('must hold an object, such as {"a": {"Q": [["1", "2"]]}}')
    return table


def _notebook(text: str) -> dict[str, Any]:
    from headwork.marking.notebook import notebook_answers

    return notebook_answers(text)


def _csv(path: Path) -> Iterator[Answers]:
    """Columns: `student`, then part.name, such as a.Q_1 for a whole matrix ("1 2; 3 4") or a.Q_1[2,1] for an entry."""
    csv.field_size_limit(LONGEST_CELL)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(_lines(file, path), strict=True)
            header = [name.strip() for name in next(rows, [])]
            columns = _columns(header, path)
            for row in rows:
                if any(cell.strip() for cell in row):
                    yield _from_row(row, columns, rows.line_num)
    except UnicodeDecodeError:
        raise HeadworkError(f"{path} is not text in UTF-8; save it in that encoding") from None
    except csv.Error as error:
        raise HeadworkError(f"{path}: line {rows.line_num}: {error}; a cell has at most {LONGEST_CELL:,}") from None
    except OSError as error:
        raise HeadworkError(f"{path} cannot be read: {error.strerror}") from None


def _lines(file: Any, path: Path) -> Iterator[str]:
    """Line by line, none longer than a row can be: a file without line ends must not fill the memory."""
    while line := file.readline(LARGEST_FILE + 1):
        if len(line) > LARGEST_FILE:
            raise HeadworkError(f"{path} has a line of more than {LARGEST_FILE:,} characters")
        yield line


def _columns(header: list[str], path: Path) -> list[tuple[str, str] | None]:
    """For every column its part and name; None for the student's own column."""
    if "student" not in header:
        raise HeadworkError(f"{path} needs a first line with 'student' and columns such as a.Q_1")
    if len(header) > MOST_COLUMNS:
        raise HeadworkError(f"{path} has {len(header):,} columns; at most {MOST_COLUMNS:,}")
    columns: list[tuple[str, str] | None] = []
    for name in header:
        # The part is what stands before the last full stop, and may hold one itself: 2.a.Q_1
        part, _, own = name.rpartition(".")
        if name != "student" and not (part and own):
            raise HeadworkError(f"{path}: column '{name[:40]}' must be written part.name, such as a.Q_1")
        columns.append(None if name == "student" else (part, own))
    return columns


def _from_row(row: list[str], columns: list[tuple[str, str] | None], line: int) -> Answers:
    student = next((cell for cell, column in zip(row, columns, strict=False) if column is None), "").strip()
    if len(row) != len(columns):
        message = f"line {line} has {len(row)} cells, but the first line has {len(columns)}"
        return Answers(student or f"line {line}", unreadable=message)
    parts: dict[str, dict[str, Any]] = {}
    for cell, column in zip(row, columns, strict=True):
        if column is not None and cell.strip():
            parts.setdefault(sys.intern(column[0]), {})[column[1]] = cell
    return Answers(student[:100] or f"line {line}", parts)
