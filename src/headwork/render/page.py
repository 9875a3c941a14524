"""A `Working` as blocks: what every format sets, in the order in which people read it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from headwork import ops
from headwork import working as w
from headwork.inline import inline
from headwork.maths import Maths, Number, Prose, Row, Sign, Statement, Words, between, bracketed, listed, related
from headwork.notation import Name
from headwork.numbers.text import written
from headwork.readings.exact import Entry, Hidden, Matrix
from headwork.readings.shapes import shape_maths, size_maths
from headwork.render import blocks as b
from headwork.render.arithmetic import arithmetic_display, pointed_at
from headwork.render.cells import Style, cell, figures, grid
from headwork.render.equations import equation_display, unfilled_display
from headwork.render.formula import made_of
from headwork.render.layout import Layout, numbered
from headwork.render.matrices import columns_that_fit
from headwork.render.prose import read_prose
from headwork.sheets.sheet import Part

if TYPE_CHECKING:
    from headwork.proofs import Equality, Proof
    from headwork.readings.counts import Count

SYMBOLS = "DKQVXdijknqsv"  # single letters that are no words, and stand for something wherever they are said
MOST_NOTES = 8  # a page of saturated weights makes its point with the first few


def page(working: w.Working, *, exact: bool = False, **how: Any) -> Iterator[b.Block]:
    """The blocks of a whole working. `how` it is laid out beyond its own notation: see `Layout`."""
    yield b.Title(working.title)
    if working.head:
        yield b.Paragraph(working.head)
    keys = numbered()
    for number, problem in enumerate(working.problems, 1):
        if len(working.problems) > 1:
            yield b.Heading(f"{number}. {problem.problem.title}")
        yield from problem_blocks(problem, layout_of(problem, exact=exact, keys=keys, **how))


def shown_blocks(thing: Any, **how: Any) -> Iterable[b.Block]:
    """A working, a problem, a line or a proof that stands for itself."""
    if isinstance(thing, w.Working):
        return page(thing, **how)
    if isinstance(thing, w.ProblemWorking):
        return problem_blocks(thing, layout_of(thing, **how))
    return line_blocks(thing, Layout(**how)) if isinstance(thing, w.Line) else proof_blocks(thing)


def layout_of(worked: w.ProblemWorking, *, exact: bool = False, **how: Any) -> Layout:
    """A problem's own layout."""
    problem = worked.problem
    style = Style(problem.places, problem.decimals == "always", exact)
    names = problem.tokens, problem.keys or problem.tokens
    return Layout(style, notation=worked.notation, causal=problem.only_causal, names=names, **how)


def problem_blocks(worked: w.ProblemWorking, layout: Layout) -> Iterator[b.Block]:
    names = names_on(worked)
    if worked.problem.text:
        yield b.Paragraph(read_prose(worked.problem.text, names))
    if worked.given:
        yield b.Flow(tuple(_named(equation, layout) for equation in worked.given))
    if worked.picture:
        yield b.Picture(worked.picture, asked=False)
    for part in worked.parts:
        yield from part_blocks(part, layout, names)


def names_on(worked: w.ProblemWorking) -> frozenset[str]:
    """Letters that are names on this page, and so are set as such in its sentences."""
    tables = (line.rows for part in worked.parts for line in part.lines if isinstance(line, w.Shapes | w.Diagram))
    equations = chain(worked.given, *(part.steps for part in worked.parts), *tables)
    bases = chain((equation.name.base for equation in equations), worked.notation.names.values())
    return frozenset(SYMBOLS) | {base for base in bases if len(base) == 1}


def part_blocks(worked: w.PartWorking, layout: Layout, names: frozenset[str] = frozenset()) -> Iterator[b.Block]:
    part = worked.part
    if part.label:
        yield b.Question(part.label, (*read_prose(part.text, names), *_worth(part)))
    for line in worked.lines:
        yield from line_blocks(line, layout)
    if part.answer:
        yield b.Paragraph(read_prose(part.answer, names), "answer")


def _worth(part: Part) -> Prose:
    """(3 points)"""
    if part.points is None:
        return ()
    amount = inline(written(part.points))
    return (f"{' ' if part.text else ''}({amount} point{'' if part.points == 1 else 's'})",)


def line_blocks(line: w.Line, layout: Layout) -> Iterable[b.Block]:
    return LINES[type(line)](line, layout)


def _named(equation: w.Equation, layout: Layout) -> Maths:
    assert equation.value is not None
    matrix, exact = grid(equation.value, layout.style, holds=equation.holds)
    return Row((equation.name.maths, Sign("=" if exact else "≈"), matrix))


