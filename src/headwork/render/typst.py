"""The page as Typst source, and through its compiler, a Python wheel, as PDF: no TeX needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headwork.maths import Prose
from headwork.render import blocks as b
from headwork.render.colours import FAMILIES, LIGHT, VERDICTS
from headwork.render.svg import svg
from headwork.render.typst_maths import joined, string, typst_maths

if TYPE_CHECKING:
    from headwork.render.drawing import Drawing

LAYOUT = {"room": 84}  # characters that fit on a line of A4
PIXEL = 0.54  # points to a unit of a drawing

_PREAMBLE = """#set document(title: {title})
#set page(paper: "a4", margin: (x: 2.2cm, y: 2.2cm), numbering: "1")
#set text(font: "New Computer Modern", size: 10.5pt, lang: "en")
#set par(leading: 0.65em, spacing: 1em)
#set math.mat(delim: "[", align: right, column-gap: 0.7em, row-gap: 0.45em)
#show heading: set block(above: 1.6em, below: 0.9em)
#show math.equation.where(block: true): set align(start)
#show math.equation.where(block: true): set block(above: 0pt, below: 0pt)
#let blanks(count) = box(width: count * 2em, height: 0.9em, stroke: (bottom: 0.5pt))
#let blank = blanks(1)
#let room(lines) = for _ in range(lines) { block(height: 0.9cm, above: 0pt, below: 0pt)[~] }
#let question(body) = block(above: 1.5em, below: 0.8em, sticky: true, body)
#let gap(body) = hide(body)
#let aside(body) = block(inset: (left: 1.2em, y: 0.2em), stroke: (left: 2pt + luma(70%)), body)
#let steps(body) = block(inset: (left: 1.2em), above: 1.2em, below: 1.2em, breakable: false)[#set par(leading: 0.75em)
#body]
#let remark(body) = { h(1.4em); text(size: 0.9em, fill: luma(30%), body) }
"""


def _roles() -> str:
    """A function for every colour of a role, which formulas call."""
    return "".join(f'#let role{name}(body) = text(fill: rgb("{LIGHT[name]}"), body)\n' for name in FAMILIES)


def pdf(blocks: Iterable[b.Block]) -> bytes:
    """The page as PDF."""
    return compiled(document(blocks), "pdf")


def compiled(source: str, format: str, ppi: float | None = None) -> bytes:
    """Typst's own fonts and nothing from the machine or the network, so that a page looks the same everywhere."""
    from headwork.extras import needs

    typst = needs("typst")
    pages = typst.compile(source.encode(), format=format, ppi=ppi, ignore_system_fonts=True)
    return bytes(pages if isinstance(pages, bytes) else pages[0])


def document(blocks: Iterable[b.Block]) -> str:
    """The whole document in Typst's own language; the first block is its title."""
    page = list(blocks)
    title = page[0].text if page and isinstance(page[0], b.Title) else ""
    return _PREAMBLE.replace("{title}", string(title)) + _roles() + "\n" + "\n\n".join(map(_block, page)) + "\n"


def _block(block: b.Block) -> str:
    return BLOCKS[type(block)](block)


def drawing_typst(drawing: Drawing, theme: str = "light") -> str:
    """A drawing with its text alternative."""
    return (
        f'#image(bytes({string(svg(drawing, theme))}), format: "svg", width: {drawing.width * PIXEL:.1f}pt, '
        f"alt: {string(drawing.words)})"
    )


def drawing_file(drawing: Drawing, format: str, theme: str = "light", scale: float = 2.0) -> bytes:
    """A drawing alone: as PDF, or as PNG of `scale` pixels to its unit."""
    source = (
        "#set page(width: auto, height: auto, margin: 0pt)\n"
        f"#set document(title: {string(drawing.title)})\n"
        '#set text(font: "New Computer Modern")\n' + drawing_typst(drawing, theme)
    )
    return compiled(source, format, ppi=72 / PIXEL * scale if format == "png" else None)


def _text(text: str) -> str:
    """Whatever a sheet says, as a string: nothing in it is taken for a command."""
    return f"#{string(text)};"


def _prose(prose: Prose) -> str:
    return "".join(_text(p) if isinstance(p, str) else f"${typst_maths(p)}$" for p in prose)


