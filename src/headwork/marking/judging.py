"""One answer: read, held against the truth and against what the student's own earlier answers lead to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import inf, isnan

from headwork.errors import HeadworkError
from headwork.graph import Step
from headwork.marking.answered import Answered
from headwork.marking.following import Earlier, Own
from headwork.marking.marks import AnswerMark, Verdict, no_working
from headwork.marking.rules import MarkingRules
from headwork.marking.table import Malformed, Numbers, is_blank, numbers
from headwork.marking.tolerance import CLEAR
from headwork.marking.truth import Truth
from headwork.mistakes.diagnose import Diagnosis, advice
from headwork.mistakes.evidence import Tags, view
from headwork.readings.entries import origin
from headwork.readings.exact import Entry, Hidden, Matrix
from headwork.readings.floats import Floats, flat
from headwork.readings.shapes import shape_text
from headwork.sheets.questions import Asked
from headwork.sheets.ready import Ready
from headwork.working import Arithmetic, arithmetic


class Judge:
    """What is the same for every answer to a problem: its rules, and the mistakes it gives occasion for."""

    def __init__(self, ready: Ready, rules: MarkingRules, show_working: bool) -> None:
        self.ready, self.rules, self.show_working = ready, rules, show_working
        self.places, self.notation = ready.problem.places, ready.problem.notation

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Made when the first answer is wrong: a right one needs no catalogue."""
        return Diagnosis(self.ready.last)

    def judged(self, truth: Truth, question: Asked, answered: Answered, earlier: Earlier) -> AnswerMark:
        """A part's answer to a question that asks for numbers."""
        near = view(question.found, truth.near[question.found.step])
        shape = (len(near), len(near[0]))
        size = shape[0] * shape[1]
        try:
            raw = answered.take(question, shape)
            if is_blank(raw):
                return AnswerMark(question.name, "blank", size, Fraction(0))
            answer = _oriented(numbers(raw), question, shape)
        except Malformed as error:
            return AnswerMark(question.name, "malformed", size, Fraction(0), message=str(error))
        if (len(answer), len(answer[0])) != shape:
            return self._misshapen(truth, question, answer, near)
        if any(isinstance(x.value, Hidden) for row in answer for x in row) and -inf not in flat(near):
            message = "holds −∞, which only a mask may hold; write numbers"
            return AnswerMark(question.name, "malformed", size, Fraction(0), message=message)
        mark = _Attempt(self, truth, question, answer, near).marked(earlier)
        earlier.remember(truth, question.found, answer, mark.verdict == "wrong")
        return mark

    def _misshapen(self, truth: Truth, question: Asked, answer: Numbers, near: Floats) -> AnswerMark:
        """A wrong shape is not a wrong answer, but it may still be one that a mistake predicts."""
        shape = shape_text((len(answer), len(answer[0])))
        message = f"is {shape}, which is not its shape"
        if self.rules.shape:
            message = f"is {shape}; it should be {shape_text((len(near), len(near[0])))}"
        entries = [[x.near for x in row] for row in answer]
        tags = self.diagnosis.diagnose(
            truth.part.label, question.found, entries, self.within(answer, entries), near, truth.handed
        )
        return AnswerMark(
            question.name,
            "malformed",
            len(flat(near)),
            Fraction(0),
            tags=tuple("+".join(t) for t in tags),
            advice=" ".join(advice(t) for t in tags[:1]),
            message=message,
        )

    def within(self, answer: Numbers, near: Floats) -> Floats:
        """How far apart two numbers may lie and still count as the same, entry by entry."""
        room, places = self.rules.tolerance.room_near, self.places
        clear = 1 + (CLEAR if self.rules.tolerance.closed else -CLEAR)
        return [
            [max(room(x, right, places), 1e-9) * clear for x, right in zip(*rows, strict=True)]
            for rows in zip(answer, near, strict=True)
        ]


