"""A `Working`: a solved sheet as format-free lines. Every output format renders this and sees nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwork.errors import HeadworkError, did_you_mean
from headwork.graph import Head, Step
from headwork.maths import Holds, Prose, Statement
from headwork.notation import Name, Notation, is_vector
from headwork.ops import MatMul, Shape
from headwork.readings.exact import Entry, Hidden, Matrix
from headwork.sheets.sheet import Part, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    from numpy.typing import NDArray

    from headwork.numbers.certain import AnyNumber
    from headwork.proofs import Proof
    from headwork.readings.counts import Convention, Count
    from headwork.readings.entries import Origin, Place, Terms
    from headwork.readings.moments import Moments
    from headwork.why_scale import Sample


class Shown:
    """Whatever prints itself, in a shell or a notebook, as the terminal page has it."""

    def __repr__(self) -> str:
        from headwork.render.text import shown_text

        return shown_text(self)

    def _repr_html_(self) -> str:
        from headwork.render.html import fragment

        return fragment(self)


@dataclass(frozen=True)
class Operand:
    """A matrix as it stands in an equation."""

    name: Name
    value: Matrix | None


@dataclass(frozen=True)
class Near:
    """A weight that prints as 0 or 1 and is neither: how far it is from it."""

    name: Name
    whole: int
    distance: AnyNumber


@dataclass(frozen=True, repr=False)
class Equation(Shown):
    """name = operation on operands = value. The value is None where only the shape is asked.

    A row of a step may stand alone; where the page writes vectors as columns it is `upright`: operands, value and
    shape are then as the page has them, (x·W)ᵀ = Wᵀ·xᵀ.
    """

    step: Step
    name: Name
    operands: tuple[Operand, ...]  # none for a matrix that is given or handed over
    shape: Shape
    value: Matrix | None = None
    block: tuple[int, int] | None = None  # of a split: its first and last column, in the page's counting
    near: tuple[Near, ...] = ()
    row: int | None = None  # which row of the step this is, counted from 0; None for the whole step
    upright: bool = False

    @property
    def role(self) -> str:
        return self.step.role

    @property
    def head(self) -> Head:
        return self.step.head

    @property
    def given(self) -> bool:
        return not self.operands

    @property
    def worked(self) -> bool:
        """Whether every number that went in is known."""
        return not self.given and self.value is not None and all(o.value is not None for o in self.operands)

    @property
    def holds(self) -> Holds:
        return Holds(self.role, self.head, self.row or 0, self.upright)

    def operand_holds(self, i: int) -> Holds:
        """The same of an operand: a row of it where the equation is about a row, else all of it."""
        number = 1 - i if self._turned else i
        source = self.step.inputs[number]
        whole = (isinstance(self.step.op, MatMul) and number == 1) or is_vector(source.role)
        return Holds(source.role, source.head, 0 if whole else self.row or 0, self.upright)

    def origin(self, i: int, j: int) -> Origin:
        """How the entry that the page has in this place, counted from 0, came about, in the step's own rows."""
        from headwork.readings.entries import Origin, came_from

        inputs = [operand.value for operand in self.operands if operand.value is not None]
        assert self.value is not None
        assert len(inputs) == len(self.step.inputs), "an entry comes from numbers"
        row, column = (j, i) if self.upright else (i, j)
        if self.upright:
            inputs = [flip(matrix) for matrix in (inputs[::-1] if self._turned else inputs)]
        terms, places = came_from(self.step, row, column, inputs)
        if self._turned:
            terms = tuple(pair[::-1] for pair in terms)
        return Origin(self.step, row + (self.row or 0), column, terms, places, self.value[i][j])

    def shown_place(self, place: Place) -> Place:
        """A place in the step's inputs as a place in the operands that the page has."""
        number, row, column = place
        if not self.upright:
            return place
        return (1 - number if self._turned else number), column, row

    @property
    def _turned(self) -> bool:
        """Whether the operands of a product have changed sides."""
        return self.upright and isinstance(self.step.op, MatMul)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.float64]:
        import numpy as np

        from headwork.numbers.digits import to_float

        if self.value is None:
            raise HeadworkError(f"{self.name} has a shape but no value on this sheet")
        rows = [[float("-inf") if isinstance(x, Hidden) else to_float(x) for x in row] for row in self.value]
        return np.array(rows, dtype)


def flip(matrix: Matrix) -> Matrix:
    return tuple(zip(*matrix, strict=True))


@dataclass(frozen=True, repr=False)
class Arithmetic(Shown):
    """One entry: the numbers that went in, and what came out. `terms` are as in `readings.entries.Origin`."""

    name: Name
    step: Step
    sources: tuple[Name, ...]  # of the matrices that the numbers come from; none where the entry is given
    terms: Terms
    result: Entry


def arithmetic(origin: Origin, notation: Notation) -> Arithmetic:
    """How an entry came about, in the names of a page."""
    step = origin.step
    sources = tuple(dict.fromkeys(notation.of(step.inputs[number]) for number, _, _ in origin.places))
    return Arithmetic(notation.entry(step, origin.row, origin.column), step, sources, origin.terms, origin.result)


