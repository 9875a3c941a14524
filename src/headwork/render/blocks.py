"""What a page is made of, whatever its format: a closed list of blocks, data without behaviour."""

from __future__ import annotations

from dataclasses import dataclass

from headwork.render.maths import Maths, Prose
from headwork.working import Diagram, Equation


@dataclass(frozen=True)
class Title:
    text: str


@dataclass(frozen=True)
class Heading:
    """A problem's title, numbered where there are several."""

    number: int | None
    text: str


@dataclass(frozen=True)
class Question:
    """A part's letter and what it asks."""

    label: str
    text: Prose


@dataclass(frozen=True)
class Paragraph:
    """Sentences. The kind is "text", "answer", "claim" or "note"."""

    text: Prose
    kind: str = "text"


@dataclass(frozen=True)
class Flow:
    """Formulas one after the other, as many to a line as fit: what is given."""

    items: tuple[Maths, ...]


@dataclass(frozen=True)
class Aligned:
    """One line of a display: what stands before the relation, pieces that start with one, and a remark.

    The pieces stand on one line where there is room, and under one another where there is not.
    """

    left: Maths | None
    pieces: tuple[Maths, ...]
    remark: Prose = ()


@dataclass(frozen=True)
class Display:
    """Lines aligned on their relation. `equation` is the step they show, its matrices found by `key`."""

    lines: tuple[Aligned, ...]
    equation: Equation | None = None
    key: str = ""


@dataclass(frozen=True)
class Entries:
    """Many short equations, one to a line."""

    items: tuple[Maths, ...]


@dataclass(frozen=True)
class Table:
    """A header and rows; the first `left` columns are flush left, the others flush right."""

    header: tuple[Prose, ...]
    rows: tuple[tuple[Prose, ...], ...]
    left: int


@dataclass(frozen=True)
class Picture:
    """The diagram of a graph; `asked` where it is the answer to a part."""

    diagram: Diagram
    asked: bool


@dataclass(frozen=True)
class Heat:
    """Weights as a heat map, rows and columns counted from `first_index`."""

    equation: Equation
    first_index: int


@dataclass(frozen=True)
class Space:
    """So many empty lines to write on."""

    lines: int


Block = Title | Heading | Question | Paragraph | Flow | Display | Entries | Table | Picture | Heat | Space
BLOCKS: tuple[type[Block], ...] = (
    *(Title, Heading, Question, Paragraph, Flow, Display),
    *(Entries, Table, Picture, Heat, Space),
)