def _content(prose: Prose) -> str:
    return f"[{_prose(prose)}]"


def _paragraph(paragraph: b.Paragraph) -> str:
    text = _prose(paragraph.text)
    if paragraph.kind == "answer":
        return f"#aside[{text}]"
    if paragraph.kind in ("note", "aside"):
        return f"#text(size: 0.85em, fill: luma(30%))[{text}]"
    return f"_Claim._ {text}" if paragraph.kind == "claim" else text


def _flow(flow: b.Flow) -> str:
    items = "#h(1.6em, weak: true)".join(f"#box(inset: (y: 0.3em), $display({typst_maths(i)})$) " for i in flow.items)
    return f"#block(above: 1em, below: 1em)[#set par(leading: 0.3em)\n{items}]"


def _display(display: b.Display) -> str:
    """One formula, its lines aligned on their relations: both sides of each stand on one base line."""
    return "#steps[$ " + " \\\n  ".join(map(_line, display.lines)) + " $]"


def _line(line: b.Aligned) -> str:
    left = "" if line.left is None else typst_maths(line.left)
    right = joined(typst_maths(piece) for piece in line.pieces)
    remark = f" #remark{_content(line.remark)}" if line.remark else ""
    return f"{left} &{right}{remark}"


def _entries(entries: b.Entries) -> str:
    lines = "\n\n".join(f"#par(hanging-indent: 2em, spacing: 0.7em)[${typst_maths(item)}$]" for item in entries.items)
    return f"#block(inset: (left: 1.2em))[#set text(size: 0.9em)\n{lines}\n]"


def _table(table: b.Table) -> str:
    align = ", ".join("left" if i < table.left else "right" for i in range(len(table.header)))
    header = ", ".join(f"strong{_content(cell)}" for cell in table.header)
    rows = "\n".join("  " + ", ".join(map(_content, row)) + "," for row in table.rows)
    return (
        f"#block(inset: (left: 1.2em), table(columns: {len(table.header)}, align: ({align},).map(a => a + horizon), "
        "stroke: none, inset: (x: 0.5em, y: 0.4em),\n"
        f"  table.header({header}), table.hline(stroke: 0.6pt),\n{rows}\n))"
    )


def _picture(picture: b.Picture) -> str:
    from headwork.render.diagram import fitting

    return f"#align(center, block(breakable: false)[{drawing_typst(fitting(picture.diagram))}])"


def _heat(heat: b.Heat) -> str:
    from headwork.render.heat import heat_map

    drawing = heat_map(heat.equation, heat.first_index, heat.tokens, heat.keys)
    return f"#block(inset: (left: 2.4em))[{drawing_typst(drawing)}]"


def _marked(marked: b.Marked) -> str:
    rows = "; ".join(", ".join(map(_marked_cell, row)) for row in marked.rows)
    return f'$ mat(delim: "[", {rows}) $'


def _marked_cell(cell: tuple[str, str]) -> str:
    text, verdict = cell
    return f'#text(fill: rgb("{VERDICTS[verdict]}"))[{_text(f"{text} {b.SIGNS[verdict]}")}]'


def _finding(finding: b.Finding) -> str:
    inside = "\n\n".join(map(_block, finding.inside))
    colour = VERDICTS[finding.verdict]
    said = f'#strong[{_text(finding.name)}]: #text(fill: rgb("{colour}"))[{_text(finding.text)}]'
    return f"{said}\n\n#aside[{inside}]" if inside else said


BLOCKS: Mapping[type[b.Block], Callable[[Any], str]] = {
    b.Title: lambda block: f"#text(size: 1.7em, weight: 700)[{_text(block.text)}]",
    b.Heading: lambda block: f"== {_text(block.text)}",
    b.Question: lambda block: f"#question[#strong[{_text(f'({block.label})')}] {_prose(block.text)}]",
    b.Paragraph: _paragraph,
    b.Flow: _flow,
    b.Display: _display,
    b.Entries: _entries,
    b.Table: _table,
    b.Picture: _picture,
    b.Heat: _heat,
    b.Space: lambda space: f"#room({space.lines})",
    b.Marked: _marked,
    b.Finding: _finding,
}
