"""One answer: read, held against the truth and against what the student's own earlier answers lead to."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from math import inf
from operator import add

from headwork.errors import HeadworkError
from headwork.graph import Step
from headwork.marking.answered import Answered
from headwork.marking.following import Earlier, Own
from headwork.marking.marks import AnswerMark, Verdict, no_working
from headwork.marking.rules import MarkingRules
from headwork.marking.table import MISSING, Malformed, Numbers, is_blank, numbers, unpadded
from headwork.marking.tolerance import CLEAR
from headwork.marking.truth import Truth
from headwork.mistakes.diagnose import Case, Diagnosis, advice
from headwork.mistakes.evidence import Tags, view
from headwork.readings.entries import origin
from headwork.readings.exact import HIDDEN, Entry, Hidden, Matrix
from headwork.readings.floats import Floats, flat
from headwork.readings.moving import by_entry
from headwork.readings.shapes import shape_text
from headwork.sheets.questions import Asked
from headwork.sheets.ready import Ready
from headwork.working import Arithmetic, arithmetic

ROUNDED = "is as near as the rounded numbers that it was worked from"
LOW = -1e4  # what code hides with: from here on e^x is 0 in every kind of float
FARTHEST = 100  # times the tolerance: no rounding of slips explains more
Wrong = list[tuple[int, int]]  # entries of an answer, counted from 0


class Judge:
    """What is the same for every answer to a problem: its rules, and the mistakes it gives occasion for."""

    def __init__(self, ready: Ready, rules: MarkingRules, show_working: bool) -> None:
        self.ready, self.rules, self.show_working = ready, rules, show_working
        self.places, self.notation = ready.problem.places, ready.problem.notation

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Made when the first answer is wrong: a right one needs no catalogue."""
        return Diagnosis(self.ready.ends)

    @cached_property
    def _there(self) -> Diagnosis:
        return Diagnosis(self.ready.last) if len(self.ready.ends) > 1 else self.diagnosis

    def diagnosis_of(self, step: Step) -> Diagnosis:
        """The mistakes that lead to a step: for one on the way there, those of the way back need not be made."""
        return self._there if step in self.ready.forward else self.diagnosis

    def judged(self, truth: Truth, question: Asked, answered: Answered, earlier: Earlier) -> AnswerMark:
        """A part's answer to a question that asks for numbers."""
        near = view(question.found, truth.near[question.found.step])
        shape = (len(near), len(near[0]))
        size = shape[0] * shape[1]
        try:
            raw = answered.take(question, by_entry=True)
            if is_blank(raw):
                return AnswerMark(question.name, "blank", size)
            answer = unpadded(_oriented(numbers(raw, shape), question, shape), self.places)
        except Malformed as error:
            return AnswerMark(question.name, "malformed", size, message=str(error))
        if (len(answer), len(answer[0])) != shape:
            return self._misshapen(truth, question, answer, near)
        answer = _hidden(answer, near)
        if any(isinstance(x.value, Hidden) for row in answer for x in row) and -inf not in flat(near):
            message = "holds −∞, which only a mask may hold; write numbers"
            return AnswerMark(question.name, "malformed", size, message=message)
        return _Attempt(self, truth, question, answer, near).marked(earlier)

    def _misshapen(self, truth: Truth, question: Asked, answer: Numbers, near: Floats) -> AnswerMark:
        """A wrong shape is not a wrong answer, but it may still be one that a mistake predicts."""
        shape = shape_text((len(answer), len(answer[0])))
        message = f"is {shape}, which is not its shape"
        if self.rules.shape:
            message = f"is {shape}; it should be {shape_text((len(near), len(near[0])))}"
        entries = [[x.near for x in row] for row in answer]
        case = Case(truth.hands, question.found, entries, self.within(answer, entries), near, truth.handed)
        tags = self.diagnosis_of(question.found.step).diagnose(case)
        named, said = tuple("+".join(t) for t in tags), advice(tags[0]) if tags else ""
        return AnswerMark(question.name, "malformed", len(flat(near)), tags=named, advice=said, message=message)

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


def _hidden(answer: Numbers, near: Floats) -> Numbers:
    """Where the mask has −∞, a number that is as good: −1e9, as code has it."""
    if -inf not in flat(near):
        return answer
    return tuple(
        tuple(
            replace(x, value=HIDDEN, near=-inf, places=None) if right == -inf and x.near <= LOW else x
            for x, right in zip(*rows, strict=True)
        )
        for rows in zip(answer, near, strict=True)
    )


