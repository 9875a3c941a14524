"""A problem as a program in Maxima: what is given, in every variant; what is right; how an answer is worked out of the
answers before it; what every mistake predicts for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import count

from headwork.errors import HeadworkError
from headwork.graph import Step, needed
from headwork.marking.graders.fields import Field
from headwork.marking.graders.maxima import assignments, matrix_text, maxima, real
from headwork.marking.mark import ProblemMarker
from headwork.marking.rules import MarkingRules
from headwork.marking.tolerance import CLEAR, Tolerance, Written
from headwork.marking.truth import Truth
from headwork.mistakes.evidence import evidence, view
from headwork.readings.exact import Matrix
from headwork.readings.floats import Floats
from headwork.sheets.questions import Asked
from headwork.sheets.sheet import NUMBERS

UNTYPED = Written(Fraction(0), 0.0, None)
GUARD = 2  # places more than asked for, in the key and in the question's own tests


@dataclass(frozen=True)
class Mistaken:
    """A mistake in one answer: its tag, and the step's matrix with it."""

    tag: str
    matrix: str
    place: int  # among the mistakes that the problem gives occasion for


class Answer:
    """One answer: its step by number, which of the step's rows and columns it has, and the mistakes that show in it."""

    def __init__(self, number: int, field: Field, truth: Truth, question: Asked, step: int) -> None:
        self.number, self.field, self.truth, self.question, self.step = number, field, truth, question, step
        self.rows, self.columns = len(field.entries), len(field.entries[0])
        found = question.found
        self.before = (found.row or 0, found.column or 0)
        self.place = truth.hands or ""  # the part, where it hands matrices over
        self.mistakes: list[Mistaken] = []

    @property
    def size(self) -> int:
        return self.rows * self.columns

    def part_of(self, matrix: str) -> str:
        """Of a step's matrix what the answer has."""
        row, column = self.before
        if self.question.found.row is None:
            return matrix
        return f"hw_split(hw_some({matrix},{row + 1},{row + 1}),{column + 1},{column + self.columns})"


