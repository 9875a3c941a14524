"""Marks as a CSV with a line for every student, safe to open in a spreadsheet; and the CSVs that a teacher gives."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

from headwork.errors import HeadworkError
from headwork.marking.marks import Marks

LONGEST_LINE = 1_000_000  # characters
_FORMULA = ("=", "+", "-", "@", "|", "%")  # what a spreadsheet takes for the beginning of one


def separator(first: str) -> str:
    """What stands between the cells, told by the first line: where decimals have commas, spreadsheets write semicolons.

    >>> separator("id,name"), separator("id;name"), separator("student;a.Q[1,1];a.Q[1,2]")
    (',', ';', ';')
    """
    plain = re.sub(r'"[^"]*"|\[[^\]]*\]', "", first)
    return max(",;\t", key=plain.count)


@contextmanager
def csv_reader(path: Path) -> Iterator[Any]:
    """The rows of a CSV; why it cannot be read, if so, is an error that names it."""
    rows = None
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = _lines(file, path)
            first = next(lines, "")
            rows = csv.reader(chain([first], lines), strict=True, delimiter=separator(first))
            yield rows
    except UnicodeDecodeError:
        raise HeadworkError(f"{path} is not text in UTF-8; save it in that encoding") from None
    except csv.Error as error:
        raise HeadworkError(f"{path}: line {rows.line_num if rows else 1}: {error}") from None
    except OSError as error:
        raise HeadworkError(f"{path} cannot be read: {error.strerror}") from None


def _lines(file: Any, path: Path) -> Iterator[str]:
    """Line by line, none longer than a row can be: a file without line ends must not fill the memory."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise HeadworkError(f"{path} has a line of more than {LONGEST_LINE:,} characters")
        yield line


@contextmanager
def csv_rows(path: Path) -> Iterator["csv.DictReader[str]"]:
    """The rows by the names in the first line."""
    with csv_reader(path) as rows:
        named: csv.DictReader[str] = csv.DictReader([])
        named.reader = rows
        yield named


def class_csv(students: Iterable[Marks]) -> Iterator[str]:
    """student, score, max_score, a column for every part, the tags; safe to open in a spreadsheet."""
    for number, marks in enumerate(students):
        if number == 0:
            yield line(["student", "score", "max_score", *(part.label for part in marks.parts), "tags", "note"])
        scores = [decimals(part.score) for part in marks.parts]
        yield line(
            [marks.student, decimals(marks.score), decimals(marks.max_score), *scores, " ".join(marks.tags), marks.note]
        )


def decimals(points: Fraction) -> str:
    """Points as a spreadsheet and a gradebook take them.

    >>> decimals(Fraction(3)), decimals(Fraction(1, 2)), decimals(Fraction(4, 3))
    ('3', '0.5', '1.3333')
    """
    return f"{float(points):.4f}".rstrip("0").rstrip(".")


def line(cells: list[str]) -> str:
    """One line of a CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([harmless(cell) for cell in cells])
    return out.getvalue()


def harmless(cell: str) -> str:
    """A text that a spreadsheet would take for a formula gets a ' before it; control characters become spaces.

    >>> harmless("=1+1"), harmless("Ada")
    ("'=1+1", 'Ada')
    """
    plain = re.sub(r"[\x00-\x1f]", " ", cell)
    return f"'{plain}" if plain.lstrip()[:1] in _FORMULA else plain


def as_meant(cell: str) -> str:
    """A text of a spreadsheet without the ' that keeps it from being a formula.

    >>> as_meant("'=1+1"), as_meant("'s-Hertogenbosch")
    ('=1+1', "'s-Hertogenbosch")
    """
    return cell[1:] if cell[:1] == "'" and cell[1:].lstrip()[:1] in _FORMULA else cell
