"""The page in text: what a good tutor writes on the board, for a terminal or a file."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headwork.inline import inline, sentence
from headwork.maths import Maths
from headwork.readings.shapes import shape_text
from headwork.render import blocks as b
from headwork.render.colours import family
from headwork.render.diagram import sections
from headwork.render.formula import formula
from headwork.render.layout import Layout
from headwork.render.matrices import Lines, aligned, beside, bracketed, drawn, holds_matrix, table, width
from headwork.render.page import line_blocks, page, part_blocks, shown_blocks
from headwork.working import Diagram, Equation, Line, PartWorking, Working

WIDTH = 100
MARGIN, DEEP = 4, 6  # what is worked stands in from the question, matrices further


def on_lines(room: int) -> dict[str, Any]:
    """What a layout has to know of text: how much room there is, and how wide a formula stands as it is drawn."""
    return {"room": room - MARGIN, "measure": _drawn_width}


def _drawn_width(maths: Maths) -> int:
    return width(drawn(maths)) + DEEP - MARGIN


@dataclass(frozen=True)
class Passage:
    """Some lines of a page and what they are, so that a terminal can colour them."""

    lines: Lines
    kind: str  # title, problem, text, part, formula, matrix, note, table, right, wrong …
    colour: str = ""  # of what a formula works out


LAYOUT = on_lines(WIDTH)


def document(blocks: Iterable[b.Block]) -> str:
    """The whole page as plain text."""
    return "".join(streamed(blocks))


def streamed(blocks: Iterable[b.Block]) -> Iterator[str]:
    return (f"{line}\n" for piece in pieces(blocks) for line in piece.lines)


def pieces(blocks: Iterable[b.Block], room: int = WIDTH) -> Iterator[Passage]:
    """The page piece by piece, with an empty line before each block but those that belong to the one above."""
    before: b.Block | None = None
    for block in blocks:
        found = list(BLOCKS[type(block)](block, room))
        if found and before is not None and not _belongs(block, before):
            yield Passage([""], "text")
        yield from found
        before = block if found else before


def _belongs(block: b.Block, before: b.Block) -> bool:
    """A note to the display that it is about, entries to the sentence that announces them, findings to their part."""
    if isinstance(block, b.Paragraph):
        return block.kind == "note" or (block.kind == "line" and isinstance(before, b.Question))
    if isinstance(block, b.Entries):
        return isinstance(before, b.Paragraph)
    return isinstance(block, b.Space) or (isinstance(block, b.Finding) and not isinstance(before, b.Heading))


def working_pieces(working: Working, room: int, *, exact: bool = False) -> Iterator[Passage]:
    return pieces(page(working, exact=exact, **on_lines(room)), room)


def lines_pieces(lines: Iterable[Line], room: int) -> Iterator[Passage]:
    """Lines that stand for themselves, one after the other."""
    layout = Layout(**on_lines(room))
    return pieces((block for line in lines for block in line_blocks(line, layout)), room)


def part_text(worked: PartWorking, layout: Layout) -> str:
    """The lines of one part, without its heading."""
    return document(block for block in part_blocks(worked, layout) if not isinstance(block, b.Question)).strip("\n")


def shown_text(thing: object) -> str:
    """A line, a problem, a proof or a whole working as a shell shows it."""
    text = document(shown_blocks(thing, **on_lines(WIDTH)))
    return text if isinstance(thing, Working) else text.strip("\n")


def _question(question: b.Question, room: int) -> Iterator[Passage]:
    heading = f"({question.label}) {sentence(question.text)}".strip()
    yield Passage(_wrapped(heading, room, hang=len(question.label) + 3), "part")


PARAGRAPHS: Mapping[str, tuple[int, str]] = {  # how far in, and in which colour
    "text": (0, "text"),
    "answer": (MARGIN, "text"),
    "claim": (MARGIN, "formula"),
    "line": (MARGIN, "text"),
    "note": (DEEP, "note"),
    "aside": (MARGIN, "note"),
}


def _paragraph(paragraph: b.Paragraph, room: int) -> Iterator[Passage]:
    by, kind = PARAGRAPHS[paragraph.kind]
    yield Passage(_indented(_wrapped(sentence(paragraph.text), room - by), by), kind)


def _flow(flow: b.Flow, room: int) -> Iterator[Passage]:
    """The matrices of the problem side by side, as many as fit."""
    rows: list[list[Lines | str]] = [[]]
    for item in flow.items:
        figure = drawn(item)
        if rows[-1] and width(beside(*rows[-1], figure, gap="   ")) >= room - MARGIN:
            rows.append([])
        rows[-1].append(figure)
    for i, row in enumerate(rows):
        yield Passage([*([""] if i else []), *_indented(beside(*row, gap="   "))], "matrix")


def _display(display: b.Display, room: int) -> Iterator[Passage]:
    """Formulas aligned on their relation; lines of matrices alone stand further in, with room above them."""
    plain = [line for line in display.lines if not _is_figure(line)]
    if plain:
        colour = family(display.equation.role) if display.equation else ""
        yield Passage(_indented(_in_columns(plain)), "formula" if display.equation else "matrix", colour)
    for i, line in enumerate(line for line in display.lines if _is_figure(line)):
        figure = _indented(beside(*map(drawn, line.pieces)), DEEP)
        yield Passage([*([""] if i or plain else []), *figure], "matrix")


def _is_figure(line: b.Aligned) -> bool:
    return line.left is None and any(map(holds_matrix, line.pieces))


def _in_columns(lines: list[b.Aligned]) -> Lines:
    lefts = ["" if line.left is None else inline(line.left) for line in lines]
    remarks = [sentence(line.remark) for line in lines]
    middles = [beside(*map(drawn, line.pieces)) for line in lines]
    before = max(map(len, lefts))
    after = max(map(width, middles)) if sum(map(bool, remarks)) > 1 else 0
    rows: Lines = []
    for left, middle, remark in zip(lefts, middles, remarks, strict=True):
        level = [line.ljust(after) for line in middle]
        rows += beside(f"{left:>{before}}", level, *([f"  {remark}"] if remark else []))
    return rows


def _entries(entries: b.Entries, room: int) -> Iterator[Passage]:
    lines = [line for item in entries.items for line in _wrapped(inline(item), room - MARGIN - 4, hang=4)]
    yield Passage(_indented(lines, DEEP), "table")


def _table(block: b.Table, room: int) -> Iterator[Passage]:
    rows = [[sentence(cell) for cell in row] for row in (block.header, *block.rows)]
    yield Passage(_indented(table(rows, block.left)), "table")


def _picture(picture: b.Picture, room: int) -> Iterator[Passage]:
    """Head by head, each arrow on a line of its own with its shape; where it was not asked for, nothing."""
    if picture.asked:
        yield Passage(_indented(picture_lines(picture.diagram)), "table")


def picture_lines(diagram: Diagram) -> Lines:
    lines: Lines = []
    for title, rows in sections(diagram):
        if title:
            lines += [title.lower(), *(f"│  {_arrow(e)}" for e in rows), "│"]
        else:
            corner = "╰─" if lines else "  "
            lines += [f"{'  ' if i else corner} {_arrow(e)}" for i, e in enumerate(rows)]
    return lines


def _arrow(equation: Equation) -> str:
    return f"{inline(formula(equation))} → {equation.name}   ({shape_text(equation.shape)})"


def _marked(marked: b.Marked, room: int) -> Iterator[Passage]:
    numbers = [aligned([text for text, _ in column]) for column in zip(*marked.rows, strict=True)]
    signs = [[b.SIGNS[verdict] for _, verdict in column] for column in zip(*marked.rows, strict=True)]
    cells = [[f"{x} {sign}" for x, sign in zip(*column, strict=True)] for column in zip(numbers, signs, strict=True)]
    yield Passage(_indented(bracketed([*zip(*cells, strict=True)])), "marked")


def _finding(finding: b.Finding, room: int) -> Iterator[Passage]:
    yield Passage(_indented([f"{finding.name}: {finding.text}"]), finding.verdict)
    for block in finding.inside:
        for piece in BLOCKS[type(block)](block, room - MARGIN):
            yield Passage(_indented(piece.lines), piece.kind)


def _wrapped(words: str, room: int, hang: int = 0) -> Lines:
    return textwrap.wrap(words, room, subsequent_indent=" " * hang, break_long_words=False)


def _indented(lines: Lines, by: int = MARGIN) -> Lines:
    return [f"{' ' * by}{line}".rstrip() for line in lines]


BLOCKS: Mapping[type[b.Block], Callable[[Any, int], Iterable[Passage]]] = {
    b.Title: lambda title, room: [Passage([title.text, "═" * len(title.text)], "title")],
    b.Heading: lambda heading, room: [Passage([heading.text, "─" * len(heading.text)], "problem")],
    b.Question: _question,
    b.Paragraph: _paragraph,
    b.Flow: _flow,
    b.Display: _display,
    b.Entries: _entries,
    b.Table: _table,
    b.Picture: _picture,
    b.Heat: lambda heat, room: [],  # needs colour; the numbers stand above it
    b.Space: lambda space, room: [Passage([""] * space.lines, "text")],
    b.Marked: _marked,
    b.Finding: _finding,
}
