"""Points into the gradebook that a teacher downloaded from Canvas, Moodle or Gradescope.

One column is filled, or added at the end; every other byte stays as it was, so what comes back is what the platform
knows. Students are found by what the platform calls them: login, number, e-mail address or name.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.marking.marks import Marks
from headwork.marking.spreadsheet import decimals, harmless

LARGEST = 50_000_000  # bytes
# What the columns that say who somebody is are called, in small letters.
WHO = {
    *("sis login id", "sis user id", "id", "student"),  # Canvas
    *("username", "id number", "email address", "e-mail address"),  # Moodle
    *("sid", "email", "name"),  # Gradescope
}
FIRST, LAST = ("first name", "given name"), ("last name", "surname")
_CELL = re.compile(r'(?:"(?:[^"]|"")*"|[^,"]*)(?:,|$)', re.DOTALL)


def fill(path: Path, column: str, students: Iterable[Marks]) -> Iterator[str]:
    """The gradebook with a column of points; who is in one of the two only is said at the end, as an error is."""
    text = _text(path)
    records = list(_records(text))
    header = [name.strip() for name in records[0][0]] if records else []
    who = [i for i, name in enumerate(header) if name.casefold() in WHO]
    names = [next((i for i, name in enumerate(header) if name.casefold() in kind), None) for kind in (FIRST, LAST)]
    if not who and None in names:
        raise HeadworkError(f"{path} has no column that says who is who; download the gradebook as CSV again")
    place = next((i for i, name in enumerate(header) if _same_column(name, column)), None)
    points: dict[str, Marks] = {}
    for marks in students:
        points[_plain(marks.student)] = marks
    most = max((marks.max_score for marks in points.values()), default=Fraction(0))
    used: set[str] = set()
    yield _with(records[0][1], place, column if place is None else None)
    for cells, raw in records[1:]:
        known = _known(cells, who, names, points)
        if known is not None:
            used.add(known)
            yield _with(raw, place, decimals(points[known].score))
        elif place is None and cells and cells[0].strip() == "Points Possible":  # Canvas's second line
            yield _with(raw, place, decimals(most))
        else:
            yield _with(raw, place, None)
    if missing := [marks.student for name, marks in points.items() if name not in used]:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise HeadworkError(f"{path} has nobody called {shown}; everybody else's points were filled in")


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise HeadworkError(f"{path} has {path.stat().st_size:,} bytes; a gradebook has at most {LARGEST:,}")
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise HeadworkError(f"{path} is not text in UTF-8; save it in that encoding") from None
    except OSError as error:
        raise HeadworkError(f"the gradebook {path} cannot be read: {error.strerror}") from None
    if not text.strip():
        raise HeadworkError(f"{path} is empty; download the gradebook as CSV again")
    return text


def _records(text: str) -> Iterator[tuple[list[str], str]]:
    """Each record's cells and its own text, line end included."""
    lines = text.splitlines(keepends=True)
    reader = csv.reader(lines)
    start = 0
    for cells in reader:
        raw = "".join(lines[start : reader.line_num])
        start = reader.line_num
        yield [cell.removeprefix("\ufeff") for cell in cells], raw


def _known(cells: list[str], who: list[int], names: list[int | None], points: Mapping[str, Marks]) -> str | None:
    """The student of a record, by whatever it calls them."""
    called = [cells[i] for i in who if i < len(cells)]
    first, last = (cells[i] if i is not None and i < len(cells) else "" for i in names)
    called += [f"{first} {last}"] if first or last else []
    called += [" ".join(reversed(name.split(",", 1))) for name in called if name.count(",") == 1]  # Lovelace, Ada
    called += [name.partition("@")[0] for name in called if "@" in name]
    return next((plain for name in called if (plain := _plain(name)) in points and plain), None)


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


def _same_column(name: str, column: str) -> bool:
    """Canvas puts a number after an assignment's name: Sheet 1 (48213)."""
    return re.sub(r" \(\d+\)$", "", name) == column or name == column


def _with(raw: str, place: int | None, value: str | None) -> str:
    """The record with one cell changed, or added; None leaves it, or adds an empty one."""
    body = raw.rstrip("\r\n")
    end = raw[len(body) :]
    cell = None if value is None else _quoted(value)
    if place is None:
        return f"{body},{cell or ''}{end}"
    if cell is None:
        return raw
    cells = [match[0] for match in _CELL.finditer(body)]
    if place >= len(cells):
        return raw
    cells[place] = cell + ("," if cells[place].endswith(",") else "")
    return "".join(cells) + end


def _quoted(value: str) -> str:
    value = harmless(value)
    return '"' + value.replace('"', '""') + '"' if re.search(r'[",\r\n]', value) else value
