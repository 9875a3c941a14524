"""What a sheet asks for, as fields of a form: a name, a shape, its points."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from headwork.marking.answers import Answers
from headwork.marking.mark import Marker
from headwork.marking.marks import AnswerMark, PartMark
from headwork.notation import Name
from headwork.sheets.questions import identifier, printed_name
from headwork.sheets.sheet import NUMBERS, Sheet

NAMELESS = Name("")


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


def fields(sheet: Sheet) -> tuple[Field, ...]:
    """Every answer that can be marked, in order."""
    marker = Marker(sheet)
    looks = dict(_looks(marker))
    return tuple(
        Field(part.label, answer.name, most, *looks[part.label, answer.name])
        for part in marker.mark(Answers("")).parts
        for answer, _, most in shares(part)
    )


def _looks(marker: Marker) -> Iterator[tuple[tuple[str, str], tuple[Name, tuple[tuple[str, ...], ...]]]]:
    """The printed name of every question, and its entries."""
    for number, problem in enumerate(marker.problems, 1):
        prefix = f"{number}." if len(marker.problems) > 1 else ""
        for label, truth in problem.truths.items():
            for question in truth.asked:
                printed = printed_name(question.found, problem.problem.notation)
                yield (prefix + label, question.name), (printed, question.entries if truth.part.kind in NUMBERS else ())


def shares(part: PartMark) -> list[tuple[AnswerMark, Fraction, Fraction]]:
    """A part's points shared out among its answers: what each earned, of what."""
    entries = sum(answer.entries for answer in part.answers)
    each = part.max_score / entries if entries else Fraction(0)
    return [(answer, each * answer.right, each * answer.entries) for answer in part.answers]
