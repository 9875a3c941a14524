"""Marks as a page of text."""

from __future__ import annotations

from collections.abc import Iterator

from headwork.marking.marks import AnswerMark, Marks, PartMark
from headwork.marking.points import points
from headwork.render.arithmetic import arithmetic_text
from headwork.render.cells import Style


def marks_text(marks: Marks, places: int = 2) -> str:
    """One student: each part, each wrong entry, the working of the first, what it is consistent with."""
    title = f"{marks.student}: {points(marks.score)} of {points(marks.max_score)}"
    lines = [title, "═" * len(title)]
    if marks.note:
        lines += ["", marks.note]
    for part in marks.parts:
        lines += _part(part, places)
    return "\n".join([*lines, "", f"A number is right if it is {marks.tolerance}."]) + "\n"


def _part(part: PartMark, places: int) -> Iterator[str]:
    yield ""
    yield f"({part.label}) {points(part.score)} of {points(part.max_score)}" if part.max_score else f"({part.label})"
    for note in part.notes:
        yield f"    {note}"
    for answer in part.answers:
        yield from answer_lines(answer, places)


def answer_lines(answer: AnswerMark, places: int) -> Iterator[str]:
    """A line for an answer, and below it what there is to say."""
    yield f"    {answer.name}: {VERDICTS[answer.verdict]}{wrong_entries(answer)}"
    for line in explained(answer, places):
        yield f"        {line}"


def explained(answer: AnswerMark, places: int) -> Iterator[str]:
    """Why, the working of the first wrong entry, what it is consistent with, the advice."""
    if answer.message:
        yield f"{'It ' if answer.verdict == 'malformed' else ''}{answer.message}."
    working = answer.working()
    if working is not None:
        yield from arithmetic_text(working, Style(places))
    if answer.tags:
        yield f"consistent with {' or '.join(tag.replace('+', ' and ') for tag in answer.tags)}"
        yield answer.advice


VERDICTS = {
    "right": "right",
    "follows": "right from there on: it follows from an earlier answer",
    "wrong": "wrong",
    "malformed": "could not be read, and counts as no attempt",
    "blank": "blank",
}


def wrong_entries(answer: AnswerMark) -> str:
    """ " in entry [2,3]": which entries differ."""
    if not answer.entries_wrong:
        return ""
    places = [f"[{row},{column}]" for row, column in answer.entries_wrong]
    shown = ", ".join(places[:6]) + (f" and {len(places) - 6} more" if len(places) > 6 else "")
    return f" in {'entry' if len(places) == 1 else 'entries'} {shown}"
