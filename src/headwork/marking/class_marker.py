"""A class: whose sheet is whose, and each marked on their own."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache, partial
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.marking.graders.family import Family
from headwork.marking.mark import Marker
from headwork.marking.marks import AnswerMark, Marks, no_working
from headwork.marking.one_file import Answers
from headwork.marking.overrides import OVERRIDES, Overrides, overridden, read_overrides
from headwork.marking.roster import ROSTER, read_roster
from headwork.sheets.load import parse_sheet, sheet_text
from headwork.working import Arithmetic

MOST_KEPT = 16  # markers; a class with a sheet for everybody has as many as students


@dataclass(frozen=True)
class ClassOf:
    """The sheets of a class by name, as text, and who is called how. Without a roster a sheet goes to who is called
    like it, or is drawn by the student's name."""

    texts: Mapping[str, str]
    roster: Mapping[str, str] | None = None  # id or name, in small letters → sheet
    overrides: Overrides = field(default_factory=dict)

    def sheet_for(self, student: str) -> str | None:
        """The name of the student's sheet; None for who is not on the roster."""
        if self.roster is None:
            return Family(self.texts).name_for(student)
        known = student.strip().casefold()
        return self.roster.get(known) or self.roster.get(known.partition("@")[0])


def load_class(source: str | Path, overrides: Path | None = None) -> ClassOf:
    """One sheet for everybody, by name or path, or a folder with one for each; with points set by hand, from a file
    that is named or lies in the folder."""
    sheets, beside = _load(source), Path(source) / OVERRIDES
    if overrides is None and beside.is_file():
        overrides = beside
    return sheets if overrides is None else replace(sheets, overrides=read_overrides(overrides))


def _load(source: str | Path) -> ClassOf:
    path = Path(source)
    if not path.is_dir():
        return ClassOf({str(source): sheet_text(source)})
    texts = {file.stem: sheet_text(file) for file in sorted(path.glob("*.toml"))}
    if not texts:
        raise HeadworkError(f"{path} holds no sheets; give a folder of .toml files, such as `headwork new` writes")
    if not (path / ROSTER).exists():
        return ClassOf(texts)
    students = read_roster(path / ROSTER)
    if missing := [student.id for student in students if student.id not in texts]:
        raise HeadworkError(f"{path} has no sheet for '{missing[0]}', who is on its {ROSTER}; make the class again")
    named = {student.name.casefold(): student.id for student in students if student.name}
    return ClassOf(texts, named | {student.id.casefold(): student.id for student in students})


class ClassMarker:
    """Marks any number of students. Markers are made when they are needed, and the last few kept."""

    def __init__(self, sheets: ClassOf, today: date | None = None) -> None:
        self.sheets = sheets
        self.marker = lru_cache(MOST_KEPT)(lambda name: Marker(parse_sheet(sheets.texts[name], name), today))

    @property
    def first(self) -> Marker:
        return self.marker(next(iter(self.sheets.texts)))

    def mark(self, answers: Answers) -> Marks:
        name = self.sheets.sheet_for(answers.student)
        if name is None:
            known = f"'{answers.student[:40]}' is not on the {ROSTER} of this class, so there is no sheet to mark"
            return self.first.mark(Answers(answers.student, unreadable=answers.unreadable or known))
        return overridden(self.marker(name).mark(answers), self.sheets.overrides)


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
