"""An answer entry by entry, for platforms that compare one number at a time: what is right in each box, how far off is
still right, and which other numbers say which mistake."""

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

from headwork.errors import HeadworkError
from headwork.marking.graders.fields import Field, consistent_with, fields
from headwork.marking.mark import Marker, ProblemMarker
from headwork.marking.tolerance import Written
from headwork.marking.truth import Truth
from headwork.mistakes.evidence import view
from headwork.numbers.digits import exact_decimal
from headwork.readings.exact import Hidden
from headwork.sheets.questions import Asked
from headwork.sheets.sheet import NUMBERS

LEAST = 1e-6  # of the room is kept off, where a number that lies a whole unit away is wrong
DIGITS = 12
HIDDEN = ("-inf", "-∞", "−∞", "-oo")  # how −∞ is typed


@dataclass(frozen=True)
class Prediction:
    """A number that a mistake puts into a box, and what is said of it."""

    value: float
    says: str


@dataclass(frozen=True)
class Box:
    """One entry: its name, its points, the right number (−∞ where a mask hides it) and the room around it."""

    part: str
    name: str
    points: Fraction
    right: float
    room: float
    predictions: tuple[Prediction, ...] = ()


Boxed = dict[tuple[str, str], list[list[Box]]]  # by part and name, in rows


def boxed(marker: Marker) -> Boxed:
    """Every answer in numbers, as boxes."""
    asked = {(field.part, field.name): field for field in fields(marker)}
    found: Boxed = {}
    for problem in marker.problems:
        for label, truth in problem.truths.items():
            if truth.part.kind in NUMBERS:
                for question in truth.asked:
                    key = (problem.prefix + label, question.name)
                    found[key] = _boxes(problem, truth, question, asked[key])
    if not found:
        raise HeadworkError(
            "the sheet asks for no numbers, and this platform takes nothing else; choose another grader"
        )
    return found


def _boxes(problem: ProblemMarker, truth: Truth, question: Asked, field: Field) -> list[list[Box]]:
    right = view(question.found, truth.near[question.found.step])
    predicted = problem.judge.diagnosis.table(truth.hands, question.found, right, truth.handed, 1)
    alike = [(tags[0], matrix) for tags, matrix, _ in predicted.of_shape.get((len(right), len(right[0])), ())]
    each = field.points / (len(right) * len(right[0]))
    rows = []
    for i, row in enumerate(right):
        boxes = []
        for j, number in enumerate(row):
            room = _room(problem, truth, question, i, j, number)
            others = [(tag, matrix[i][j]) for tag, matrix in alike if isfinite(matrix[i][j])]
            boxes.append(Box(field.part, field.entries[i][j], each, number, room, _told_apart(number, room, others)))
        rows.append(boxes)
    return rows


def _room(problem: ProblemMarker, truth: Truth, question: Asked, i: int, j: int, right: float) -> float:
    """How far from the right number an answer with as many places as are asked for may lie."""
    rule = problem.rules.tolerance
    if not isfinite(right):
        return 0.0
    room = float(rule.room(Written(Fraction(0), 0.0, None), right, problem.problem.places))
    if rule.rule == "exact":
        found = question.found
        exact = truth.exact[found.step][i + (found.row or 0)][j + (found.column or 0)]
        if isinstance(exact, Hidden) or not isinstance(exact, Fraction) or exact_decimal(exact, DIGITS) is None:
            raise HeadworkError(
                f"{question.name} has entries that no decimal is exactly, and this platform takes decimals; "
                "choose another tolerance in [marking]"
            )
    return room if rule.closed else room * (1 - LEAST)


def _told_apart(right: float, room: float, predicted: list[tuple[str, float]]) -> tuple[Prediction, ...]:
    """The numbers that one mistake alone would put here. A whole number in one box says too little about anybody."""
    apart = max(2 * room, 1e-9)
    kept: list[Prediction] = []
    for tag, value in predicted:
        rivals = {other for other, number in predicted if abs(number - value) <= apart}
        known = any(abs(told.value - value) <= apart for told in kept)
        if rivals == {tag} and not known and abs(value - right) > apart and abs(value - round(value)) > apart:
            kept.append(Prediction(value, consistent_with(tag)))
    return tuple(kept)


def number_text(value: float) -> str:
    """A decimal that every platform reads, without an exponent.

    >>> number_text(-0.0), number_text(2 / 3), number_text(1e-9)
    ('0', '0.666666666667', '0.000000001')
    """
    plain = f"{value:.{DIGITS}f}".rstrip("0").rstrip(".")
    return "0" if plain in ("-0", "") else plain
