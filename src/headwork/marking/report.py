"""Marks as blocks of a page, so that every format sets them: a student's report, and a class's."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction

from headwork.marking.marks import AnswerMark, Marks, PartMark, Student
from headwork.marking.tally import BINS, MOST_LISTED, Tally
from headwork.maths import Number, Prose
from headwork.mistakes.diagnose import advice
from headwork.numbers.digits import exact_decimal
from headwork.render.arithmetic import arithmetic_display
from headwork.render.blocks import SIGNS, Block, Display, Finding, Heading, Marked, Paragraph, Question, Table, Title
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
    """A short decimal, or a small fraction, or about so much.

    >>> points(Fraction(9, 4)), points(Fraction(1, 3)), points(Fraction(125, 18))
    ('2.25', '1/3', '6.94')
    """
    return exact_decimal(number, 4) or (
        str(number) if number < 1 and number.denominator < 10 else f"{float(number):.2f}"
    )


def summary(marks: Marks) -> str:
    """The points in a line, and why nothing could be read or when a number is right."""
    said = marks.note or f"A number is right if it is {marks.tolerance}."
    return f"{points(marks.score)} of {points(marks.max_score)}. {said}"


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


def returned_blocks(marks: Marks, places: int = PLACES) -> Iterator[Block]:
    """A page to hand back: what was handed in, entry by entry, and what became of it."""
    yield Title(marks.title)
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


def class_blocks(title: str, students: Iterable[Marks], listed: Collection[Student] = ()) -> Iterator[Block]:
    """Everybody on one page: the spread, the mistakes and who made them, each part and each answer, the list; and who
    of a class list handed in nothing."""
    tally, absent = Tally(), dict.fromkeys(listed)
    for marks in students:
        tally.add(marks)
        if marks.listed:
            absent.pop(marks.listed, None)
    yield Title(title)
    mean = points(Fraction(round(tally.total / tally.students * 100), 100)) if tally.students else "0"
    unreadable = f"; {tally.unreadable:,} with something that could not be read" if tally.unreadable else ""
    earned = f"on average {mean} of {points(tally.most)}, spread {tally.spread:.0%}"
    yield Paragraph((f"{tally.students:,} students, {earned}{unreadable}.",))
    yield from _mistakes(tally)
    yield from _parts(tally)
    yield Heading("Answers")
    went = tuple(((name,), *(_count(found[v]) for v in VERDICTS)) for name, found in tally.answers.items())
    yield Table((("answer",), *((verdict,) for verdict in VERDICTS)), went, left=1)
    yield from _look_alikes(tally)
    yield from _list(tally)
    if absent:
        names = [str(student) for student in absent]
        yield Paragraph((f"Handed in nothing: {_names(names[:MOST_LISTED], len(names))}.",))


def _mistakes(tally: Tally) -> Iterator[Block]:
    yield Heading("Mistakes, the commonest first")
    if not tally.tags:
        yield Paragraph(("None was named.",))
        return
    rows = tuple(
        ((tag,), (advice((tag,)),), (_names(tally.names[tag], number),), _count(number))
        for tag, number in tally.tags.most_common()
    )
    yield Table((("consistent with",), ("advice",), ("who",), ("students",)), rows, left=3)


def _names(names: list[str], number: int) -> str:
    more = f" and {number - len(names):,} more" if number > len(names) else ""
    return ", ".join(names) + more


def _parts(tally: Tally) -> Iterator[Block]:
    """Difficulty is the mean share earned; discrimination the correlation with all the other parts."""
    yield Heading("Parts")
    rows = []
    for label, part in tally.parts.items():
        tells = "–" if part.discrimination is None else f"{part.discrimination:.2f}".replace("-", "−")
        rows.append(((f"({label})",), (Number(f"{part.difficulty:.2f}"),), (tells,)))
    yield Table((("part",), ("difficulty",), ("discrimination",)), tuple(rows), left=1)
    yield Paragraph(
        ("Difficulty: the share earned on average. Discrimination: how a part goes with all the others, −1 to 1.",),
        "aside",
    )
    yield Heading("Spread")
    step = 100 // BINS
    spread = tuple(((f"{i * step} % to {(i + 1) * step} %",), _count(n)) for i, n in enumerate(tally.bins))
    yield Table((("points earned",), ("students",)), spread, left=1)


def _look_alikes(tally: Tally) -> Iterator[Block]:
    pairs = tally.similar.pairs()
    if pairs:
        yield Heading("To be looked at side by side")
        rows = tuple(((one,), (other,), _count(number)) for one, other, number in pairs[:MOST_LISTED])
        yield Table((("student",), ("student",), ("unusual wrong numbers in common",)), rows, left=2)


def _list(tally: Tally) -> Iterator[Block]:
    yield Heading("Students")
    rows = tuple(((name,), (", ".join(tags),), (points(score),)) for name, score, tags in tally.listed)
    yield Table((("student",), ("consistent with",), ("points",)), rows, left=2)
    often = [name for name, times in Counter(name for name, *_ in tally.listed).items() if times > 1]
    if often:
        said = f"Handed in more than once: {_names(often, len(often))}. Each counts here, and the last in a gradebook."
        yield Paragraph((said,))
    if tally.students > len(tally.listed):
        yield Paragraph((f"The first {len(tally.listed):,}; `--format csv` has everybody.",), "aside")


def _count(number: int) -> Prose:
    return (Number(f"{number:,}"),)
