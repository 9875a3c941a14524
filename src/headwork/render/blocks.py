"""What a page is made of, whatever its format: a closed list of blocks, data without behaviour."""

from dataclasses import dataclass

from headwork.maths import Maths, Prose
from headwork.working import Diagram, Equation


@dataclass(frozen=True)
class Title:
    text: str


@dataclass(frozen=True)
class Heading:
    """The title of a problem or of a section."""

    text: str


@dataclass(frozen=True)
class Question:
    """A part's letter and what it asks."""

    label: str
    text: Prose


@dataclass(frozen=True)
class Paragraph:
    """Sentences. The kind is "text", "answer", "claim", "line" inside a working, "note" on the display above,
    or "aside", small print of its own."""

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


Spot = tuple[str, int, int]  # an entry on the page: the key of its matrix, its row, its column


@dataclass(frozen=True)
class How:
    """One entry: its spot, the spots it came from, the lines of its arithmetic, and why it is hidden if it is."""

    spot: Spot
    sources: tuple[Spot, ...]
    lines: tuple[Aligned, ...]
    reason: str = ""


@dataclass(frozen=True)
class Display:
    """Lines aligned on their relation. `equation` is what they show, its matrix found by `key`."""

    lines: tuple[Aligned, ...]
    equation: Equation | None = None
    key: str = ""
    how: tuple[How, ...] = ()  # of every entry, on a page that can be pointed at


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
    """Weights as a heat map, rows and columns named, or counted from `first_index`."""

    equation: Equation
    first_index: int
    tokens: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Space:
    """So many empty lines to write on."""

    lines: int


# Entry by entry: what colour tells (`colours.VERDICTS`), a sign tells too.
SIGNS = {"right": "✓", "follows": "→", "wrong": "✗", "blank": "–"}


@dataclass(frozen=True)
class Marked:
    """An answer as it was handed in: rows of texts, each with its verdict, which has a sign and a colour."""

    rows: tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True)
class Finding:
    """What was found of an answer: a name, the verdict that it gets, the rest of the sentence, and what explains it."""

    name: str
    verdict: str  # right, follows, wrong, malformed, blank
    text: str
    inside: tuple[Display | Paragraph | Marked, ...] = ()


Block = (
    Title
    | Heading
    | Question
    | Paragraph
    | Flow
    | Display
    | Entries
    | Table
    | Picture
    | Heat
    | Space
    | Marked
    | Finding
)
