"""Marking: every answer against the truth, and against what the student's own earlier answers lead to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from headwork.errors import HeadworkError
from headwork.graph import Step, needed, read
from headwork.marking.answers import Answers, one_student
from headwork.marking.marks import AnswerMark, Marks, PartMark, no_working
from headwork.marking.questions import Answered, Question, questions
from headwork.marking.rules import Rules
from headwork.marking.symbolic import mark_symbolic
from headwork.marking.table import Malformed, Numbers, is_blank, numbers
from headwork.marking.tolerance import CLEAR
from headwork.mistakes.diagnose import Diagnosis, advice
from headwork.mistakes.evidence import view
from headwork.mistakes.predict import MOST_PLANS, float_handed
from headwork.readings.entries import origin
from headwork.readings.exact import EXACT, Hidden, Matrix
from headwork.readings.shapes import shape_text
from headwork.readings.values import Array
from headwork.sheets.load import load
from headwork.sheets.ready import Found, Ready
from headwork.sheets.sheet import Part, Problem, Sheet
from headwork.working import Arithmetic, arithmetic


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
        self.problems = [ProblemMarker(problem, today or date.today()) for problem in sheet.problems]

    def mark(self, answers: Answers) -> Marks:
        parts: list[PartMark] = []
        taken: set[str] = set()
        for number, problem in enumerate(self.problems, 1):
            given: dict[str, Mapping[str, Any]] = {}
            for part in problem.problem.parts:
                for label in self._labels(number, part):
                    if label in answers.parts:
                        given[part.label] = answers.parts[label]
                        taken.add(label)
            prefix = f"{number}." if len(self.problems) > 1 else ""
            parts += problem.mark(given, prefix)
        stray = [label for label in answers.parts if label not in taken]
        known = ", ".join(part.label for part in parts)
        note = answers.unreadable or (
            f"there is no part '{stray[0][:40]}' to answer; there is {known}" if stray else ""
        )
        return Marks(answers.student, tuple(parts), note, str(self.problems[0].rules.tolerance))

    def _labels(self, number: int, part: Part) -> tuple[str, ...]:
        """The names of a part: 2.a, and a alone where no other part that can be marked is called so."""
        same = [p for m in self.problems for p in m.problem.parts if p.label == part.label and p.kind in MARKED]
        alone = len(self.problems) == 1 or (len(same) == 1 and part.kind in MARKED)
        return (f"{number}.{part.label}", part.label) if alone else (f"{number}.{part.label}",)


MARKED = ("value", "shape", "count")


@dataclass
class Earlier:
    """What a student has answered so far in a problem: the numbers, and which of them were wrong."""

    exact: dict[Step, list[list[Any]]] = field(default_factory=dict)
    near: dict[Step, Array] = field(default_factory=dict)
    wrong: dict[Step, int] = field(default_factory=dict)
    trivial: set[Step] = field(default_factory=set)


class ProblemMarker:
    """One problem: the truth of every part worked out once, in closed form and in float64."""

    def __init__(self, problem: Problem, today: date) -> None:
        self.problem = problem
        self.rules = Rules.read(problem.marking, tuple(part.label for part in problem.parts))
        self.ready = Ready(problem)
        self.show_working = self.rules.working_from is None or today >= self.rules.working_from
        self.asked: dict[str, tuple[Question, ...]] = {
            part.label: questions(part, self.ready) for part in problem.parts if part.kind in MARKED
        }
        self._sources: dict[tuple[str, Step, frozenset[Step]], list[Step]] = {}
        self.handed: dict[str, dict[Step, Matrix]] = {}
        self.truth: dict[str, dict[Step, Matrix]] = {}
        self.near: dict[str, dict[Step, Array]] = {}
        for part in problem.parts:
            if part.kind == "value":
                self._work(part)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Made when the first answer is wrong: a right one needs no catalogue."""
        return Diagnosis(self.ready.last)

    def _work(self, part: Part) -> None:
        meaning = self.handed[part.label] = self.ready.handed_in(part)
        for question in self.asked[part.label]:
            meaning = {**meaning, **read(question.found.step, EXACT, meaning)}
        self.truth[part.label] = meaning
        self.near[part.label] = float_handed(meaning)

    def sources(self, label: str, step: Step, answered: frozenset[Step]) -> list[Step]:
        """Which of the steps answered before this one rests on, unless the part hands the step over."""
        key = (label, step, answered)
        if key not in self._sources:
            if len(self._sources) >= MOST_PLANS:
                self._sources.clear()
            handed = self.handed[label]
            before = {s: None for s in answered if s is not step and s not in handed}
            self._sources[key] = [s for s in needed(step, {**handed, **before}) if s in before]
        return self._sources[key]

    def mark(self, given: Mapping[str, Mapping[str, Any]], prefix: str) -> list[PartMark]:
        earlier = Earlier()
        return [self._part(part, given.get(part.label, {}), earlier, prefix) for part in self.problem.parts]

    def _part(self, part: Part, given: Mapping[str, Any], earlier: Earlier, prefix: str) -> PartMark:
        if part.kind not in MARKED:
            return PartMark(prefix + part.label, Fraction(0), Fraction(0), (), (f"{part.kind}: left for a person",))
        answered = Answered(given, self.problem.notation.first_index)
        marks = []
        for question in self.asked[part.label]:
            if part.kind == "value":
                marks.append(self._value(part, question, answered, earlier))
            else:
                marks.append(mark_symbolic(part.kind, question, answered, self.ready))
        asked = ", ".join(q.name for q in self.asked[part.label])
        notes = tuple(f"'{name[:40]}' is not asked for; asked are {asked}" for name in answered.left_over()[:5])
        most = self.rules.points_of(part.label)
        entries = sum(m.entries for m in marks)
        score = most * sum((m.right for m in marks), Fraction(0)) / entries if entries else Fraction(0)
        return PartMark(prefix + part.label, score, most, tuple(marks), notes)

    def _value(self, part: Part, question: Question, answered: Answered, earlier: Earlier) -> AnswerMark:
        near = view(question.found, self.near[part.label][question.found.step])
        try:
            raw = answered.take(question, near.shape)
            if is_blank(raw):
                return AnswerMark(question.name, "blank", near.size, Fraction(0))
            answer = self._oriented(numbers(raw), question, near)
        except Malformed as error:
            return AnswerMark(question.name, "malformed", near.size, Fraction(0), message=str(error))
        if (len(answer), len(answer[0])) != near.shape:
            return self._misshapen(part, question, answer, near)
        if any(isinstance(x.value, Hidden) for row in answer for x in row) and not np.isinf(near).any():
            message = "holds −∞, which only a mask may hold; write numbers"
            return AnswerMark(question.name, "malformed", near.size, Fraction(0), message=message)
        verdict = _Attempt(self, part, question, answer, near, earlier).marked()
        self._remember(part, question.found, answer, verdict, earlier)
        return verdict

    @staticmethod
    def _oriented(answer: Numbers, question: Question, near: Array) -> Numbers:
        """A single row may be written as the column that the page has."""
        column = question.found.row is not None and len(answer) == near.shape[1] and len(answer[0]) == 1
        return tuple(zip(*answer, strict=True)) if column else answer

    def _misshapen(self, part: Part, question: Question, answer: Numbers, near: Array) -> AnswerMark:
        """A wrong shape is not a wrong answer, but it may still be one that a mistake predicts."""
        shape = shape_text((len(answer), len(answer[0])))
        message = f"is {shape}, which is not its shape"
        if self.rules.shape:
            message = f"is {shape}; it should be {shape_text(near.shape)}"
        entries = np.array([[x.near for x in row] for row in answer])
        within = self.within(answer, entries)
        handed = {s: self.near[part.label][s] for s in self.handed[part.label]}
        tags = self.diagnosis.diagnose(part.label, question.found, entries, within, near, handed)
        return AnswerMark(
            question.name,
            "malformed",
            near.size,
            Fraction(0),
            tags=tuple("+".join(t) for t in tags),
            advice=" ".join(advice(t) for t in tags[:1]),
            message=message,
        )

    def within(self, answer: Numbers, near: Array) -> Array:
        """How far apart two numbers may lie and still count as the same, entry by entry."""
        room = self.rules.tolerance.room_near
        places = self.problem.places
        rooms = [[room(x, near[i, j], places) for j, x in enumerate(row)] for i, row in enumerate(answer)]
        within: Array = np.maximum(np.array(rooms), 1e-9) * (1 + (CLEAR if self.rules.tolerance.closed else -CLEAR))
        return within

    def _remember(self, part: Part, found: Found, answer: Numbers, mark: AnswerMark, earlier: Earlier) -> None:
        """The answer, laid over the truth, is what later answers may follow from."""
        step = found.step
        matrix = earlier.exact.setdefault(step, [list(row) for row in self.truth[part.label][step]])
        near = earlier.near.setdefault(step, self.near[part.label][step].copy())
        for i, row in enumerate(answer, found.row or 0):
            for j, number in enumerate(row, found.column or 0):
                matrix[i][j], near[i, j] = number.value, number.near
        if mark.verdict == "wrong":
            earlier.wrong[step] = earlier.wrong.get(step, 0) + 1
        if _trivial(matrix) and not _trivial(self.truth[part.label][step]):
            earlier.trivial.add(step)


