"""Marks as blocks of a page, so that every format sets them: a student's report, and a class's."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from headwork.marking.marks import AnswerMark, Marks, PartMark
from headwork.maths import Number, Prose
from headwork.mistakes.diagnose import advice
from headwork.numbers.digits import exact_decimal
from headwork.render.arithmetic import arithmetic_display
from headwork.render.blocks import (
    SIGNS,
    Block,
    Display,
    Finding,
    Heading,
    Marked,
    Paragraph,
    Question,
    Table,
    Title,
)
from headwork.render.cells import Style

PLACES = 4  # of numbers in the working of a wrong entry, at the least
VERDICTS = {
    "right": "right",
    "follows": "right from there on: it follows from an earlier answer",
    "wrong": "wrong",
    "malformed": "could not be read, and counts as no attempt",
    "blank": "blank",
}
SAID = {"right": "right", "follows": "follows from an earlier answer", "wrong": "wrong", "blank": "blank or unreadable"}


def points(number: Fraction) -> str:
    """A short decimal where there is one, a fraction where not.

    >>> points(Fraction(9, 4)), points(Fraction(1, 3))
    ('2.25', '1/3')
    """
    return exact_decimal(number, 4) or str(number)


def students_blocks(title: str, students: Iterable[Marks], places: int = PLACES) -> Iterator[Block]:
    """Every student's report under one another."""
    yield Title(title)
    for marks in students:
        yield from student_blocks(marks, places)


def student_blocks(marks: Marks, places: int = PLACES, *, own: bool = False) -> Iterator[Block]:
    """One student: each part, each wrong entry, the working of the first, what it is consistent with; with their `own`
    matrices too, on a page to hand back."""
    yield Heading(f"{marks.student}: {points(marks.score)} of {points(marks.max_score)}")
    if marks.note:
        yield Paragraph((marks.note,))
    for part in marks.parts:
        yield from _part(part, Style(max(PLACES, places)), own)
    yield Paragraph((f"A number is right if it is {marks.tolerance}.",))


def _part(part: PartMark, style: Style, own: bool) -> Iterator[Block]:
    yield Question(part.label, (f"{points(part.score)} of {points(part.max_score)}",) if part.max_score else ())
    yield from (Paragraph((note,), "line") for note in part.notes)
    yield from (finding(answer, style, own) for answer in part.answers)


_OF_IT = ("is", "has", "holds", "must")  # how messages about a whole answer begin


def finding(answer: AnswerMark, style: Style, own: bool = False) -> Finding:
    """An answer's verdict, which entries are wrong, and what explains it."""
    text = VERDICTS[answer.verdict] + _wrong_entries(answer)
    handed_in = (Marked(answer.rows),) if own and answer.rows else ()
    return Finding(answer.name, answer.verdict, text, (*handed_in, *_explained(answer, style)))


def returned_blocks(title: str, marks: Marks, places: int = PLACES) -> Iterator[Block]:
    """A page to hand back: what was handed in, entry by entry, and what became of it."""
    yield Title(title)
    yield from student_blocks(marks, places, own=True)
    signs = ", ".join(f"{SIGNS[verdict]} {said}" for verdict, said in SAID.items())
    yield Paragraph((f"{signs}.",), "aside")


def explanation(answer: AnswerMark) -> str:
    """The same as text, for those who show nothing else."""
    from headwork.render.text import document

    return document([finding(answer, Style(PLACES))]).rstrip("\n")


def _explained(answer: AnswerMark, style: Style) -> Iterator[Display | Paragraph]:
    """Why, the working of the first wrong entry, what it is consistent with, the advice."""
    if answer.message:
        said = answer.message if answer.message.partition(" ")[0] not in _OF_IT else f"It {answer.message}"
        yield Paragraph((f"{said[0].upper()}{said[1:]}.",), "line")
    working = answer.working()
    if working is not None:
        yield arithmetic_display(working, style)
    if answer.tags:
        tags = " or ".join(tag.replace("+", " and ") for tag in answer.tags)
        yield Paragraph((f"consistent with {tags}",), "line")
        yield Paragraph((answer.advice,), "line")


def _wrong_entries(answer: AnswerMark) -> str:
    """ " in entry [2,3]": which entries differ."""
    if not answer.entries_wrong:
        return ""
    places = [f"[{row},{column}]" for row, column in answer.entries_wrong]
    shown = ", ".join(places[:6]) + (f" and {len(places) - 6} more" if len(places) > 6 else "")
    return f" in {'entry' if len(places) == 1 else 'entries'} {shown}"


@dataclass
class Tally:
    """What is counted over a class: students are taken one at a time, and only counts are kept."""

    students: int = 0
    unreadable: int = 0
    total: Fraction = Fraction(0)
    most: Fraction = Fraction(0)
    tags: Counter[str] = field(default_factory=Counter)
    answers: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, marks: Marks) -> None:
        self.students += 1
        self.unreadable += bool(marks.note)
        self.total += marks.score
        self.most = max(self.most, marks.max_score)
        self.tags.update(marks.tags)
        for part in marks.parts:
            for answer in part.answers:
                self.answers.setdefault(f"({part.label}) {answer.name}", Counter())[answer.verdict] += 1


def class_blocks(title: str, students: Iterable[Marks]) -> Iterator[Block]:
    """Counts of every tag, the commonest first, and how each answer went."""
    tally = Tally()
    for marks in students:
        tally.add(marks)
    yield Title(title)
    mean = points(Fraction(round(tally.total / tally.students * 100), 100)) if tally.students else "0"
    unreadable = f"; {tally.unreadable:,} with something that could not be read" if tally.unreadable else ""
    yield Paragraph((f"{tally.students:,} students, on average {mean} of {points(tally.most)}{unreadable}.",))
    yield Heading("Mistakes, the commonest first")
    if tally.tags:
        named = tuple(((tag,), (advice((tag,)),), _count(number)) for tag, number in tally.tags.most_common())
        yield Table((("consistent with",), ("advice",), ("students",)), named, left=2)
    else:
        yield Paragraph(("None was named.",))
    yield Heading("Answers")
    went = tuple(((name,), *(_count(found[v]) for v in VERDICTS)) for name, found in tally.answers.items())
    yield Table((("answer",), *((verdict,) for verdict in VERDICTS)), went, left=1)


def _count(number: int) -> Prose:
    return (Number(f"{number:,}"),)
