"""A formula as a small tree, so that LaTeX, Typst, MathML and SVG each are one table from node to text.

A closed list of nodes, data without behaviour. `headwork.render.reading` makes them of text.
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
    """A fraction with a bar."""

    over: Maths
    under: Maths


@dataclass(frozen=True)
class RootOf:
    """√ with a bar over what it covers."""

    of: Maths


@dataclass(frozen=True)
class Grid:
    """A matrix in square brackets. A page that can be pointed at finds it by its `key`."""

    rows: tuple[tuple[Maths, ...], ...]
    key: str = ""


Maths = Letter | Number | Sign | Words | Gap | Row | Below | Above | Ratio | RootOf | Grid
NODES: tuple[type[Maths], ...] = (Letter, Number, Sign, Words, Gap, Row, Below, Above, Ratio, RootOf, Grid)

Prose = tuple[str | Maths, ...]  # a sentence: plain text, with formulas in it


def row(items: Iterable[Maths]) -> Maths:
    """Nodes side by side; one alone is itself."""
    found = tuple(items)
    return found[0] if len(found) == 1 else Row(found)


def between(items: Iterable[Maths], sign: str) -> Maths:
    """a · b · c"""
    spaced: list[Maths] = []
    for item in items:
        spaced += [Sign(sign), item] if spaced else [item]
    return row(spaced)


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
    columns = zip(*maths.rows, strict=True)
    return sum(max(map(width, column)) + 2 for column in columns)
