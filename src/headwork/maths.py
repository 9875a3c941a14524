"""Mathematics as a small tree: what producers return and printers print.

A closed list of nodes, data without behaviour; every format is one table from node to text. Nothing that headwork
says of numbers, names and formulas is text before a format makes it so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Letter:
    """A name: one letter stands in italics, a word upright."""

    text: str


@dataclass(frozen=True)
class Number:
    """Digits, with a decimal point or commas between thousands."""

    text: str


@dataclass(frozen=True)
class Sign:
    """An operation, a relation, a bracket, a comma."""

    text: str


@dataclass(frozen=True)
class Words:
    """Ordinary text inside a formula, spaces included."""

    text: str


@dataclass(frozen=True)
class Named:
    """A name, or a number out of a matrix, and the role of that matrix, whose colour it has where there are colours."""

    of: Maths
    role: str


@dataclass(frozen=True)
class Gap:
    """As much room as this text takes, left empty: it lines decimal points up."""

    text: str


@dataclass(frozen=True)
class Row:
    """Nodes one after the other."""

    items: tuple[Maths, ...]


@dataclass(frozen=True)
class Below:
    """A subscript."""

    base: Maths
    script: Maths


@dataclass(frozen=True)
class Above:
    """A superscript."""

    base: Maths
    script: Maths


@dataclass(frozen=True)
class Ratio:
    """A fraction with a bar. `undone` is a division still to be carried out, which text gives more room."""

    over: Maths
    under: Maths
    undone: bool = False


@dataclass(frozen=True)
class RootOf:
    """√ with a bar over what it covers."""

    of: Maths


@dataclass(frozen=True)
class Barred:
    """A bar over a name: its gradient."""

    of: Maths


@dataclass(frozen=True)
class Grid:
    """A matrix in square brackets. A page that can be pointed at finds it by its `key`, and whoever reads the page by
    what it holds, where that is told."""

    rows: tuple[tuple[Maths, ...], ...]
    key: str = ""
    holds: Holds | None = None


@dataclass(frozen=True)
class Holds:
    """Whose numbers a matrix shows: the step's role and head, the row of it that comes first, and whether it stands
    upright, rows as columns."""

    role: str
    head: int | str | None = None
    row: int = 0
    upright: bool = False

    def place(self, i: int, j: int) -> tuple[int, int]:
        """The step's own row and column of what stands here, counted from 0."""
        return (j + self.row, i) if self.upright else (i + self.row, j)


Maths = Letter | Number | Sign | Words | Named | Gap | Row | Below | Above | Ratio | RootOf | Barred | Grid

Prose = tuple[str | Maths, ...]  # a sentence: plain text, with formulas in it
MINUS, TRANSPOSED, BLANK = Sign("−"), Words("T"), Words("____")


@dataclass(frozen=True)
class Statement:
    """One line of a derivation: left = right, because. Without a left it goes on from the line above."""

    left: Maths | None
    right: Maths
    because: Prose = ()


def row(*items: Maths) -> Maths:
    """Nodes side by side; one alone is itself."""
    return items[0] if len(items) == 1 else Row(items)


def between(items: Iterable[Maths], sign: str) -> Maths:
    """a · b · c"""
    spaced: list[Maths] = []
    for item in items:
        spaced += [Sign(sign), item] if spaced else [item]
    return row(*spaced)


def listed(items: Iterable[Maths]) -> Prose:
    """a, b, c in a sentence."""
    return tuple(piece for i, item in enumerate(items) for piece in ((", ", item) if i else (item,)))


def number(text: str) -> Maths:
    """Digits that may have a minus before them: "-0.5", "−3"."""
    return Row((MINUS, Number(text[1:]))) if text[0] in "-−" else Number(text)


def minus(maths: Maths) -> Maths:
    return Row((MINUS, *maths.items)) if isinstance(maths, Row) and not is_sum(maths) else Row((MINUS, maths))


def is_negative(maths: Maths) -> bool:
    return isinstance(maths, Row) and maths.items[:1] == (MINUS,)


def is_sum(maths: Maths) -> bool:
    """Whether a + or − stands between its terms."""
    return isinstance(maths, Row) and any(item in (Sign("+"), MINUS) for item in maths.items[1:])


def signed_sum(terms: Iterable[Maths]) -> Maths:
    """4 + 0 − 24: a term's own minus becomes the sign before it."""
    items: list[Maths] = []
    for term in terms:
        if items and isinstance(term, Row) and is_negative(term) and not is_sum(term):
            items += [MINUS, row(*term.items[1:])]
        else:
            items += [Sign("+"), term] if items else [term]
    return row(*items)


def bracketed(maths: Maths, opening: str = "(", closing: str = ")") -> Maths:
    return Row((Sign(opening), maths, Sign(closing)))


def factor(maths: Maths) -> Maths:
    """As part of a product or a sum: brackets around what starts with a minus sign or is a sum."""
    return bracketed(maths) if is_negative(maths) or is_sum(maths) else maths


def applied(function: str, argument: Maths) -> Maths:
    """softmax(S); a matrix has brackets of its own."""
    return Row((Letter(function), argument if isinstance(argument, Grid) else bracketed(argument)))


def power_of_e(exponent: Maths) -> Maths:
    return Above(Letter("e"), exponent)


def related(relation: str, maths: Maths) -> Maths:
    """= S"""
    return Row((Sign(relation), maths))


def width(maths: Maths) -> int:
    """Roughly how many characters wide it stands on a page."""
    if isinstance(maths, Letter | Number | Sign | Words | Gap):
        return len(maths.text)
    if isinstance(maths, Row):
        signs = sum(isinstance(item, Sign) for item in maths.items)
        return sum(map(width, maths.items)) + signs
    if isinstance(maths, Below | Above):
        return width(maths.base) + (width(maths.script) + 1) // 2
    if isinstance(maths, Ratio):
        return max(width(maths.over), width(maths.under))
    if isinstance(maths, RootOf):
        return width(maths.of) + 1
    if isinstance(maths, Barred | Named):
        return width(maths.of)
    columns = zip(*maths.rows, strict=True)
    return sum(max(map(width, column)) + 2 for column in columns)