def _listed(names: list[str]) -> str:
    """Q_1, K_1 and V_1."""
    names = names if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass
class _Attempt:
    """One answer of the right shape."""

    judge: Judge
    truth: Truth
    question: Asked
    answer: Numbers
    near: Floats
    untrue: Wrong = field(default_factory=list)  # the entries that are not as the truth has them

    @property
    def diagnosis(self) -> Diagnosis:
        return self.judge.diagnosis_of(self.question.found.step)

    @property
    def _case(self) -> Case:
        entries = [[x.near for x in row] for row in self.answer]
        handed = self.truth.handed
        return Case(self.truth.hands, self.question.found, entries, self.within(self.near), self.near, handed)

    def marked(self, earlier: Earlier) -> AnswerMark:
        """Held against the truth, against the earlier answers as written, and against what their slips lead to; then
        remembered, as what later answers may follow from."""
        step = self.question.found.step
        self.untrue = wrong = self._wrong(self.near, self._right)
        hand = earlier.in_hand(self.truth, step, self.diagnosis.right) if earlier.slipped else None
        unlike = None if hand is None else self._unlike(hand)
        mark = self._from_own(wrong, earlier, hand, unlike) if wrong else self._mark("right", wrong)
        earlier.remember(self.truth, self.question, self.answer)
        if unlike is None or (unlike and not wrong) or not self._most(unlike):
            hand, unlike = None, wrong
        earlier.keep(self.truth, step, hand)
        if mark.named:
            earlier.named.add(self.question.name)
        if places := {self._place(i, j) for i, j in unlike if self.answer[i][j] is not MISSING}:
            name = self.question.name if mark.verdict == "wrong" else ""
            earlier.slip(self.truth, self.question, self.answer, places, self.judge.places, name)
        return mark

    def _from_own(self, wrong: Wrong, earlier: Earlier, hand: Own | None, unlike: Wrong | None) -> AnswerMark:
        """Not as the truth has it: then from the earlier answers, whichever way explains most."""
        written = earlier.as_written(self.truth, self.question.found.step, self.diagnosis.right)
        there = None if written is None else self._unlike(written)
        owns = [(own, off) for own, off in ((written, there), (hand, unlike)) if own is not None and off is not None]
        for own, off in owns:
            if not off and not own.slips:  # nothing was wrong before it but the last digits, which were rounded
                self.untrue = []
                return self._mark("right", off, message=ROUNDED)
            if not off:
                return self._mark("follows", off, own.slips, self._behind_it(own, earlier))
        if coarse := self._too_coarse(self.near, wrong):
            return self._mark("wrong", wrong, message=coarse)
        for own, off in owns:
            if own.follows and (coarse := self._too_coarse(view(self.question.found, own.follows), off)):
                return self._mark("wrong", off, own.slips, message=coarse)
        for own, off in sorted(owns, key=lambda each: len(each[1])):
            if len(off) < len(wrong) and self._most(off):
                return self._judged(off, owns, own)
        return self._judged(wrong, owns)

    def _behind_it(self, own: Own, earlier: Earlier) -> list[Tags]:
        """An answer that follows may tell the mistake that an earlier one was too small to tell."""
        if not own.slips or not earlier.named.isdisjoint(own.slips):
            return []
        told = self.diagnosis.told(self._case)
        earlier.named |= own.slips if told else set()  # once is enough
        return told

    def _too_coarse(self, near: Floats, off: Wrong) -> str:
        """That the answer only has too few places, if so."""
        numbers = [(self.answer[i][j], near[i][j]) for i, j in off]
        if not all(self.judge.rules.tolerance.too_coarse(*each, self.judge.places) for each in numbers):
            return ""
        places = max(number.places or 0 for number, _ in numbers)
        has = "no decimal places" if places < 1 else f"{places} decimal place{'s' if places > 1 else ''}"
        return f"has {has} where {self.judge.rules.tolerance.asked(self.judge.places)} are asked for"

    def _too_fine(self, off: Wrong) -> str:
        """That the answer gives more places than it knows, if so."""
        places = self.judge.places
        if not all(self.judge.rules.tolerance.too_fine(self.answer[i][j], self.near[i][j], places) for i, j in off):
            return ""
        asked = f"{places} decimal place{'s' if places > 1 else ''}"
        return f"is right in the {asked} asked for, and not in those it gives beyond"

    def _most(self, off: Wrong) -> bool:
        """Whether so few entries are off that the others are no chance."""
        return 2 * len(off) <= len(flat(self.near))

    def _unlike(self, own: Own) -> Wrong | None:
        """The entries that do not follow; None where nothing does."""
        if own.follows is None:
            return None
        near = view(self.question.found, own.follows)
        if own.written is not None:
            return self._wrong(near, lambda: own.meaning)
        within = self.within(near)
        off = self._beyond(near, within)
        farthest = [[FARTHEST * room for room in row] for row in within]
        return self._beyond(near, self.within(near, own)) if off and self._most(self._beyond(near, farthest)) else off

    def _beyond(self, near: Floats, within: Floats) -> Wrong:
        """The entries that lie further from these numbers than they may."""
        entries = enumerate(zip(self.answer, near, within, strict=True))
        return [
            (i, j)
            for i, rows in entries
            for j, (number, follows, room) in enumerate(zip(*rows, strict=True))
            if number.near != follows and not abs(number.near - follows) <= room
        ]

    def within(self, near: Floats, own: Own | None = None) -> Floats:
        """How far the answer may lie from these numbers, with the room that the slips before it give."""
        within = self.judge.within(self.answer, near)
        return within if own is None else by_entry(add, within, view(self.question.found, own.room))

    def _right(self) -> Mapping[Step, Matrix]:
        return self.truth.exact

    def _wrong(self, near: Floats, exact: Callable[[], Mapping[Step, Matrix]]) -> Wrong:
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

    def _judged(self, wrong: Wrong, owns: list[tuple[Own, Wrong]], base: Own | None = None) -> AnswerMark:
        """Wrong, and what it is consistent with."""
        bases = [
            (own.near, partial(self.within, self.near, None if own.written else own))
            for i, (own, _) in enumerate(owns)
            if not i or own.near != owns[0][0].near  # once is enough
        ]
        tags = [] if self._missing() else self.diagnosis.diagnose(self._case, bases)
        if base is None or not base.slips:
            return self._mark("wrong", wrong, tags=tags, message=self._too_fine(wrong))
        return self._mark("wrong", wrong, base.slips, tags, lambda: base.meaning)

    def _mark(
        self,
        verdict: Verdict,
        wrong: Wrong,
        slips: Collection[str] = (),
        tags: list[Tags] | None = None,
        meaning: Callable[[], Mapping[Step, Matrix]] | None = None,
        message: str = "",
    ) -> AnswerMark:
        size, first = len(flat(self.near)), self.judge.notation.first_index
        right = (size - len(wrong)) * max(Fraction(0), 1 - self.judge.rules.penalty * len(slips))
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
            message or self._message(slips),
            self._rows(set(wrong)),
            partial(self._working, wrong[0], meaning or self._right) if shown else no_working,
        )

    def _missing(self) -> int:
        return sum(number is MISSING for row in self.answer for number in row)

    def _rows(self, wrong: Collection[tuple[int, int]]) -> tuple[tuple[tuple[str, str], ...], ...]:
        """What was handed in, entry by entry."""

        def verdict(i: int, j: int) -> str:
            if self.answer[i][j] is MISSING:
                return "blank"
            return "wrong" if (i, j) in wrong else "follows" if (i, j) in self.untrue else "right"

        return tuple(
            tuple((number.text, verdict(i, j)) for j, number in enumerate(row)) for i, row in enumerate(self.answer)
        )

    def _message(self, slips: Collection[str]) -> str:
        missing = self._missing()
        are = "entry that is" if missing == 1 else "entries that are"
        said = [f"has {missing} {are} blank or could not be read"] if missing else []
        said += [f"carries on from {_listed(sorted(slips))}, marked wrong"] if slips else []
        return "; ".join(said)

    def _working(self, entry: tuple[int, int], meaning: Callable[[], Mapping[Step, Matrix]]) -> Arithmetic | None:
        """How the first wrong entry is worked out, from the student's own numbers where those carry on."""
        row, column = self._place(*entry)
        step = self.question.found.step
        try:
            return arithmetic(origin(step, row, column, meaning()), self.judge.notation)
        except HeadworkError:
            return None
