"""A class: whose sheet is whose, each marked on their own, and points that a teacher sets by hand."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.marking.graders.family import Family, folder_texts
from headwork.marking.mark import Marker
from headwork.marking.marks import AnswerMark, Marks, Student, known_as, no_working
from headwork.marking.one_file import Answers
from headwork.marking.roster import ROSTER, read_roster
from headwork.marking.spreadsheet import as_meant, csv_rows
from headwork.numbers.parse import NumberError, parse_number
from headwork.sheets.load import parse_sheet, sheet_text
from headwork.working import Arithmetic

MOST_KEPT = 16  # markers; a class with a sheet for everybody has as many as students
OVERRIDES = "overrides.csv"  # in the folder of a class: points set by hand, which every later run keeps
COLUMNS = ("student", "part", "score")
_COMMA = re.compile(r"(?<=\d),(?=\d+$)")  # in a cell of its own it is a decimal one


@dataclass(frozen=True)
class Override:
    """What a part is worth instead, and why."""

    score: Fraction
    reason: str
    line: str  # where it stands


Overrides = Mapping[str, Mapping[str, Override]]  # student, as `known_as` has it → part → points


@dataclass(frozen=True)
class ClassOf:
    """The sheets of a class by name, as text, and its list. Without a list a sheet goes to who is called like it, or is
    drawn by the student's name."""

    texts: Mapping[str, str]
    students: tuple[Student, ...] | None = None
    overrides: Overrides = field(default_factory=dict)

    @property
    def title(self) -> str:
        return Family(self.texts).title

    @cached_property
    def _named(self) -> dict[str, Student]:
        """By id, or by name where only one is called so."""
        students = self.students or ()
        often = Counter(known_as(student.name) for student in students)
        named = {known_as(s.name): s for s in students if often[known_as(s.name)] == 1}
        return named | {student.id.casefold(): student for student in students}

    def listed(self, student: str) -> Student | None:
        """Whom the list means; None for who is not on it."""
        known = known_as(student)
        return self._named.get(known) or self._named.get(known.partition("@")[0])


def load_class(source: str | Path, overrides: Path | None = None) -> ClassOf:
    """One sheet for everybody, by name or path, or a folder with one for each; with points set by hand, from a file
    that is named or lies in the folder."""
    path = Path(source)
    texts = folder_texts(path) if path.is_dir() else {str(source): sheet_text(source)}
    students = read_roster(path / ROSTER) if (path / ROSTER).exists() else None
    if missing := [student.id for student in students or () if student.id not in texts]:
        raise HeadworkError(f"{path} has no sheet for '{missing[0]}', who is on its {ROSTER}; make the class again")
    if overrides is None and (path / OVERRIDES).is_file():
        overrides = path / OVERRIDES
    by_hand = {} if overrides is None else read_overrides(overrides)
    _refuse_namesakes(by_hand, students or ())
    return ClassOf(texts, students, by_hand)


def _refuse_namesakes(by_hand: Overrides, students: Collection[Student]) -> None:
    """Points set by hand are for one student: a name that two have says too little."""
    ids = {known_as(student.id) for student in students}
    for name in by_hand.keys() - ids:
        if len(alike := [student for student in students if known_as(student.name) == name]) > 1:
            where = next(iter(by_hand[name].values())).line
            raise HeadworkError(f"{where}: there are {' and '.join(map(str, alike[:3]))}; set points under an id")


def read_overrides(path: Path) -> Overrides:
    """A CSV with columns student, part, score, and reason where there is one."""
    found: dict[str, dict[str, Override]] = {}
    with csv_rows(path) as rows:
        if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
            raise HeadworkError(f"{path} needs a first line with {', '.join(COLUMNS)}; '{missing[0]}' is missing")
        for row in rows:
            where = f"{path.name}, line {rows.line_num}"
            one = Override(_score(row["score"], where), (row.get("reason") or "").strip()[:200], where)
            found.setdefault(known_as(as_meant(row["student"] or "")), {})[(row["part"] or "").strip()] = one
    return found


def _score(text: str | None, where: str) -> Fraction:
    try:
        number = parse_number(_COMMA.sub(".", (text or "").strip()))
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


class ClassMarker:
    """Marks any number of students. Markers are made when they are needed, and the last few kept."""

    def __init__(self, sheets: ClassOf, today: date | None = None) -> None:
        self.sheets, self.today = sheets, today or date.today()
        self.marker = lru_cache(MOST_KEPT)(lambda name: Marker(parse_sheet(sheets.texts[name], name), self.today))

    @property
    def first(self) -> Marker:
        return self.marker(next(iter(self.sheets.texts)))

    def mark(self, answers: Answers) -> Marks:
        student = self.sheets.listed(answers.student)
        name = answers.sheet if answers.sheet in self.sheets.texts else student.id if student else ""
        if not name and self.sheets.students is None:
            name = Family(self.sheets.texts).name_for(answers.student)
        if not name:
            known = (
                f"'{answers.student[:40]}' is not on the {ROSTER} of this class, or not alone with that name, "
                "so there is no sheet to mark: hand in under the id"
            )
            nobody = self.first.mark(Answers(answers.student, unreadable=answers.unreadable or known))
            return replace(nobody, title=self.sheets.title)
        return overridden(replace(self.marker(name).mark(answers), listed=student), self.sheets.overrides)


def settled(marks: Marks, with_working: bool) -> Marks:
    """Marks that hold nothing but data, to be sent from process to process."""
    parts = (replace(p, answers=tuple(_settled(a, with_working) for a in p.answers)) for p in marks.parts)
    return replace(marks, parts=tuple(parts))


def _settled(answer: AnswerMark, with_working: bool) -> AnswerMark:
    if answer.working is no_working:
        return answer
    working = answer.working() if with_working else None
    return replace(answer, working=no_working if working is None else partial(_known, working))


def _known(working: Arithmetic) -> Arithmetic:
    return working
