"""The page in Markdown with the mathematics that GitHub sets: $`…`$ in a line, a ```math block on its own."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from textwrap import indent
from typing import Any

from headwork.maths import Maths, Prose
from headwork.render.blocks import (
    Aligned,
    Block,
    Display,
    Entries,
    Finding,
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
from headwork.render.latex_maths import escaped as latex_escaped
from headwork.render.latex_maths import latex, sentence
from headwork.render.text import picture_lines

LAYOUT = {"room": 90}


def document(blocks: Iterable[Block]) -> str:
    """The whole page."""
    return "".join(streamed(blocks))


def streamed(blocks: Iterable[Block]) -> Iterator[str]:
    """The page block by block, an empty line between them."""
    for i, block in enumerate(filter(None, map(block_markdown, blocks))):
        yield f"\n{block}\n" if i else f"{block}\n"


def block_markdown(block: Block) -> str:
    return BLOCKS[type(block)](block)


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&!])")
# What would start a list or underline a heading.
_LINE_START = re.compile(r"^(\s*)([-+=]|\d+[.)])(?=\s)", re.MULTILINE)


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def _prose(prose: Prose) -> str:
    return _LINE_START.sub(r"\1\\\2", sentence(prose, escaped, "$`", "`$"))


def _maths(lines: str) -> str:
    return f"```math\n{lines}\n```"


def _paragraph(paragraph: Paragraph) -> str:
    text = _prose(paragraph.text)
    shown = {"answer": f"> {text}", "claim": f"**Claim.** {text}"}
    note = f"*Note.* {text}"
    return note if paragraph.kind in ("note", "aside") else shown.get(paragraph.kind, text)


def _display(display: Display) -> str:
    return _maths(aligned_latex(display.lines))


def aligned_latex(lines: tuple[Aligned, ...]) -> str:
    """Lines under one another, relations above relations."""
    rows = []
    for line in lines:
        left = "" if line.left is None else latex(line.left)
        right = " ".join(latex(piece).strip() for piece in line.pieces)
        remark = rf" \qquad {_remark(line.remark)}" if line.remark else ""
        rows.append(f"{left} &{right}{remark}")
    return "\\begin{aligned}\n" + " \\\\[4pt]\n".join(rows) + "\n\\end{aligned}"


def _remark(prose: Prose) -> str:
    pieces = (rf"\text{{{latex_escaped(p)}}}" if isinstance(p, str) else latex(p) for p in prose)
    return "".join(pieces)


def _flow(flow: Flow) -> str:
    return _maths(" \\qquad\n".join(map(latex, flow.items)))


def _entries(entries: Entries) -> str:
    return _maths(
        "\\begin{aligned}\n" + " \\\\\n".join(_at_relation(item) for item in entries.items) + "\n\\end{aligned}"
    )


def _at_relation(item: Maths) -> str:
    return latex(item).replace(" = ", " &= ", 1)


def _table(table: Table) -> str:
    rule = [":--" if i < table.left else "--:" for i in range(len(table.header))]
    rows = [[_prose(cell) for cell in row] for row in (table.header, *table.rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (rows[0], rule, *rows[1:]))


def _picture(picture: Picture) -> str:
    """Markdown holds no picture of its own: where the diagram is the answer it stands in characters."""
    if not picture.asked:
        return ""
    return "\n".join(["```text", *picture_lines(picture.diagram.rows), "```"])


def _nothing(block: Block) -> str:
    """A heat map needs colour, which Markdown has not; the numbers stand above it."""
    return ""


def _finding(finding: Finding) -> str:
    """An item of a list, with what explains it set in below."""
    inside = "\n\n".join(filter(None, map(block_markdown, finding.inside)))
    said = f"- **{escaped(finding.name)}**: {escaped(finding.text)}"
    return f"{said}\n\n{indent(inside, '  ')}" if inside else said


BLOCKS: Mapping[type[Block], Callable[[Any], str]] = {
    Title: lambda block: f"# {escaped(block.text)}",
    Heading: lambda block: f"## {escaped(block.text)}",
    Question: lambda block: f"**({escaped(block.label)})** {_prose(block.text)}".strip(),
    Paragraph: _paragraph,
    Flow: _flow,
    Display: _display,
    Entries: _entries,
    Table: _table,
    Picture: _picture,
    Heat: _nothing,
    Finding: _finding,
    Space: lambda space: "\n".join(["<br>"] * space.lines),
}
