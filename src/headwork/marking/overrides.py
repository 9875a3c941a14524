"""Points that a teacher sets by hand. They stand in a file beside the answers, so every later run keeps them."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.marking.marks import Marks
from headwork.numbers.parse import NumberError, parse_number

OVERRIDES = "overrides.csv"  # in the folder of a class
COLUMNS = ("student", "part", "score")


@dataclass(frozen=True)
class Override:
    """What a part is worth instead, and why."""

    score: Fraction
    reason: str
    line: str  # where it stands


Overrides = Mapping[str, Mapping[str, Override]]  # student, as `known_as` has it → part → points


def known_as(student: str) -> str:
    return " ".join(student.split()).casefold()


def read_overrides(path: Path) -> Overrides:
    """A CSV with columns student, part, score, and reason where there is one."""
    found: dict[str, dict[str, Override]] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
                raise HeadworkError(f"{path} needs a first line with {', '.join(COLUMNS)}; '{missing[0]}' is missing")
            for row in rows:
                where = f"{path.name}, line {rows.line_num}"
                one = Override(_score(row["score"], where), (row.get("reason") or "").strip()[:200], where)
                found.setdefault(known_as(row["student"] or ""), {})[(row["part"] or "").strip()] = one
    except (UnicodeDecodeError, csv.Error) as error:
        raise HeadworkError(f"{path} is no CSV in UTF-8 that can be read: {error}") from None
    except OSError as error:
        raise HeadworkError(f"{path} cannot be read: {error.strerror}") from None
    return found


def _score(text: str | None, where: str) -> Fraction:
    try:
        number = parse_number((text or "").strip())
    except NumberError as error:
        raise HeadworkError(f"{where}: {error}") from None
    if not isinstance(number, Fraction) or number < 0:
        raise HeadworkError(f"{where}: {str(text)[:40]} is no number of points; give 0 or more")
    return number


def overridden(marks: Marks, overrides: Overrides) -> Marks:
    """The marks with what was set by hand, and a note that says so."""
    own = {part: one for name in marks.known_as for part, one in overrides.get(known_as(name), {}).items()}
    if not own:
        return marks
    from headwork.marking.report import points

    parts = {part.label: part for part in marks.parts}
    for label, one in own.items():
        part = parts.get(label)
        if part is None:
            raise HeadworkError(f"{one.line}: there is no part '{label[:40]}'; there is {', '.join(parts)}")
        if one.score > part.max_score:
            raise HeadworkError(f"{one.line}: part {label} has {part.max_score} points, not {one.score}")
        why = f": {one.reason}" if one.reason else ""
        note = f"set by hand to {points(one.score)} instead of {points(part.score)}{why}"
        parts[label] = replace(part, score=one.score, notes=(*part.notes, note))
    return replace(marks, parts=tuple(parts.values()))