def _oriented(answer: Numbers, question: Asked, shape: tuple[int, int]) -> Numbers:
    """A single row may be written as the column that the page has."""
    column = question.found.row is not None and len(answer) == shape[1] and len(answer[0]) == 1
    return tuple(zip(*answer, strict=True)) if column else answer


@dataclass
class _Attempt:
    """One answer of the right shape."""

    judge: Judge
    truth: Truth
    question: Asked
    answer: Numbers
    near: Floats

    def marked(self, earlier: Earlier) -> AnswerMark:
        wrong = self._wrong(self.near, self._right)
        if not wrong:
            return self._mark("right", wrong)
        step = self.question.found.step
        own = earlier.behind(self.truth, step)
        if own is None:
            return self._judged(wrong)
        follows = self.judge.diagnosis.right.predict(step, {**self.truth.handed, **own.near})
        if follows is None or any(map(isnan, flat(follows))):
            return self._judged(wrong)
        there = self._wrong(view(self.question.found, follows), lambda: own.meaning)
        if not there:
            return self._mark("follows", there, own.carried)
        if len(there) < len(wrong):
            return self._judged(there, own, own.carried)
        return self._judged(wrong, own)

    def _right(self) -> Mapping[Step, Matrix]:
        return self.truth.exact

    def _wrong(self, near: Floats, exact: Callable[[], Mapping[Step, Matrix]]) -> list[tuple[int, int]]:
        """The entries that are not as float64 has them; where that is too close to call, closed forms decide."""
        accepts, places = self.judge.rules.tolerance.accepts, self.judge.places
        return [
            (i, j)
            for i, row in enumerate(self.answer)
            for j, number in enumerate(row)
            if not accepts(number, near[i][j], partial(self._entry, exact, i, j), places)
        ]

    def _entry(self, exact: Callable[[], Mapping[Step, Matrix]], i: int, j: int) -> Entry:
        row, column = self._place(i, j)
        return exact()[self.question.found.step][row][column]

    def _place(self, i: int, j: int) -> tuple[int, int]:
        found = self.question.found
        return i + (found.row or 0), j + (found.column or 0)

    def _judged(self, wrong: list[tuple[int, int]], own: Own | None = None, carried: int = 0) -> AnswerMark:
        """Wrong, and what it is consistent with."""
        entries = [[x.near for x in row] for row in self.answer]
        tags = self.judge.diagnosis.diagnose(
            self.truth.part.label,
            self.question.found,
            entries,
            self.judge.within(self.answer, self.near),
            self.near,
            self.truth.handed,
            None if own is None else own.near,
        )
        meaning = (lambda: own.meaning) if own is not None and carried else None
        return self._mark("wrong", wrong, carried, tags, meaning)

    def _mark(
        self,
        verdict: Verdict,
        wrong: list[tuple[int, int]],
        carried: int = 0,
        tags: list[Tags] | None = None,
        meaning: Callable[[], Mapping[Step, Matrix]] | None = None,
    ) -> AnswerMark:
        size, first = len(flat(self.near)), self.judge.notation.first_index
        right = (size - len(wrong)) * max(Fraction(0), 1 - self.judge.rules.penalty * carried)
        places = tuple((r + first, c + first) for r, c in (self._place(i, j) for i, j in wrong))
        shown = wrong and self.judge.show_working
        return AnswerMark(
            self.question.name,
            verdict,
            size,
            right,
            places,
            tuple("+".join(t) for t in tags or ()),
            advice(tags[0]) if tags else "",
            f"carries on from {carried} earlier answer(s) marked wrong" if carried else "",
            partial(self._working, wrong[0], meaning or self._right) if shown else no_working,
        )

    def _working(self, entry: tuple[int, int], meaning: Callable[[], Mapping[Step, Matrix]]) -> Arithmetic | None:
        """How the first wrong entry is worked out, from the student's own numbers where those carry on."""
        row, column = self._place(*entry)
        step = self.question.found.step
        try:
            return arithmetic(origin(step, row, column, meaning()), self.judge.notation)
        except HeadworkError:
            return None
