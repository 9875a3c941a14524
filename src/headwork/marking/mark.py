"""Marking: a sheet made ready, a student's answers in, points out."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

from headwork.marking.answered import Answered
from headwork.marking.answers import Answers, one_student
from headwork.marking.following import Earlier
from headwork.marking.judging import Judge
from headwork.marking.marks import AnswerMark, Marks, PartMark
from headwork.marking.rules import MarkingRules
from headwork.marking.symbolic import mark_symbolic
from headwork.marking.truth import Truth
from headwork.sheets.load import load
from headwork.sheets.ready import Ready
from headwork.sheets.sheet import NUMBERS, Part, Problem, Sheet

MARKED = (*NUMBERS, "shape", "count")


def mark(sheet: Sheet | str | Path, answers: Answers | Mapping[str, Any] | str | Path) -> Marks:
    """One student's answers to a sheet, marked.

    `answers` are a mapping from part to name to matrix, or a file that holds one student's.

    >>> mark("two-heads", {"1.a": {"joined": [[1, 2, 5, 6], [3, 4, 7, 9]]}}).parts[0].answers[0].tags
    ('one-entry',)
    """
    return Marker(sheet if isinstance(sheet, Sheet) else load(sheet)).mark(one_student(answers))


class Marker:
    """A sheet made ready to mark any number of students: nothing is kept from one to the next."""

    def __init__(self, sheet: Sheet, today: date | None = None) -> None:
        self.sheet = sheet
        several, day = len(sheet.problems) > 1, today or date.today()
        numbered = enumerate(sheet.problems, 1)
        self.problems = [ProblemMarker(problem, day, f"{i}." if several else "") for i, problem in numbered]
        self._spelled: dict[str, set[str]] = {}  # a part's letters and numbers → its names
        for number, problem in enumerate(self.problems, 1):
            for part in problem.problem.parts:
                for label in self._labels(number, part):
                    self._spelled.setdefault(_letters_and_numbers(label), set()).add(label)

    def mark(self, answers: Answers) -> Marks:
        handed_in: dict[str, Mapping[str, Any]] = {}
        for label, each in answers.parts.items():
            meant = self._meant(label)
            handed_in[label if meant in answers.parts or meant in handed_in else meant] = each
        parts: list[PartMark] = []
        taken: set[str] = set()
        for number, problem in enumerate(self.problems, 1):
            given: dict[str, Mapping[str, Any]] = {}
            for part in problem.problem.parts:
                for label in self._labels(number, part):
                    if label in handed_in:
                        given[part.label] = handed_in[label]
                        taken.add(label)
            parts += problem.mark(given)
        stray = [label for label in handed_in if label not in taken]
        known = ", ".join(part.label for part in parts)
        unasked = f"there is no part '{stray[0][:40]}' to answer; there is {known}" if stray else ""
        rule = str(self.problems[0].rules.tolerance)
        return Marks(answers.student, tuple(parts), answers.unreadable or unasked, rule, self.sheet.title)

    def _meant(self, label: str) -> str:
        """The part's own name for what was written, as names of answers are read: (a), A, 2a for 2.a."""
        spelled = self._spelled.get(_letters_and_numbers(label), ())
        return next(iter(spelled)) if len(spelled) == 1 else label

    def _labels(self, number: int, part: Part) -> tuple[str, ...]:
        """The names of a part: 2.a, and a alone where no other part that can be marked is called so."""
        same = [p for m in self.problems for p in m.problem.parts if p.label == part.label and p.kind in MARKED]
        alone = len(self.problems) == 1 or (len(same) == 1 and part.kind in MARKED)
        return (f"{number}.{part.label}", part.label) if alone else (f"{number}.{part.label}",)


def _letters_and_numbers(label: str) -> str:
    return "".join(filter(str.isalnum, label)).casefold()


class ProblemMarker:
    """One problem: what is right in every part, worked out once, and how it is judged. Marks have the `prefix` before
    the labels of its parts."""

    def __init__(self, problem: Problem, today: date, prefix: str = "") -> None:
        self.problem, self.prefix = problem, prefix
        self.rules = MarkingRules.of(problem)
        self.ready = Ready(problem)
        show_working = self.rules.working_from is None or today >= self.rules.working_from
        self.judge = Judge(self.ready, self.rules, show_working)
        self.truths = {part.label: Truth(part, self.ready) for part in problem.parts if part.kind in MARKED}

    def mark(self, given: Mapping[str, Mapping[str, Any]]) -> list[PartMark]:
        earlier = Earlier()
        return [self._part(part, given.get(part.label, {}), earlier) for part in self.problem.parts]

    def _part(self, part: Part, given: Mapping[str, Any], earlier: Earlier) -> PartMark:
        label = self.prefix + part.label
        if part.kind not in MARKED:
            return PartMark(label, Fraction(0), Fraction(0), (), (f"{part.kind}: left for a person",))
        truth = self.truths[part.label]
        answered = Answered(given, truth.asked)
        if part.kind in NUMBERS:
            marks = [self.judge.judged(truth, question, answered, earlier) for question in truth.asked]
        else:
            marks = [mark_symbolic(part.kind, question, answered, self.ready) for question in truth.asked]
        marks = self._credited(marks)
        asked = ", ".join(question.name for question in truth.asked)
        notes = tuple(
            f"'{name[:40]}' is not asked for; asked are {asked}{self._elsewhere(name, part, given)}"
            for name in answered.left_over()[:5]
        )
        most = self.rules.points_of(part.label)
        entries = sum(mark.entries for mark in marks)
        score = most * sum((mark.right for mark in marks), Fraction(0)) / entries if entries else Fraction(0)
        return PartMark(label, score, most, tuple(marks), notes)

    def _elsewhere(self, name: str, part: Part, given: Mapping[str, Any]) -> str:
        """What was handed in under the wrong part is asked back under the right one."""
        others = [other for label, other in self.truths.items() if label != part.label]
        where = [other.part.label for other in others if Answered({name: given.get(name)}, other.asked).known(name)]
        return f"; it belongs to part {self.prefix}{where[0]}" if len(where) == 1 else ""

    def _credited(self, marks: list[AnswerMark]) -> list[AnswerMark]:
        """What a sheet that gives no credit for single entries takes away."""
        whole = [mark.verdict in ("right", "follows") for mark in marks]
        if self.rules.credit == "entry" or all(whole):
            return marks
        if self.rules.credit == "part":
            whole = [False] * len(marks)
        return [mark if kept else replace(mark, right=Fraction(0)) for mark, kept in zip(marks, whole, strict=True)]