class Program:
    """One problem of a family of sheets."""

    def __init__(self, variants: Sequence[ProblemMarker], fields: Sequence[Field]) -> None:
        self.first, self.variants = variants[0], variants
        if len({_form(variant) for variant in variants}) > 1:
            raise HeadworkError(
                "sheets of one question differ in their numbers alone: one formula, one size, the same parts"
            )
        self.rules: MarkingRules = self.first.rules
        self.places = self.first.problem.places
        self.given: dict[tuple[str, Step], str] = {}  # a matrix that a part has, by the part's label or ""
        self.steps: list[Step] = []
        self.answers: list[Answer] = []
        self._collect(fields)
        self.truth: dict[tuple[str, Step], str] = {}
        self.lines = [*self._givens(), *self._right(), *self._rules(), *self._work()]
        self._mistakes()

    def _collect(self, fields: Sequence[Field]) -> None:
        by_name = {(field.part.rpartition(".")[2], field.name): field for field in fields}
        for label, truth in self.first.truths.items():
            if truth.part.kind not in NUMBERS:
                continue
            for question in truth.asked:
                step = question.found.step
                if step in self.steps and any(t.part.given for t in self.first.truths.values()):
                    raise HeadworkError(f"{question.name} is asked for twice, and a part hands matrices over; ask once")
                if step not in self.steps:
                    self.steps.append(step)
                field = by_name[label, question.name]
                self.answers.append(Answer(len(self.answers) + 1, field, truth, question, self.steps.index(step) + 1))

    def _handed(self, label: str) -> dict[Step, str]:
        """What a part is given, by the names of the matrices."""
        truth = self.first.truths[label]
        own = {self.first.ready.handed_step(key) for key in truth.part.given}
        return {step: self.given[label if step in own else "", step] for step in truth.handed_exact}

    def _givens(self) -> Iterator[str]:
        """hwg1: the matrix as it is printed, one of the variants'; hwx1: the same in float64."""
        if len(self.variants) > 1:
            yield f"hw_variant: 1+rand({len(self.variants)});"
        numbers = count(1)
        for label, step in self._given_places():
            texts = [matrix_text(matrix) for matrix in self._given_in_variants(label, step)]
            number = next(numbers)
            chosen = texts[0] if len(set(texts)) == 1 else f"[{','.join(texts)}][hw_variant]"
            yield f"hwg{number}: {chosen};"
            yield f"hwx{number}: float(hwg{number});"
            self.given[label, step] = f"hwx{number}"

    def _given_places(self) -> Iterator[tuple[str, Step]]:
        yield from (("", step) for step in self.first.ready.handed)
        for part in self.first.problem.parts:
            if part.kind in NUMBERS:
                yield from ((part.label, self.first.ready.handed_step(key)) for key in part.given)

    def _given_in_variants(self, label: str, step: Step) -> Iterator[Matrix]:
        place = [*self.first.ready.order].index(step)
        for variant in self.variants:
            here = [*variant.ready.order][place]
            yield variant.truths[label].handed_exact[here] if label else variant.ready.handed[here]

    def _right(self) -> Iterator[str]:
        """hwt1 …: every step that is asked for, and what leads there."""
        numbers = count(1)
        named: dict[tuple[str, Step], str] = {}

        def name(step: Step) -> str:
            if (label, step) not in named:
                named[label, step] = f"hwt{next(numbers)}"
            return named[label, step]

        for answer in self.answers:
            label = answer.place
            known = {step: text for (place, step), text in self.truth.items() if place == label}
            handed = self._handed(answer.truth.part.label)
            meaning, lines = assignments(answer.question.found.step, {**known, **handed}, name)
            yield from lines
            self.truth |= {(label, step): text for step, text in meaning.items()}
        places = [self.truth[self._asking(step).place, step] for step in self.steps]
        yield f"hw_true: [{','.join(places)}];"
        asks = [f"[{a.step},{a.rows},{a.columns},{a.before[0]},{a.before[1]}]" for a in self.answers]
        yield f"hw_ask: [{','.join(asks)}];"

    def _asking(self, step: Step) -> Answer:
        return next(answer for answer in self.answers if answer.question.found.step is step)

    def _rules(self) -> Iterator[str]:
        yield f"hw_asked: {self.places};"
        yield f"hw_room(hw_p,hw_y) := {_room(self.rules.tolerance)};"
        yield f"hw_kept(hw_n) := max(0,1-hw_n*{real(self.rules.penalty)});"

    def _work(self) -> Iterator[str]:
        """A step out of the steps that were asked for before it."""
        rests, ways = [], []
        for number, step in enumerate(self.steps):
            handed = self._handed(self._asking(step).truth.part.label)
            before = {s: f"hw_wo[{i}]" for i, s in enumerate(self.steps[:number], 1) if s not in handed}
            ways.append(maxima(step, {**handed, **before}))
            resting = [s for s in needed(step, {**handed, **before}) if s in before]
            rests.append("[" + ",".join(str(self.steps.index(s) + 1) for s in resting) + "]")
        yield f"hw_rest: [{','.join(rests)}];"
        chain = " else".join(f"if hw_ws={i} then {way}" for i, way in enumerate(ways, 1))
        yield f"hw_work(hw_ws,hw_wo) := {chain};"

    def _mistakes(self) -> None:
        """Those that tell enough in every variant, each number once."""
        for answer in self.answers:
            told = [self._told(variant, answer) for variant in self.variants]
            common = [place for place in told[0] if all(place in other for other in told)]
            seen: set[str] = set()
            for place in common:
                tag, graph = self.first.judge.diagnosis.single[place]
                step = graph.here(answer.question.found.step)
                assert step is not None
                own = ((s, text) for (place, s), text in self.truth.items() if place == answer.place)
                known = {s: text for s, text in own if s in graph.all and s is not step}
                handed = {here: t for s, t in self._handed(answer.truth.part.label).items() if (here := graph.here(s))}
                matrix = maxima(step, {**known, **handed})
                if matrix not in seen:
                    seen.add(matrix)
                    answer.mistakes.append(Mistaken(tag, matrix, place))

    def _told(self, variant: ProblemMarker, answer: Answer) -> list[int]:
        """Which of the mistakes, by number, an answer with the places asked for would tell in a variant."""
        truth = variant.truths[answer.truth.part.label]
        question = next(q for q in truth.asked if q.name == answer.question.name)
        right = view(question.found, truth.near[question.found.step])
        diagnosis = variant.judge.diagnosis
        table = diagnosis.table(truth.hands, question.found, right, truth.handed, 1)
        within = [[self._room_of(variant, x) for x in row] for row in right]
        found = []
        for place, predicted in enumerate(diagnosis.predicted(truth.hands, question.found.step, truth.handed)):
            if predicted is None:
                continue
            shown = view(question.found, predicted) if _covers(question, predicted) else [[]]
            alike = (len(shown), len(shown[0])) == (len(right), len(right[0]))
            if alike and evidence(shown, table.right, within) >= table.enough:
                found.append(place)
        return found

    def _share(self, variant: ProblemMarker, answer: Answer, mistaken: Mistaken) -> Fraction:
        """What a mistaken answer alone earns in a variant, of 1."""
        truth = variant.truths[answer.truth.part.label]
        question = next(q for q in truth.asked if q.name == answer.question.name)
        predicted = variant.judge.diagnosis.single[mistaken.place][1].predict(question.found.step, truth.handed)
        assert predicted is not None
        places = self.places + GUARD
        rows = [[f"{x:.{places}f}" for x in row] for row in view(question.found, predicted)]
        given = {truth.part.label: {question.name: rows}}
        mark = next(m for m in variant.mark(given) if m.label == variant.prefix + truth.part.label)
        return next(a.right / a.entries for a in mark.answers if a.name == question.name)

    @staticmethod
    def _room_of(variant: ProblemMarker, right: float) -> float:
        return max(variant.rules.tolerance.room_near(UNTYPED, right, variant.problem.places), 1e-9)

    @cached_property
    def own_tests(self) -> list[tuple[Answer, Mistaken, Fraction]]:
        """Every mistake once, in the first answer in which it earns the same in all variants, and what it earns."""
        first: dict[str, tuple[Answer, Mistaken, Fraction]] = {}
        for answer in self.answers:
            for mistaken in answer.mistakes:
                if mistaken.tag not in first:
                    shares = {self._share(variant, answer, mistaken) for variant in self.variants}
                    if len(shares) == 1:
                        first[mistaken.tag] = (answer, mistaken, shares.pop())
        return list(first.values())


