"""What a sheet asks for, as fields of a form: a name, a shape, its points; and a form marked whole.

Platforms that run headwork behind a form of their own have one line of text for every answer, and want a share of the
points and a few words for each.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from headwork.marking.answers import Answers
from headwork.marking.mark import Marker
from headwork.marking.marks import AnswerMark, PartMark, no_working
from headwork.marking.report import VERDICTS, explanation
from headwork.mistakes.diagnose import advice
from headwork.notation import Name
from headwork.sheets.questions import identifier, printed_name
from headwork.sheets.sheet import NUMBERS

NAMELESS = Name("")
FORM = "Type the rows with semicolons between them: 1 0.25; -3 7/2"
UNREADABLE = "could not be read"  # whether that costs an attempt is the platform's to say


@dataclass(frozen=True)
class Field:
    """One answer. `part` is the label as marks have it, `shown` the name that the page prints; a shape or a count is
    one line of text, and has no entries."""

    part: str
    name: str
    points: Fraction
    shown: Name = NAMELESS
    entries: tuple[tuple[str, ...], ...] = ()  # their names, in rows

    @property
    def python(self) -> str:
        """The answer's name as Python takes it.

        >>> Field("b", "scores_1[2,1]", Fraction(1)).python
        'scores_1_2_1'
        """
        return identifier(self.name)

    @property
    def word(self) -> str:
        """The field as a name that every platform takes.

        >>> Field("2.b", "scores_1[2,1]", Fraction(1)).word
        'p2_b_scores_1_2_1'
        """
        plain = identifier(f"{self.part}_{self.name}")
        return f"p{plain}" if plain[0].isdigit() else plain


def fields(marker: Marker) -> tuple[Field, ...]:
    """Every answer that can be marked, in order."""
    looks = dict(_looks(marker))
    return tuple(
        Field(part.label, answer.name, most, *looks[part.label, answer.name])
        for part in marker.mark(Answers("")).parts
        for answer, _, most in shares(part)
    )


def _looks(marker: Marker) -> Iterator[tuple[tuple[str, str], tuple[Name, tuple[tuple[str, ...], ...]]]]:
    """The printed name of every question, and its entries."""
    for problem in marker.problems:
        for label, truth in problem.truths.items():
            for question in truth.asked:
                printed = printed_name(question.found, problem.problem.notation)
                entries = question.entries if truth.part.kind in NUMBERS else ()
                yield (problem.prefix + label, question.name), (printed, entries)


def consistent_with(tag: str) -> str:
    """What is said where a mistake explains an answer."""
    return f"Consistent with {tag}. {advice((tag,))}"


def shares(part: PartMark) -> list[tuple[AnswerMark, Fraction, Fraction]]:
    """A part's points shared out among its answers: what each earned, of what."""
    entries = sum(answer.entries for answer in part.answers)
    each = part.max_score / entries if entries else Fraction(0)
    return [(answer, each * answer.right, each * answer.entries) for answer in part.answers]


@dataclass(frozen=True)
class LineMark:
    """What one line earned of its points, and why."""

    field: Field
    share: Fraction
    says: str


def marked_lines(marker: Marker, typed: Mapping[str, str]) -> Iterator[LineMark]:
    """`typed` is by the fields' words. Students try again there, so no working shows a right number."""
    asked = {(field.part, field.name): field for field in fields(marker)}
    given: dict[str, dict[str, str]] = {}
    for field in asked.values():
        if text := typed.get(field.word):
            given.setdefault(field.part, {})[field.name] = text
    for part in marker.mark(Answers("student", given)).parts:
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
