"""Marks: what a student's answers earned, as data. Points are fractions, so totals are exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Literal
from unicodedata import normalize

if TYPE_CHECKING:
    from headwork.working import Arithmetic

Verdict = Literal["right", "follows", "wrong", "malformed", "blank"]


@dataclass(frozen=True)
class Student:
    """One line of a class list; `id` names the sheet and its file."""

    id: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.id})" if self.name else self.id


def known_as(student: str) -> str:
    """A name as names are compared, however its accents and its apostrophe are put together.

    >>> known_as("Rene\u0301e  D’Angelo") == known_as("RENÉE D'ANGELO")
    True
    """
    return normalize("NFKC", " ".join(student.replace("’", "'").split()).casefold())


def no_working() -> None:
    return None


@dataclass(frozen=True)
class AnswerMark:
    """One answer: its verdict, the entries that are wrong (as the sheet counts them) and what they are consistent
    with. A tag names one mistake; "x+y" two made at once."""

    name: str
    verdict: Verdict
    entries: int  # how many were asked for
    right: Fraction = Fraction(0)  # how many of them earn credit
    entries_wrong: tuple[tuple[int, int], ...] = ()
    tags: tuple[str, ...] = ()
    advice: str = ""
    message: str = ""  # why an answer could not be read, or what it was carried on from
    rows: tuple[tuple[tuple[str, str], ...], ...] = ()  # what was handed in, each entry with a verdict of its own
    working: Callable[[], Arithmetic | None] = field(default=no_working, compare=False, repr=False)

    @property
    def named(self) -> bool:
        """Whether the mark says what went wrong, and not only where."""
        return any(tag != "one-entry" for tag in self.tags)


@dataclass(frozen=True)
class PartMark:
    """One part: what it earned of what it could."""

    label: str
    score: Fraction
    max_score: Fraction
    answers: tuple[AnswerMark, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Marks:
    """One student's sheet."""

    student: str
    parts: tuple[PartMark, ...]
    note: str = ""  # why nothing could be read, if so
    tolerance: str = ""
    title: str = ""  # of the student's own sheet
    listed: Student | None = None  # as the class list has them

    @property
    def called(self) -> str:
        """As a teacher knows them: the list's name, and the id."""
        return str(self.listed) if self.listed else self.student

    @property
    def known_as(self) -> tuple[str, ...]:
        """Everything that they may be called elsewhere: by themselves, by the list's id, by its name."""
        listed = (self.listed.id, self.listed.name) if self.listed else ()
        return tuple(dict.fromkeys(filter(None, (self.student, *listed))))

    @property
    def score(self) -> Fraction:
        return sum((part.score for part in self.parts), Fraction(0))

    @property
    def max_score(self) -> Fraction:
        return sum((part.max_score for part in self.parts), Fraction(0))

    @property
    def tags(self) -> tuple[str, ...]:
        """Every mistake that was named, once, in order of appearance."""
        found = [tag for part in self.parts for answer in part.answers for tag in answer.tags]
        return tuple(dict.fromkeys(single for tag in found for single in tag.split("+")))

    def __str__(self) -> str:
        from headwork.marking.report import student_blocks
        from headwork.render.text import document

        return document(student_blocks(self))
