"""Points into the gradebook that a teacher downloaded from Canvas, Moodle or Gradescope.

One column is filled, or added at the end; every other byte stays as it was, so what comes back is what the platform
knows. Students are found by what the platform calls them: login, number, e-mail address or name.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.marking.marks import Marks, known_as
from headwork.marking.spreadsheet import decimals, harmless, separator

LARGEST = 50_000_000  # bytes
# What the columns that say who somebody is are called, in small letters.
WHO = {
    *("sis login id", "sis user id", "id", "student"),  # Canvas
    *("username", "id number", "email address", "e-mail address"),  # Moodle
    *("sid", "email", "name"),  # Gradescope
}
FIRST, LAST = ("first name", "given name"), ("last name", "surname")


def fill(path: Path, column: str, students: Iterable[Marks]) -> Iterator[str]:
    """The gradebook with a column of points; who is in one of the two only is said at the end, as an error is."""
    text = _text(path)
    between = separator(text.partition("\n")[0])
    records = list(_records(text, between))
    header = [name.strip() for name in records[0][0]] if records else []
    who = [i for i, name in enumerate(header) if name.casefold() in WHO]
    names = [next((i for i, name in enumerate(header) if name.casefold() in kind), None) for kind in (FIRST, LAST)]
    if not who and None in names:
        raise HeadworkError(f"{path} has no column that says who is who; download the gradebook as CSV again")
    place = next((i for i, name in enumerate(header) if _same_column(name, column)), None)
    handed_in, unread = _last_of_each(students)
    most = max((marks.max_score for marks in handed_in), default=Fraction(0))
    theirs = _whose(handed_in, [_called(cells, who, names) for cells, _ in records[1:]])
    for marks, lines in Counter(marks.student for marks in theirs if marks is not None).items():
        if lines > 1:
            raise HeadworkError(
                f"{path} has {lines} lines for '{marks}'; fill in those by hand, or hand in under an id"
            )
    yield _with(records[0][1], between, place, column if place is None else None)
    for (cells, raw), known in zip(records[1:], theirs, strict=True):
        if known is not None:
            yield _with(raw, between, place, decimals(known.score))
        elif place is None and cells and cells[0].strip() == "Points Possible":  # Canvas's second line
            yield _with(raw, between, place, decimals(most))
        else:
            yield _with(raw, between, place, None)
    used = {marks.student for marks in theirs if marks is not None}
    missing = [marks.student for marks in handed_in if marks.student not in used]
    left_out = [f"{path} has nobody called {_some(missing)}"] if missing else []
    left_out += [f"nothing could be marked of {_some(unread)}"] if unread else []
    if left_out:
        raise HeadworkError("; ".join([*left_out, "everybody else's points were filled in"]))


def _last_of_each(students: Iterable[Marks]) -> tuple[list[Marks], list[str]]:
    """Everybody's last marks; and the names of those of whom nothing could be marked, which is worth no 0."""
    last: dict[str, Marks] = {}
    unread: dict[str, str] = {}
    for marks in students:
        key = known_as(marks.listed.id if marks.listed else marks.student)
        if marks.note and not marks.score and all(a.verdict == "blank" for part in marks.parts for a in part.answers):
            unread[key] = marks.student
        else:
            last[key] = marks
    return list(last.values()), [name for key, name in unread.items() if key not in last]


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise HeadworkError(f"{path} has too many bytes; a gradebook has at most {LARGEST:,}")
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise HeadworkError(f"{path} is not text in UTF-8; save it in that encoding") from None
    except OSError as error:
        raise HeadworkError(f"the gradebook {path} cannot be read: {error.strerror}") from None
    if not text.strip():
        raise HeadworkError(f"{path} is empty; download the gradebook as CSV again")
    return text


def _records(text: str, between: str) -> Iterator[tuple[list[str], str]]:
    """Each record's cells and its own text, line end included."""
    lines = text.splitlines(keepends=True)
    reader = csv.reader(lines, delimiter=between)
    start = 0
    for cells in reader:
        raw = "".join(lines[start : reader.line_num])
        start = reader.line_num
        yield [cell.removeprefix("\ufeff") for cell in cells], raw


def _by_name(students: Iterable[Marks]) -> dict[str, Marks]:
    """Everybody by all that they are called, but for what two are called."""
    found: dict[str, list[Marks]] = {}
    for marks in students:
        for name in dict.fromkeys(map(known_as, marks.known_as)):
            found.setdefault(name, []).append(marks)
    return {name: own[0] for name, own in found.items() if len(own) == 1}


def _called(cells: list[str], who: list[int], names: list[int | None]) -> list[str]:
    """Whatever a record calls its student."""
    called = [cells[i] for i in who if i < len(cells)]
    first, last = (cells[i] if i is not None and i < len(cells) else "" for i in names)
    called += [f"{first} {last}"] if first or last else []
    called += [" ".join(reversed(name.split(",", 1))) for name in called if name.count(",") == 1]  # Lovelace, Ada
    called += [name.partition("@")[0] for name in called if "@" in name]
    return [plain for name in called if (plain := known_as(name))]


def _whose(handed_in: list[Marks], records: list[list[str]]) -> list[Marks | None]:
    """The student of each record: by the class list's id, and by name where no other record has the id of whoever is
    called so; the namesake may have handed in nothing."""
    by_id = {known_as(marks.listed.id): marks for marks in handed_in if marks.listed}
    found = [next((by_id[name] for name in called if name in by_id), None) for called in records]
    told = {marks.student for marks in found if marks is not None}
    points = {name: marks for name, marks in _by_name(handed_in).items() if marks.student not in told}
    return [
        known or next((points[name] for name in called if name in points), None)
        for known, called in zip(found, records, strict=True)
    ]


def _same_column(name: str, column: str) -> bool:
    """Canvas puts a number after an assignment's name: Sheet 1 (48213); Moodle its kind before it and the way to count
    behind: Assignment: Sheet 1 (Real)."""
    from_moodle = re.fullmatch(r"[^:]{1,40}: (.+) \([^()\d]{1,40}\)", name)
    return column in (name, re.sub(r" \(\d+\)$", "", name), from_moodle and from_moodle[1])


def _with(raw: str, between: str, place: int | None, value: str | None) -> str:
    """The record with one cell changed, or added; None leaves it, or adds an empty one."""
    body = raw.rstrip("\r\n")
    end = raw[len(body) :]
    cell = None if value is None else _quoted(value)
    if place is None:
        return f"{body}{between}{cell or ''}{end}"
    if cell is None:
        return raw
    cells = re.findall(rf'(?:"(?:[^"]|"")*"|[^{between}"]*)(?:{between}|$)', body)
    if place >= len(cells):
        return raw
    cells[place] = cell + (between if cells[place].endswith(between) else "")
    return "".join(cells) + end


def _quoted(value: str) -> str:
    value = harmless(value)
    return '"' + value.replace('"', '""') + '"' if re.search(r'[",;\t\r\n]', value) else value