def _trivial(matrix: Any) -> bool:
    """All entries equal: nothing is left to follow through."""
    flat = [x for row in matrix for x in row]
    return len(flat) > 1 and all(type(x) is type(flat[0]) and x == flat[0] for x in flat)


@dataclass
class _Attempt:
    """One answer of the right shape."""

    marker: ProblemMarker
    part: Part
    question: Question
    answer: Numbers
    near: Array
    earlier: Earlier

    def marked(self) -> AnswerMark:
        wrong = self._wrong(self.near, self._true_entry)
        if not wrong:
            return self._mark("right", wrong)
        own = self._own()
        if own is None:
            return self._judged(wrong, None)
        follows = self.marker.diagnosis.right.predict(self.question.found.step, {**self._handed(), **own})
        if follows is None or np.isnan(follows).any():
            return self._judged(wrong, None)
        there = self._wrong(view(self.question.found, follows), self._own_entry)
        carried = sum(self.earlier.wrong.get(step, 0) for step in own)
        if not there:
            return self._mark("follows", there, carried)
        if len(there) < len(wrong):
            return self._judged(there, own, carried)
        return self._judged(wrong, own)

    def _wrong(self, near: Array, exact: Any) -> list[tuple[int, int]]:
        rule, places = self.marker.rules.tolerance, self.marker.problem.places
        return [
            (i, j)
            for i, row in enumerate(self.answer)
            for j, number in enumerate(row)
            if not rule.accepts(number, float(near[i, j]), partial(exact, i, j), places)
        ]

    def _place(self, i: int, j: int) -> tuple[int, int]:
        found = self.question.found
        return i + (found.row or 0), j + (found.column or 0)

    def _true_entry(self, i: int, j: int) -> Any:
        row, column = self._place(i, j)
        return self.marker.truth[self.part.label][self.question.found.step][row][column]

    def _own_entry(self, i: int, j: int) -> Any:
        row, column = self._place(i, j)
        return self._own_meaning[self.question.found.step][row][column]

    @cached_property
    def _own_meaning(self) -> dict[Step, Matrix]:
        own = {step: tuple(map(tuple, self.earlier.exact[step])) for step in self._sources()}
        return read(self.question.found.step, EXACT, {**self.marker.handed[self.part.label], **own})

    def _handed(self) -> dict[Step, Array]:
        near = self.marker.near[self.part.label]
        return {step: near[step] for step in self.marker.handed[self.part.label]}

    def _sources(self) -> list[Step]:
        return self.marker.sources(self.part.label, self.question.found.step, frozenset(self.earlier.exact))

    def _own(self) -> dict[Step, Array] | None:
        """The earlier answers that this one rests on; None where there are none, or none worth following."""
        sources = self._sources()
        if not sources or self.earlier.trivial.intersection(sources):
            return None
        return {step: self.earlier.near[step] for step in sources}

    def _judged(self, wrong: list[tuple[int, int]], own: dict[Step, Array] | None, carried: int = 0) -> AnswerMark:
        """Wrong, and what it is consistent with."""
        entries = np.array([[x.near for x in row] for row in self.answer])
        within = self.marker.within(self.answer, self.near)
        tags = self.marker.diagnosis.diagnose(
            self.part.label, self.question.found, entries, within, self.near, self._handed(), own
        )
        return self._mark("wrong", wrong, carried, tags, own is not None and bool(carried))

    def _mark(
        self,
        verdict: Any,
        wrong: list[tuple[int, int]],
        carried: int = 0,
        tags: list[tuple[str, ...]] | None = None,
        on_own: bool = False,
    ) -> AnswerMark:
        size = self.near.size
        first = self.marker.problem.notation.first_index
        right = (size - len(wrong)) * max(Fraction(0), 1 - self.marker.rules.penalty * carried)
        places = tuple((r + first, c + first) for r, c in (self._place(i, j) for i, j in wrong))
        message = f"carries on from {carried} earlier answer(s) marked wrong" if carried else ""
        working = (lambda: self._working(wrong[0], on_own)) if wrong and self.marker.show_working else no_working
        return AnswerMark(
            self.question.name,
            verdict,
            size,
            right,
            places,
            tuple("+".join(t) for t in tags or ()),
            advice(tags[0]) if tags else "",
            message,
            working,
        )

    def _working(self, entry: tuple[int, int], on_own: bool) -> Arithmetic | None:
        """How the first wrong entry is worked out, from the student's own numbers where those carry on."""
        row, column = self._place(*entry)
        step = self.question.found.step
        try:
            meaning = self._own_meaning if on_own else self.marker.truth[self.part.label]
        except HeadworkError:
            return None
        return arithmetic(origin(step, row, column, meaning), self.marker.problem.notation)
