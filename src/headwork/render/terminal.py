"""The page in a terminal: what a good tutor writes on the board."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwork.ops import Add, Divide, Join, MatMul, Root, Softmax, Split, Transpose
from headwork.readings.shapes import shape_text, size_text
from headwork.render.arithmetic import arithmetic_text
from headwork.render.cells import Style, cells
from headwork.render.formula_text import divisor_text, formula_text
from headwork.render.matrices import Block, beside, bracketed, columns_that_fit, table, width
from headwork.render.notes import count_texts, near_notes, size_words
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

if TYPE_CHECKING:
    from headwork.proofs import Proof

WIDTH = 100


@dataclass(frozen=True)
class Piece:
    """Some lines of a page and what they are, so that a terminal can colour them."""

    lines: Block
    kind: str  # title, problem, text, part, formula, matrix, note, table


@dataclass(frozen=True)
class Page:
    """What the lines are laid out on."""

    style: Style
    width: int = WIDTH


def working_text(working: Working, style: Style | None = None, width: int = WIDTH) -> str:
    """The whole page as plain text."""
    return pieces_text(pieces(working, style, width))


def working_page(working: Working, *, exact: bool = False) -> str:
    """The page as a text file."""
    return working_text(working, Style(exact=True) if exact else None)


def pieces_text(page: Iterator[Piece]) -> str:
    return "\n".join(line for piece in page for line in piece.lines) + "\n"


def part_text(worked: PartWorking, style: Style) -> str:
    """The lines of one part, without its heading."""
    page = Page(style)
    lines = [piece for line in worked.lines for piece in LINES[type(line)](line, page)]
    return "\n".join([pieces_text(iter(lines)).strip("\n"), worked.part.answer]).strip("\n")


def line_pieces(line: Line, style: Style, width: int = WIDTH) -> Iterator[Piece]:
    """One line on its own."""
    yield from LINES[type(line)](line, Page(style, width))


def shown_text(thing: object) -> str:
    """A line, a problem, a proof or a whole working as a shell shows it."""
    from headwork.proofs import Proof

    if isinstance(thing, Working):
        return working_text(thing)
    if isinstance(thing, ProblemWorking):
        return pieces_text(_problem(thing, None, Page(Style(thing.problem.places)))).strip("\n")
    if isinstance(thing, Proof):
        return "\n".join(_proof(thing, Page(Style())))
    assert isinstance(thing, Line)
    return pieces_text(line_pieces(thing, Style())).strip("\n")


def pieces(working: Working, style: Style | None = None, width: int = WIDTH) -> Iterator[Piece]:
    """The page, piece by piece."""
    yield Piece([working.title, "═" * len(working.title)], "title")
    for number, problem in enumerate(working.problems, 1):
        page = Page(style or Style(problem.problem.places), width)
        yield from _problem(problem, number if len(working.problems) > 1 else None, page)


def _problem(worked: ProblemWorking, number: int | None, page: Page) -> Iterator[Piece]:
    if number is not None:
        title = f"{number}. {worked.problem.title}"
        yield Piece(["", title, "─" * len(title)], "problem")
    if worked.problem.text:
        yield Piece(["", *_wrapped(worked.problem.text, page.width)], "text")
    if worked.given:
        yield Piece(["", *_given(worked.given, page)], "matrix")
    for part in worked.parts:
        yield from _part(part, page)


def _given(given: tuple[Equation, ...], page: Page) -> Block:
    """The matrices of the problem side by side, as many as fit."""
    rows: list[list[Block | str]] = [[]]
    for equation in given:
        assert equation.value is not None
        block = beside(f"{equation.name} =", bracketed(cells(equation.value, page.style)[0]))
        if rows[-1] and width(beside("  ", *rows[-1], block, gap="   ")) > page.width:
            rows.append([])
        rows[-1].append(block)
    drawn = [beside(" ", *row, gap="   ") for row in rows]
    return [line for i, block in enumerate(drawn) for line in ([""] if i else []) + block]


def _part(worked: PartWorking, page: Page) -> Iterator[Piece]:
    part = worked.part
    if part.label:
        heading = f"({part.label}) {part.text}".strip()
        yield Piece(["", *_wrapped(heading, page.width, hang=len(part.label) + 3)], "part")
    for line in worked.lines:
        yield from LINES[type(line)](line, page)
    if part.answer:
        yield Piece(["", *("    " + line for line in _wrapped(part.answer, page.width - 4))], "text")


def _equation(equation: Equation, page: Page) -> Iterator[Piece]:
    formula = formula_text(equation)
    relation = f"{equation.name} = {formula}" if formula else f"{equation.name}, as given"
    yield Piece(["", f"    {relation}   ({shape_text(equation.shape)})"], "formula")
    if equation.value is None:
        return
    yield Piece(["", *_indented(_worked(equation, page))], "matrix")
    for note in near_notes(equation.near):
        yield Piece([f"      {note}"], "note")


def _worked(equation: Equation, page: Page) -> Block:
    """Operands, relation and value; the value goes on lines of its own where the page is too narrow."""
    assert equation.value is not None
    room = page.width - 6
    value, exact = cells(equation.value, page.style)
    relation = "=" if exact else "≈"
    result = _fitting(value, room - 3)
    operands = _operands(equation, page)
    if not operands:
        return beside(relation, result[0]) if len(result) == 1 else _stacked(result, relation)
    line = beside(operands, relation, result[0], gap=" ")
    if len(result) == 1 and width(line) <= room:
        return line
    lines = _stacked(result, relation) if len(result) > 1 else beside(relation, result[0])
    return [*operands, "", *lines] if width(operands) <= room else lines


def _operands(equation: Equation, page: Page) -> Block:
    """The right-hand side with its matrices in; nothing where one of them is not known."""
    shown = [cells(o.value, page.style) for o in equation.operands if o.value is not None]
    if not shown or len(shown) < len(equation.operands):
        return []
    blocks = [bracketed(rows) for rows, _ in shown]
    relation = "=" if all(exact for _, exact in shown) else "≈"
    return beside(relation, *OPERANDS[type(equation.op)](equation.op, blocks))


OPERANDS: Mapping[Any, Callable[[Any, list[Block]], list[Block | str]]] = {
    MatMul: lambda op, blocks: _between(blocks, "·"),
    Add: lambda op, blocks: _between(blocks, "+"),
    Join: lambda op, blocks: _between(blocks, "|"),
    Divide: lambda op, blocks: [blocks[0], f"/ {_divisor(op)}"],
    Softmax: lambda op, blocks: ["softmax", blocks[0]],
    Split: lambda op, blocks: ["part of", blocks[0]],
    Transpose: lambda op, blocks: ["transpose of", blocks[0]],
}


def _between(blocks: list[Block], sign: str) -> list[Block | str]:
    spaced: list[Block | str] = [blocks[0]]
    for block in blocks[1:]:
        spaced += [sign, block]
    return spaced


def _divisor(op: Divide) -> str:
    """√d_k with its number: √3."""
    return f"√{op.by.of}" if isinstance(op.by, Root) else divisor_text(op)


def _fitting(rows: list[list[str]], room: int) -> list[Block]:
    """The matrix in one block, or in as few blocks of columns as fit."""
    count = len(rows[0])
    for chunks in range(1, count + 1):
        size = -(-count // chunks)
        blocks = [bracketed([row[start : start + size] for row in rows]) for start in range(0, count, size)]
        if all(width(block) <= room for block in blocks):
            return blocks
    return blocks


def _stacked(blocks: list[Block], relation: str) -> Block:
    """Column blocks of one wide matrix under one another; an ellipsis says that the rows go on."""
    lines: Block = []
    for i, block in enumerate(blocks):
        lines += ([""] if i else []) + beside(relation if i == 0 else "…", block)
    return lines


def _arithmetic(line: Arithmetic, page: Page) -> Iterator[Piece]:
    yield Piece(["", *(f"    {row}" for row in arithmetic_text(line, page.style))], "matrix")


def _shapes(line: Shapes, page: Page) -> Iterator[Piece]:
    rows = [(str(e.name), formula_text(e) and f"= {formula_text(e)}", shape_text(e.shape)) for e in line.rows]
    yield Piece(["", *_indented(table(("", "", "shape"), rows, left=3), 4)], "table")


def _diagram(line: Diagram, page: Page) -> Iterator[Piece]:
    """Head by head, each arrow on a line of its own with its shape."""
    heads = list(dict.fromkeys(e.head for e in line.rows if e.head is not None))
    drawn: Block = [""]
    for head in [None, *heads]:
        rows = [e for e in line.rows if e.head == head and e.op is not None and e.role != "K_transposed"]
        if head is not None:
            drawn += [f"    head {_head_name(rows)}", *(f"    │  {_arrow(e)}" for e in rows), "    │"]
    shared = [e for e in line.rows if e.head is None and e.op is not None and e.role != "K_transposed"]
    drawn += [f"    ╰─ {_arrow(e)}" if i == 0 and heads else f"       {_arrow(e)}" for i, e in enumerate(shared)]
    yield Piece(drawn, "table")


def _head_name(rows: list[Equation]) -> str:
    return rows[0].name.subscripts[-1]


def _arrow(equation: Equation) -> str:
    return f"{formula_text(equation)} → {equation.name}   ({shape_text(equation.shape)})"


def _counts(line: Counts, page: Page) -> Iterator[Piece]:
    header = ("", "", "×", "+", "÷", "exp", "bytes")
    rows = []
    for equation, count, times in line.rows:
        each = f" (each of {size_text(times)})" if times != 1 else ""
        rows.append((str(equation.name), f"= {formula_text(equation)}{each}", *count_texts(count)))
    rows.append(("total", "", *count_texts(line.total)))
    for columns in columns_that_fit(header, rows, page.width - 4):
        chosen = [[row[i] for i in columns] for row in (header, *rows)]
        yield Piece(["", *_indented(table(chosen[0], chosen[1:], left=2), 4)], "table")
    operations = size_words(line.total.operations(line.convention))
    yield Piece(["", f"    operations in all: {operations}"], "formula")
    yield Piece(["", *("    " + row for row in _wrapped(line.convention.text, page.width - 4))], "note")


def _moments(line: MomentsTable, page: Page) -> Iterator[Piece]:
    from headwork.numbers.algebra import algebra_text

    rows = []
    for equation, moment in line.rows:
        mean, variance = ("?" if m is None else algebra_text(m) for m in (moment.mean, moment.variance))
        rows.append((str(equation.name), _made(equation), mean, variance, moment.why_not))
    yield Piece(["", *_indented(table(("", "", "mean", "variance", ""), rows, left=5), 4)], "table")


def _made(equation: Equation) -> str:
    formula = formula_text(equation)
    return f"= {formula}" if formula else "drawn"


def _derivation(line: Derivation, page: Page) -> Iterator[Piece]:
    from headwork.numbers.algebra import algebra_text

    rows = []
    for statement in line.lines:
        right = statement.right if isinstance(statement.right, str) else algebra_text(statement.right)
        rows.append((statement.left, right, statement.because))
    left, middle = (max(len(row[i]) for row in rows) for i in (0, 1))
    yield Piece(["", *(f"    {a:>{left}} = {b:<{middle}}   {c}".rstrip() for a, b, c in rows)], "formula")


def _samples(line: Samples, page: Page) -> Iterator[Piece]:
    header = ("D", "Var[q·k]", "sampled", "largest weight", "with scale", "gradient", "with scale")
    rows = [
        (
            str(s.width),
            f"{s.predicted:g}",
            f"{s.sampled:.4g}",
            *(f"{x:.3f}" for x in s.largest),
            *(f"{x:.3f}" for x in s.gradient),
        )
        for s in line.rows
    ]
    yield Piece(["", *_indented(table(header, rows, left=0), 4)], "table")


def _argument(line: Argument, page: Page) -> Iterator[Piece]:
    yield Piece(["", *("    " + row for row in _wrapped(line.claim, page.width - 4))], "formula")
    yield Piece(["", *_indented(_proof(line.proof, page), 4)], "table")


def _proof(proof: Proof, page: Page) -> Block:
    from headwork.numbers.algebra import algebra_text

    lines: Block = []
    for lemma in proof.lemmas:
        if not lemma.holds:
            continue
        lines += [f"{lemma.name}, entry by entry, on both sides:"]
        for entry in lemma.entries:
            lines += textwrap.wrap(
                f"{entry.name} = {algebra_text(entry.right)}",
                page.width - 8,
                initial_indent="  ",
                subsequent_indent="      ",
                break_long_words=False,
            )
    if proof.holds:
        return [*lines, f"So both give the same {', '.join(map(str, proof.claimed))}, whatever the numbers.  ∎"]
    difference = proof.first_difference
    assert difference is not None
    one, other = difference.example
    return [
        *lines,
        f"They differ, first in {difference.name}:",
        *(
            f"  {side}: {_at_most(algebra_text(e), 160)}"
            for side, e in (("left ", difference.left), ("right", difference.right))
        ),
        f"  For instance, with small numbers for the entries, {one} on the left and {other} on the right.",
    ]


def _at_most(words: str, length: int) -> str:
    return words if len(words) <= length else f"{words[:length]} …"


def _unfilled(unfilled: Unfilled, page: Page) -> Iterator[Piece]:
    """The step's name and formula, and an empty place for every number."""
    line = unfilled.line
    if isinstance(line, Arithmetic):
        yield Piece(["", f"    {line.name} =", ""], "formula")
        return
    yield Piece(["", f"    {line.name} = {formula_text(line)}   ({shape_text(line.shape)})"], "formula")
    empty = [["____"] * line.shape[-1] for _ in range(line.shape[-2])]
    yield Piece(["", *_indented(beside("=", bracketed(empty)))], "matrix")


def _room(room: Room, page: Page) -> Iterator[Piece]:
    yield Piece([""] * room.lines, "text")


def _wrapped(words: str, room: int, hang: int = 0) -> Block:
    return textwrap.wrap(words, room, subsequent_indent=" " * hang, break_long_words=False)


def _indented(block: Block, by: int = 6) -> Block:
    return [f"{' ' * by}{line}".rstrip() for line in block]


LINES: Mapping[type[Line], Callable[[Any, Page], Iterator[Piece]]] = {
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