def _equation(equation: w.Equation, layout: Layout) -> Iterator[b.Block]:
    key = next(layout.keys)
    display = equation_display(equation, layout, key)
    if layout.pointing:
        how = tuple(pointed_at(equation, key, layout.notation, layout.style, causal=layout.causal))
        display = b.Display(display.lines, equation, key, how)
    yield display
    near_whole = [near for near in equation.near if not cell(near.distance, layout.style)[1]]
    yield from (b.Paragraph(_near(near), "note") for near in near_whole[:MOST_NOTES])
    if (more := len(near_whole) - MOST_NOTES) > 0:
        yield b.Paragraph((f"and {more} more like these",), "note")
    if equation.role in ("weights", "head_output") and equation.value is not None and not equation.given:
        yield from _nothing_to_read(equation, layout)
    if equation.role == "weights" and equation.value is not None and not equation.given:
        yield b.Heat(equation, layout.notation.first_index, *layout.token_names(equation.value))
    if equation.role in ("scores", "weights") and equation.value is not None and equation.row is None:
        yield from _with_token_names(equation.value, layout)


def _with_token_names(matrix: Matrix, layout: Layout) -> Iterator[b.Block]:
    """The numbers once more, with the tokens that ask beside the rows and those that are read over the columns."""
    tokens, keys = layout.token_names(matrix)
    if tokens and keys:
        rows = tuple(
            ((name,), *((cell(entry, layout.style)[0],) for entry in row))
            for name, row in zip(tokens, matrix, strict=True)
        )
        yield b.Table(((), *((key,) for key in keys)), rows, left=1)


NOTHING: Mapping[type[ops.Op], Callable[[Entry], bool]] = {
    ops.Softmax: lambda score: isinstance(score, Hidden),
    ops.DivideBy: operator.not_,
}


def _nothing_to_read(equation: w.Equation, layout: Layout) -> Iterator[b.Block]:
    """Why a row of weights holds nothing but zeros: its scores are hidden, or the sum of their exponentials is 0."""
    nothing = NOTHING.get(type(equation.step.op))
    if nothing is None or equation.upright:
        return
    first = layout.notation.first_index + (equation.row or 0)
    for number, row in enumerate(equation.operands[-1].value or (), first):
        if all(map(nothing, row)):
            why = f"Row {number} of "
            rest = " is all zeros: the mask hides every key from it, so there is nothing to share out."
            yield b.Paragraph((why, equation.name.maths, rest), "note")


def _near(near: w.Near) -> Prose:
    """weights_0[0,1] is not 1 but 1 − 1.65·10⁻⁶²"""
    distance = figures(near.distance, 3)
    value = distance if near.whole == 0 else Row((Number("1"), Sign("−"), distance))
    return (near.name.maths, f" is not {near.whole} but ", value)


def _shapes(line: w.Shapes, layout: Layout) -> Iterator[b.Block]:
    rows = [((e.name.maths,), _made(e, "given"), (shape_maths(e.shape),)) for e in line.rows]
    yield b.Table(_cells("step", "made of", "shape"), tuple(rows), left=3)


def _cells(*cells: str | Maths) -> tuple[Prose, ...]:
    """Cells of a table, each a word or a formula alone."""
    return tuple((cell,) for cell in cells)


def _made(equation: w.Equation, otherwise: str) -> Prose:
    made = made_of(equation)
    return (otherwise,) if made is None else (made,)


def _counts(line: w.Counts, layout: Layout) -> Iterator[b.Block]:
    header = _cells("step", "made of", "×", "+", "÷", "exp", "bytes")
    rows: list[tuple[Prose, ...]] = []
    for equation, each, times in line.rows:
        repeated: Prose = (" (each of ", size_maths(times), ")") if times != 1 else ()
        rows.append(((equation.name.maths,), (*_made(equation, ""), *repeated), *_count_cells(each)))
    rows.append(((line.name,), (), *_count_cells(line.total)))
    tables = [list(range(len(header)))]
    if layout.room is not None:
        tables = columns_that_fit((header, *rows), layout.room, layout.cell)
    for columns in tables:
        yield b.Table(tuple(header[i] for i in columns), tuple(tuple(row[i] for i in columns) for row in rows), left=2)
    yield b.Paragraph(("Operations in all: ", _total(line.total.operations(line.convention)), "."), "line")
    if heads := [times for _, _, times in line.rows if times != 1]:
        rest = (size_maths(heads[0]), " heads; the total counts them all.")
        yield b.Paragraph(("A row that says “each of” is one of ", *rest), "line")
    if line.note:
        yield b.Paragraph(line.note, "line")
    yield b.Paragraph(line.convention.text, "aside")


