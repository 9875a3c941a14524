"""A `Working` as blocks: what every format but the terminal sets, in the order in which people read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from headwork.readings.shapes import shape_text, size_text
from headwork.render.blocks import (
    Aligned,
    Block,
    Display,
    Entries,
    Flow,
    Heading,
    Heat,
    Paragraph,
    Picture,
    Question,
    Space,
    Table,
    Title,
)
from headwork.render.cells import Style
from headwork.render.equations import arithmetic_display, equation_display, grid, unfilled_display
from headwork.render.formula_text import formula_text
from headwork.render.maths import Maths, Prose, Row, Sign
from headwork.render.matrices import columns_that_fit
from headwork.render.notes import count_texts, near_notes, size_words
from headwork.render.reading import read_maths, read_prose
from headwork.working import (
    Argument,
    Arithmetic,
    Counts,
    Derivation,
    Diagram,
    Equation,
    Line,
    MomentsTable,
    PartWorking,
    ProblemWorking,
    Room,
    Samples,
    Shapes,
    Unfilled,
    Working,
)


@dataclass(frozen=True)
class Layout:
    """How a page is laid out. `room` is how many characters fit on a line; None where a line may be of any width."""

    style: Style
    room: int | None = None
    first_index: int = 1
    keys: Iterator[str] = field(default_factory=lambda: (f"e{n}" for n in count(1)))


def page(working: Working, *, exact: bool = False, room: int | None = None) -> Iterator[Block]:
    """The blocks of a whole working."""
    yield Title(working.title)
    for number, layout, problem in laid_out(working, exact=exact, room=room):
        if number is not None:
            yield Heading(number, problem.problem.title)
        yield from problem_blocks(problem, layout)


def laid_out(
    working: Working, *, exact: bool = False, room: int | None = None
) -> Iterator[tuple[int | None, Layout, ProblemWorking]]:
    """Each problem with its number, where there are several, and its layout."""
    keys = (f"e{n}" for n in count(1))
    for number, problem in enumerate(working.problems, 1):
        layout = Layout(Style(problem.problem.places, exact), room, problem.notation.first_index, keys)
        yield number if len(working.problems) > 1 else None, layout, problem


def problem_blocks(worked: ProblemWorking, layout: Layout) -> Iterator[Block]:
    if worked.problem.text:
        yield Paragraph(read_prose(worked.problem.text))
    if worked.given:
        yield Flow(tuple(_named(equation, layout) for equation in worked.given))
    if worked.picture:
        yield Picture(worked.picture, asked=False)
    for part in worked.parts:
        yield from part_blocks(part, layout)


def part_blocks(worked: PartWorking, layout: Layout) -> Iterator[Block]:
    part = worked.part
    if part.label:
        yield Question(part.label, read_prose(part.text))
    for line in worked.lines:
        yield from line_blocks(line, layout)
    if part.answer:
        yield Paragraph(read_prose(part.answer), "answer")


def line_blocks(line: Line, layout: Layout) -> Iterator[Block]:
    yield from LINES[type(line)](line, layout)


def _named(equation: Equation, layout: Layout) -> Maths:
    assert equation.value is not None
    matrix, _ = grid(equation.value, layout.style)
    return Row((read_maths(str(equation.name)), Sign("="), matrix))


def _equation(equation: Equation, layout: Layout) -> Iterator[Block]:
    yield equation_display(equation, layout.style, next(layout.keys), layout.room)
    for note in near_notes(equation.near):
        yield Paragraph(_sentence(note), "note")
    if equation.role == "weights" and equation.value is not None and equation.op is not None:
        yield Heat(equation, layout.first_index)


def _sentence(words: str) -> Prose:
    """name is not 0 but number: the two ends are formulas."""
    name, said, rest = words.partition(" is ")
    if not said:
        return (words,)
    said, _, number = rest.partition(" but ")
    return (read_maths(name), f" is {said} but ", read_maths(number))


def _arithmetic(line: Arithmetic, layout: Layout) -> Iterator[Block]:
    yield arithmetic_display(line, layout.style)


def _cell(words: str) -> Prose:
    return (read_maths(words),) if words else ()


def _shapes(line: Shapes, layout: Layout) -> Iterator[Block]:
    rows = [(_cell(str(e.name)), _made(e), _cell(shape_text(e.shape))) for e in line.rows]
    yield Table((("step",), ("made of",), ("shape",)), tuple(rows), left=3)


def _made(equation: Equation) -> Prose:
    formula = formula_text(equation)
    return _cell(f"= {formula}") if formula else ("given",)


def _diagram(line: Diagram, layout: Layout) -> Iterator[Block]:
    yield Picture(line, asked=True)


def _counts(line: Counts, layout: Layout) -> Iterator[Block]:
    header = ("step", "made of", "×", "+", "÷", "exp", "bytes")
    rows = []
    for equation, each, times in line.rows:
        repeated = f"   each of {size_text(times)}" if times != 1 else ""
        rows.append((str(equation.name), f"= {formula_text(equation)}{repeated}", *count_texts(each)))
    rows.append(("total", "", *count_texts(line.total)))
    everything = list(range(len(header)))
    chosen = [everything] if layout.room is None else columns_that_fit(header, rows, layout.room)
    for columns in chosen:
        table = tuple(tuple(_count_cell(row[i]) for i in columns) for row in rows)
        yield Table(tuple((header[i],) for i in columns), table, left=2)
    operations = size_words(line.total.operations(line.convention))
    yield Paragraph(("Operations in all: ", read_maths(operations), "."))
    yield Paragraph(read_prose(line.convention.text), "note")


def _count_cell(words: str) -> Prose:
    if words in ("·", "total", ""):
        return (words.replace("·", "–"),)
    formula, _, repeated = words.partition("   ")
    return (read_maths(formula), f" ({repeated})") if repeated else (read_maths(formula),)


def _moments(line: MomentsTable, layout: Layout) -> Iterator[Block]:
    from headwork.numbers.algebra import algebra_text

    rows = []
    for equation, moment in line.rows:
        mean, variance = (("?",) if m is None else _cell(algebra_text(m)) for m in (moment.mean, moment.variance))
        made = _made(equation) if equation.op else ("drawn",)
        rows.append((_cell(str(equation.name)), made, mean, variance, read_prose(moment.why_not)))
    header = (("step",), ("made of",), ("mean",), ("variance",), ("remark",))
    yield Table(header, tuple(rows), left=5)


def _derivation(line: Derivation, layout: Layout) -> Iterator[Block]:
    from headwork.numbers.algebra import algebra_text

    lines = []
    for statement in line.lines:
        right = statement.right if isinstance(statement.right, str) else algebra_text(statement.right)
        maths = Row((Sign("="), read_maths(right)))
        lines.append(Aligned(read_maths(statement.left), (maths,), read_prose(statement.because)))
    yield Display(tuple(lines))


def _samples(line: Samples, layout: Layout) -> Iterator[Block]:
    header: tuple[Prose, ...] = (
        (read_maths("D"),),
        (read_maths("Var[q·k]"),),
        *(("sampled",), ("largest weight",), ("with scale",), ("gradient",), ("with scale",)),
    )
    rows = [
        tuple(
            _cell(words)
            for words in (
                *(str(s.width), f"{s.predicted:g}", f"{s.sampled:.4g}"),
                *(f"{x:.3f}" for x in (*s.largest, *s.gradient)),
            )
        )
        for s in line.rows
    ]
    yield Table(header, tuple(rows), left=0)


def _argument(line: Argument, layout: Layout) -> Iterator[Block]:
    from headwork.numbers.algebra import algebra_text

    yield Paragraph(read_prose(line.claim), "claim")
    for lemma in line.proof.lemmas:
        if lemma.holds:
            yield Paragraph((read_maths(str(lemma.name)), ", entry by entry, on both sides:"))
            yield Entries(tuple(read_maths(f"{e.name} = {algebra_text(e.right)}") for e in lemma.entries))
    if line.proof.holds:
        names = ", ".join(map(str, line.proof.claimed))
        yield Paragraph((*read_prose(f"So both give the same {names}, whatever the numbers."), " ∎"))
        return
    difference = line.proof.first_difference
    assert difference is not None
    one, other = difference.example
    yield Paragraph(("They differ, first in ", read_maths(str(difference.name)), ":"))
    yield Entries(tuple(read_maths(f"{algebra_text(side)}") for side in (difference.left, difference.right)))
    yield Paragraph((f"For instance, with small numbers, {one} on the left and {other} on the right.",))


def _unfilled(line: Unfilled, layout: Layout) -> Iterator[Block]:
    yield unfilled_display(line)


def _room(line: Room, layout: Layout) -> Iterator[Block]:
    yield Space(line.lines)


LINES: Mapping[type[Line], Callable[[Any, Layout], Iterator[Block]]] = {
    Equation: _equation,
    Arithmetic: _arithmetic,
    Shapes: _shapes,
    Diagram: _diagram,
    Counts: _counts,
    MomentsTable: _moments,
    Derivation: _derivation,
    Samples: _samples,
    Argument: _argument,
    Unfilled: _unfilled,
    Room: _room,
}
