"""The page in Markdown with the mathematics that GitHub sets: $`…`$ in a line, a ```math block on its own."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from textwrap import indent
from typing import Any

from headwork.maths import Maths, Prose
from headwork.render import blocks as b
from headwork.render.colours import VERDICTS
from headwork.render.diagram import picture_of
from headwork.render.latex_maths import aligned, latex, marked_grid, sentence
from headwork.render.latex_maths import escaped as latex_escaped
from headwork.render.text import picture_lines

LAYOUT = {"room": 90}


def document(blocks: Iterable[b.Block]) -> str:
    """The whole page."""
    return "".join(streamed(blocks))


def streamed(blocks: Iterable[b.Block]) -> Iterator[str]:
    """The page block by block, an empty line between them."""
    for i, block in enumerate(filter(None, map(block_markdown, blocks))):
        yield f"\n{block}\n" if i else f"{block}\n"


def with_pictures(blocks: Iterable[b.Block], name: str) -> tuple[str, dict[str, str]]:
    """The page with its pictures as files beside it: the page, and what goes into which file."""
    from headwork.render.svg import svg

    files: dict[str, str] = {}
    pieces = []
    for block in blocks:
        if isinstance(block, b.Picture | b.Heat):
            drawing = picture_of(block)
            file = f"{name}-picture-{len(files) + 1}.svg"
            files[file] = svg(drawing, "light") + "\n"
            pieces.append(f"![{escaped(drawing.words)}](<{file}>)")
        else:
            pieces.append(block_markdown(block))
    return "\n\n".join(filter(None, pieces)) + "\n", files


def block_markdown(block: b.Block) -> str:
    return BLOCKS[type(block)](block)


_MATHS = re.compile(r"```math\n(.*?)\n```", re.DOTALL)
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&!])")
# What would start a list or underline a heading.
_LINE_START = re.compile(r"^(\s*)([-+=]|\d+[.)])(?=\s)", re.MULTILINE)


def for_notebooks(markdown: str) -> str:
    """The same page with formulas as notebooks have them: $…$ in a line, $$ around a display."""
    return _MATHS.sub(lambda found: f"$$\n{found[1]}\n$$", markdown.replace("$`", "$").replace("`$", "$"))


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def _prose(prose: Prose) -> str:
    return _LINE_START.sub(r"\1\\\2", sentence(prose, escaped, "$`", "`$"))


def _maths(lines: str) -> str:
    return f"```math\n{lines}\n```"


def _paragraph(paragraph: b.Paragraph) -> str:
    text = _prose(paragraph.text)
    shown = {"answer": f"> {text}", "claim": f"**Claim.** {text}"}
    note = f"*Note.* {text}"
    return note if paragraph.kind in ("note", "aside") else shown.get(paragraph.kind, text)


def aligned_latex(lines: tuple[b.Aligned, ...]) -> str:
    """Lines under one another, relations above relations."""
    return "\\begin{aligned}\n" + " \\\\[4pt]\n".join(aligned(line, _remark) for line in lines) + "\n\\end{aligned}"


def _remark(prose: Prose) -> str:
    pieces = (rf"\text{{{latex_escaped(p)}}}" if isinstance(p, str) else latex(p) for p in prose)
    return "".join(pieces)


def _entries(entries: b.Entries) -> str:
    return _maths(
        "\\begin{aligned}\n" + " \\\\\n".join(_at_relation(item) for item in entries.items) + "\n\\end{aligned}"
    )


def _at_relation(item: Maths) -> str:
    return latex(item).replace(" = ", " &= ", 1)


def _table(table: b.Table) -> str:
    rule = [":--" if i < table.left else "--:" for i in range(len(table.header))]
    rows = [[_prose(cell) for cell in row] for row in (table.header, *table.rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (rows[0], rule, *rows[1:]))


def _picture(picture: b.Picture) -> str:
    """Markdown holds no picture of its own: where the diagram is the answer it stands in characters."""
    if not picture.asked:
        return ""
    return "\n".join(["```text", *picture_lines(picture.diagram), "```"])


def _marked(marked: b.Marked) -> str:
    return _maths(marked_grid(marked.rows, lambda maths, verdict: rf"\color{{{VERDICTS[verdict]}}}{{{maths}}}"))


def _finding(finding: b.Finding) -> str:
    """An item of a list, with what explains it set in below."""
    inside = "\n\n".join(filter(None, map(block_markdown, finding.inside)))
    said = f"- **{escaped(finding.name)}**: {escaped(finding.text)}"
    return f"{said}\n\n{indent(inside, '  ')}" if inside else said


BLOCKS: Mapping[type[b.Block], Callable[[Any], str]] = {
    b.Title: lambda block: f"# {escaped(block.text)}",
    b.Heading: lambda block: f"## {escaped(block.text)}",
    b.Question: lambda block: f"**({escaped(block.label)})** {_prose(block.text)}".strip(),
    b.Paragraph: _paragraph,
    b.Flow: lambda flow: _maths(" \\qquad\n".join(map(latex, flow.items))),
    b.Display: lambda display: _maths(aligned_latex(display.lines)),
    b.Entries: _entries,
    b.Table: _table,
    b.Picture: _picture,
    b.Heat: lambda heat: "",  # needs colour, which Markdown has not; the numbers stand above it
    b.Marked: _marked,
    b.Finding: _finding,
    b.Space: lambda space: "\n".join(["<br>"] * space.lines),
}