def _form(variant: ProblemMarker) -> object:
    """Everything about a problem but its numbers."""
    problem = variant.problem
    given = tuple((key, len(matrix), len(matrix[0])) for key, matrix in problem.given.items())
    parts = tuple((p.label, p.kind, p.find, tuple(p.given), p.loss, str(p.rate)) for p in problem.parts)
    sizes = (problem.formula, problem.heads, problem.kv_heads, str(problem.scale), problem.places, problem.softmax)
    varied = (str(variant.ready.how), problem.blocks, problem.around, str(problem.eps))
    return sizes, varied, str(problem.mask), str(problem.marking), str(problem.notation), given, parts


def _covers(question: Asked, matrix: Floats) -> bool:
    found = question.found
    return (found.row or 0) < len(matrix) and (found.column or 0) < len(matrix[0])


def _room(tolerance: Tolerance) -> str:
    """How far a number with so many places may lie from the right one. A whole unit away is wrong, so a little less."""
    less, more = 1 - CLEAR, 1 + CLEAR
    if tolerance.rule == "last-place":
        return f"{less!r}*10.0^(-max(hw_asked,hw_p))"
    if tolerance.rule == "places":
        return f"{less!r}*10.0^(-{tolerance.places})"
    if tolerance.rule == "figures":
        unit = f"10.0^(floor(log(abs(hw_y))/log(10.0)+1.0e-12)+1-{tolerance.figures})"
        return f"if abs(hw_y) < 1.0e-12 then 1.0e-12 else {less!r}*{unit}"
    if tolerance.rule == "within":
        return f"{more!r}*({float(tolerance.absolute)!r}+{float(tolerance.relative)!r}*abs(hw_y))+1.0e-12"
    return "1.0e-9"
