"""A class: whose sheet is whose, and each marked on their own."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, lru_cache, partial
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.marking.graders.family import Family
from headwork.marking.mark import Marker
from headwork.marking.marks import AnswerMark, Marks, Student, no_working
from headwork.marking.one_file import Answers
from headwork.marking.overrides import OVERRIDES, Overrides, known_as, overridden, read_overrides
from headwork.marking.roster import ROSTER, read_roster
from headwork.sheets.load import parse_sheet, sheet_text
from headwork.working import Arithmetic

MOST_KEPT = 16  # markers; a class with a sheet for everybody has as many as students


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
    return ClassOf(texts, students)


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
        named = answers.sheet if answers.sheet in self.sheets.texts else ""
        if named or self.sheets.students is None:
            name = named or Family(self.sheets.texts).name_for(answers.student)
            return overridden(replace(self.marker(name).mark(answers), listed=student), self.sheets.overrides)
        if student is None:
            known = (
                f"'{answers.student[:40]}' is not on the {ROSTER} of this class, or not alone with that name, "
                "so there is no sheet to mark: hand in under the id"
            )
            nobody = self.first.mark(Answers(answers.student, unreadable=answers.unreadable or known))
            return replace(nobody, title=self.sheets.title)
        return overridden(replace(self.marker(student.id).mark(answers), listed=student), self.sheets.overrides)


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