@dataclass(frozen=True, repr=False)
class Shapes(Shown):
    """A table of names, formulas and shapes."""

    rows: tuple[Equation, ...]


@dataclass(frozen=True, repr=False)
class Diagram(Shown):
    """The whole graph, inputs first; `sources` gives, for every row, the rows that its operands are."""

    rows: tuple[Equation, ...]
    sources: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, steps: Iterable[Step], equation: Callable[[Step], Equation]) -> Diagram:
        """The picture of these steps, inputs first."""
        place = {step: i for i, step in enumerate(steps)}
        sources = (tuple(place[s] for s in step.inputs if s in place) for step in place)
        return cls(tuple(map(equation, place)), tuple(sources))

    def _repr_svg_(self) -> str:
        from headwork.render.diagram import draw
        from headwork.render.svg import svg

        return svg(draw(self), "light")

    def save(self, path: str | Path, *, wide: bool = False, theme: str = "light") -> None:
        """Write the picture as .svg, .png or .pdf; `wide` with heads side by side, `theme` "light" or "dark"."""
        from headwork.render.pictures import save_diagram

        save_diagram(self, path, wide=wide, theme=theme)


@dataclass(frozen=True, repr=False)
class Counts(Shown):
    """A table of what every step costs; `times` is how many heads a row stands for."""

    rows: tuple[tuple[Equation, Count, Any], ...]
    total: Count
    convention: Convention
    name: str = "total"  # of the last row
    note: Prose = ()


@dataclass(frozen=True, repr=False)
class MomentsTable(Shown):
    """Mean and variance of every step's entries."""

    rows: tuple[tuple[Equation, Moments], ...]


@dataclass(frozen=True, repr=False)
class Derivation(Shown):
    """Lines of algebra."""

    lines: tuple[Statement, ...]


@dataclass(frozen=True, repr=False)
class Samples(Shown):
    """What drawing at random shows."""

    rows: tuple[Sample, ...]


@dataclass(frozen=True, repr=False)
class Argument(Shown):
    """A claim and its proof."""

    claim: Prose
    proof: Proof


@dataclass(frozen=True, repr=False)
class Unfilled(Shown):
    """A step with its numbers left out, for the reader to fill in."""

    line: Equation | Arithmetic


@dataclass(frozen=True, repr=False)
class Room(Shown):
    """So many empty lines to write on."""

    lines: int


Line = (
    Equation | Arithmetic | Shapes | Diagram | Counts | MomentsTable | Derivation | Samples | Argument | Unfilled | Room
)


@dataclass(frozen=True)
class PartWorking:
    """A part, the lines a page shows for it, every step that it needed, and the lines that are its answers."""

    part: Part
    lines: tuple[Line, ...]
    steps: tuple[Equation, ...]
    answers: tuple[Line, ...] = ()


@dataclass(frozen=True, repr=False)
class ProblemWorking(Shown):
    """A problem with what is given, its parts worked, and the picture of what was worked out."""

    problem: Problem
    given: tuple[Equation, ...]
    parts: tuple[PartWorking, ...]
    picture: Diagram | None = None

    @property
    def notation(self) -> Notation:
        return self.problem.notation

    def __getitem__(self, key: str | tuple[str, int]) -> Equation:
        """The step of this name, as the last part that worked it out has it: "output", ("Q", 1), "Q_1"."""
        from headwork.sheets.fields import role_and_head

        first = self.notation.first_index
        role, head = role_and_head(key, first) if isinstance(key, str) else (key[0], key[1] - first)
        for part in reversed(self.parts):
            for step in reversed(part.steps):
                if step.role == role and step.head == head:
                    return step
            if role == "output" and part.steps and part.steps[-1].role == "head_output":
                return part.steps[-1]
        names = self._names()
        known = any(step.role == role for part in self.parts for step in part.steps)
        near = "" if known or isinstance(key, str) else did_you_mean(f"{role}_{key[1]}", names)
        raise KeyError(f"{key!r} is not worked out here{near or '; there is ' + ', '.join(names)}")

    def _names(self) -> list[str]:
        first = self.notation.first_index
        steps = [step for part in self.parts for step in part.steps]
        return list(dict.fromkeys(s.role if s.head is None else f"{s.role}_{int(s.head) + first}" for s in steps))


@dataclass(frozen=True, repr=False)
class Working(Shown):
    """A solved sheet. `working["output"]`, `working["Q", 1]`; heads are counted as the sheet counts them."""

    title: str
    problems: tuple[ProblemWorking, ...]
    head: Prose = ()  # what stands under the title: on a question paper, where to write one's name

    def save(self, path: str | Path, *, exact: bool = False) -> None:
        """Write the page in the form that the ending names: .md .tex .pdf .html .ipynb .svg .png .json .txt"""
        from headwork.render.save import save

        save(self, path, exact=exact)

    def __getitem__(self, key: str | tuple[str, int]) -> Equation:
        for problem in reversed(self.problems):
            try:
                return problem[key]
            except KeyError as error:
                missing = error
        raise missing
