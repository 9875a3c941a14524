"""A form with one line of text for every answer, marked whole: for platforms that run headwork behind a form of their
own and want a share of the points and a few words for each line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from headwork.marking.answers import Answers
from headwork.marking.graders.fields import Field, fields, shares
from headwork.marking.mark import Marker
from headwork.marking.marks import no_working
from headwork.marking.report import VERDICTS, explanation
from headwork.sheets.sheet import Sheet

FORM = "Type the rows with semicolons between them: 1 0.25; -3 7/2"

UNREADABLE = "could not be read"  # whether that costs an attempt is the platform's to say


@dataclass(frozen=True)
class LineMark:
    """What one line earned of its points, and why."""

    field: Field
    share: Fraction
    says: str


def marked_lines(sheet: Sheet, typed: Mapping[str, str]) -> Iterator[LineMark]:
    """`typed` is by the fields' words. Students try again there, so no working shows a right number."""
    asked = {(field.part, field.name): field for field in fields(sheet)}
    given: dict[str, dict[str, str]] = {}
    for field in asked.values():
        if text := typed.get(field.word):
            given.setdefault(field.part, {})[field.name] = text
    for part in Marker(sheet).mark(Answers("student", given)).parts:
        for answer, earned, most in shares(part):
            says = explanation(replace(answer, working=no_working)).replace(VERDICTS["malformed"], UNREADABLE)
            yield LineMark(asked[part.label, answer.name], earned / most if most else Fraction(0), says)


def whole_points(asked: Sequence[Field]) -> dict[str, int]:
    """Every field's points as a whole number, in the same proportion: by the fields' words."""
    unit = lcm(*(field.points.denominator for field in asked))
    return {field.word: int(field.points * unit) for field in asked}


def places_to_type(field: Field) -> int:
    """About how many characters a line for the field has room for."""
    size = sum(map(len, field.entries)) or 3
    return min(60, max(12, 8 * size))