def _count_cells(count: Count) -> tuple[Prose, ...]:
    """×, +, ÷, exp and bytes."""
    numbers = (count.multiplications, count.additions, count.divisions, count.exponentials, count.bytes)
    return _cells(*(_total(number) if number != 0 else "–" for number in numbers))


def _total(size: Any) -> Maths:
    if isinstance(size, int):
        return Number(f"{size:,}")
    import sympy

    return size_maths(sympy.factor_terms(sympy.expand(size)))


def _moments(line: w.MomentsTable, layout: Layout) -> Iterator[b.Block]:
    from headwork.readings.algebra import algebra

    rows: list[tuple[Prose, ...]] = []
    for equation, moment in line.rows:
        mean, variance = (("?",) if m is None else (algebra(m),) for m in (moment.mean, moment.variance))
        rows.append(((equation.name.maths,), _made(equation, "drawn"), mean, variance, moment.why_not))
    yield b.Table(_cells("step", "made of", "mean", "variance", "remark"), tuple(rows), left=5)


def _samples(line: w.Samples, layout: Layout) -> Iterator[b.Block]:
    dot = Row((Name("Var").maths, bracketed(Row((Name("q").maths, Sign("·"), Name("k").maths)), "[", "]")))
    header = _cells(Name("D").maths, dot, "sampled", "largest weight", "with scale", "gradient", "with scale")
    rows = []
    for s in line.rows:
        shown = (f"{s.width}", f"{s.predicted:g}", f"{s.sampled:.4g}", *(f"{x:.3f}" for x in (*s.largest, *s.gradient)))
        rows.append(_cells(*map(Number, shown)))
    yield b.Table(header, tuple(rows), left=0)


def _argument(line: w.Argument, layout: Layout) -> Iterator[b.Block]:
    yield b.Paragraph(line.claim, "claim")
    yield from proof_blocks(line.proof)


def proof_blocks(proof: Proof) -> Iterator[b.Block]:
    """The argument in names, or the lemmas entry by entry, and what follows; or the first entry that differs."""
    from headwork.readings.algebra import algebra

    if proof.holds and proof.short is not None:
        if proof.short.where:
            yield b.Paragraph(proof.short.where, "line")
        yield _derivation(proof.short.lines)
        names = listed(name.maths for name in proof.claimed)
        rest = ", whatever the numbers and the sizes. ∎"
        yield b.Paragraph((*proof.short.then, "So both give the same ", *names, rest), "line")
        return
    for lemma in proof.lemmas:
        if lemma.holds:
            yield b.Paragraph((lemma.name.maths, ", entry by entry, on both sides:"), "line")
            yield b.Entries(tuple(_both_sides(e) for e in lemma.entries))
    if proof.holds:
        names = listed(name.maths for name in proof.claimed)
        yield b.Paragraph(("So both give the same ", *names, ", whatever the numbers. ∎"), "line")
        return
    difference = proof.first_difference
    assert difference is not None
    one, other = difference.example
    yield b.Paragraph(("They differ, first in ", difference.name.maths, ":" if difference.readable else "."), "line")
    if difference.readable:
        sides = (("left: ", difference.left), ("right: ", difference.right))
        yield b.Entries(tuple(Row((Words(side), algebra(expression))) for side, expression in sides))
    yield b.Paragraph((f"For instance, with small numbers, {one} on the left and {other} on the right.",), "line")


def _both_sides(entry: Equality) -> Maths:
    """An entry as both sides have it; as each has it where algebra makes them equal."""
    from headwork.readings.algebra import algebra

    sides = [entry.right] if entry.left == entry.right else [entry.left, entry.right]
    return between((entry.name.maths, *map(algebra, sides)), "=")


def _derivation(lines: Iterable[Statement]) -> b.Display:
    return b.Display(tuple(b.Aligned(s.left, (related("=", s.right),), s.because) for s in lines))


LINES: Mapping[type[w.Line], Callable[[Any, Layout], Iterable[b.Block]]] = {
    w.Equation: _equation,
    w.Arithmetic: lambda line, layout: [arithmetic_display(line, layout.style)],
    w.Shapes: _shapes,
    w.Diagram: lambda line, layout: [b.Picture(line, asked=True)],
    w.Counts: _counts,
    w.MomentsTable: _moments,
    w.Derivation: lambda line, layout: [_derivation(line.lines)],
    w.Samples: _samples,
    w.Argument: _argument,
    w.Unfilled: lambda line, layout: [unfilled_display(line)],
    w.Room: lambda line, layout: [b.Space(line.lines)],
}
