"""The page as Typst source, formulas and all, and through its compiler, a Python wheel, as PDF: no TeX needed."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from headwork import maths as m
from headwork.render import blocks as b
from headwork.render.colours import FAMILIES, LIGHT, VERDICTS, family
from headwork.render.diagram import picture_of
from headwork.render.drawing import Drawing
from headwork.render.svg import svg

LAYOUT: dict[str, Any] = {"room": 88, "cell": 36, "abreast": True}  # characters that fit on a line, and in a cell
PIXEL = 0.54  # points to a unit of a drawing
PAGE = (480, 720)  # points that a page has for a picture
HIGH = 540  # points of a picture that leaves a page too little room for steps
TALLEST = 360  # points of a picture that nobody asked for: half the page
BESIDE = 5  # displays that are about as high as such a picture
WIDEST = 160  # points of one beside which the page goes on: a third of its width
CELLS = (b.Display, b.Heat, b.Table)  # which stand side by side where they are narrow

_PREAMBLE = """#set document(title: {title})
#set page(paper: "a4", margin: (x: 2cm, top: 1.4cm, bottom: 1.5cm), footer-descent: 10%, numbering: "1")
#set text(font: "New Computer Modern", size: 10pt, lang: "en")
#set par(leading: 0.65em, spacing: 0.8em)
#set math.mat(delim: "[", align: right, column-gap: 0.6em, row-gap: 0.35em)
#show heading: set block(above: 1.6em, below: 0.9em)
#show math.equation.where(block: true): set align(start)
#show math.equation.where(block: true): set block(above: 0pt, below: 0pt)
#let blanks(count) = box(width: count * 2em, height: 0.9em, stroke: (bottom: 0.5pt))
#let blank = blanks(1)
#let room(lines) = for _ in range(lines) { block(height: 0.8cm, above: 0pt, below: 0pt)[~] }
#let question(body) = block(above: 0.9em, below: 0.5em, sticky: true, body)
#let gap(body) = hide(body)
#let aside(body) = block(inset: (left: 1.2em, y: 0.2em), stroke: (left: 2pt + luma(70%)), body)
#let steps(body) = block(inset: (left: 0.8em), breakable: false)[#set par(leading: 0.45em)
#body]
#let abreast(..cells) = layout(size => {
  let row(columns, ..cells) = block(above: 0.5em, below: 0.5em, breakable: false, grid(columns: columns, ..cells))
  let half = size.width / 2
  let left = none
  for cell in cells.pos() {
    let last = size.width - measure(cell).width
    let first = if left == none { size.width } else { measure(left).width + 0.8em.to-absolute() }
    if left == none { left = cell }
    else if first <= last { row((calc.max(first, calc.min(half, last)), 1fr), left, cell); left = none }
    else { row((1fr,), left); left = cell }
  }
  if left != none { row((1fr,), left) }
})
#let beside(body, picture) = grid(columns: (1fr, auto), column-gutter: 1em, body, picture)
#let floating(picture) = place(bottom + center, float: true, clearance: 1em, picture)
#let filling(picture) = place(bottom + center, float: true, block(height: 100%, align(horizon, picture)))
#let spare(floated) = context if counter(page).final().first() > 1 { floated }
#let remark(body) = { h(1em); text(size: 0.9em, fill: luma(30%), body) }
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
    return _PREAMBLE.replace("{title}", string(title)) + _roles() + "\n" + "\n\n".join(_set(page)) + "\n"


def _set(page: Iterable[b.Block]) -> Iterator[str]:
    """The blocks, those that may stand side by side gathered; a picture that nobody asked for, beside the first."""
    beside = ""
    for cells, run in groupby(page, lambda block: isinstance(block, CELLS)):
        if cells:
            blocks = _named_once(run)
            if beside:
                yield f"#beside[{_abreast(blocks[:BESIDE])}][{beside}]"
                blocks, beside = blocks[BESIDE:], ""
            yield _abreast(blocks)
            continue
        for block in run:
            if isinstance(block, b.Picture) and not block.asked:
                beside, spare = _unasked(block)
                yield spare
            else:
                yield _block(block)


def _abreast(blocks: Sequence[b.Block]) -> str:
    return "#abreast(\n" + "".join(f"[{_block(block)}],\n" for block in blocks) + ")"


def _named_once(blocks: Iterable[b.Block]) -> list[b.Block]:
    """A heat map carries the names of the tokens: the table of the same numbers after it is left out."""
    kept: list[b.Block] = []
    for block in blocks:
        if not (isinstance(block, b.Table) and kept and isinstance(kept[-1], b.Heat) and kept[-1].tokens):
            kept.append(block)
    return kept


def _unasked(picture: b.Picture) -> tuple[str, str]:
    """A picture to stand beside the first steps; or, if that would leave them little room, one that floats, and that a
    sheet of one page goes without: the lines say the same."""
    drawing = picture_of(picture)
    small = drawing.width * PIXEL < WIDEST and drawing.height * PIXEL < TALLEST
    return (drawing_typst(drawing), "") if small else ("", f"#spare[{_floated(drawing)}]")


def _block(block: b.Block) -> str:
    return BLOCKS[type(block)](block)


def _floated(drawing: Drawing) -> str:
    """A picture that stands where it fits on a page; smaller where it is larger than one, as the rest would be cut off.

    Steps that are higher than what it leaves of the page would be set over it: a high one has a page of its own.
    """
    width, height = drawing.width * PIXEL, drawing.height * PIXEL
    share = min(1.0, PAGE[0] / width, PAGE[1] / height)
    return f"#{'filling' if height * share > HIGH else 'floating'}[{drawing_typst(drawing, share=share)}]"


def drawing_typst(drawing: Drawing, theme: str = "light", share: float = 1.0) -> str:
    """A drawing with its text alternative."""
    width = drawing.width * PIXEL * share
    return (
        f'#image(bytes({string(svg(drawing, theme))}), format: "svg", width: {width:.1f}pt, '
        f"alt: {string(drawing.words)})"
    )


def drawing_file(drawing: Drawing, format: str, theme: str) -> bytes:
    """A drawing alone: as PDF, or as PNG of two pixels to its unit."""
    source = (
        "#set page(width: auto, height: auto, margin: 0pt)\n"
        f"#set document(title: {string(drawing.title)})\n"
        '#set text(font: "New Computer Modern")\n' + drawing_typst(drawing, theme)
    )
    return compiled(source, format, ppi=72 / PIXEL * 2 if format == "png" else None)


def _text(text: str) -> str:
    """Whatever a sheet says, as a string: nothing in it is taken for a command."""
    return f"#{string(text)};"


def _prose(prose: m.Prose) -> str:
    return "".join(_text(p) if isinstance(p, str) else f"${typst_maths(p)}$" for p in prose)


def _content(prose: m.Prose) -> str:
    return f"[{_prose(prose)}]"


def _paragraph(paragraph: b.Paragraph) -> str:
    text = _prose(paragraph.text)
    if paragraph.kind == "answer":
        return f"#aside[{text}]"
    if paragraph.kind in ("note", "aside"):
        return f"#text(size: 0.85em, fill: luma(30%))[{text}]"
    return f"_Claim._ {text}" if paragraph.kind == "claim" else text


def _flow(flow: b.Flow) -> str:
    items = "#h(1.6em, weak: true)".join(f"#box(inset: (y: 0.2em), $display({typst_maths(i)})$) " for i in flow.items)
    return f"#block(above: 0.8em, below: 0.8em)[#set par(leading: 0.3em)\n{items}]"


def _display(display: b.Display) -> str:
    """One formula, its lines aligned on their relations; the numbers of a step stand below its name, to save room."""
    mark = "&" if display.equation is None else ""
    return "#steps[$ " + " \\\n  ".join(_line(line, mark) for line in display.lines) + " $]"


def _line(line: b.Aligned, mark: str) -> str:
    left = ("" if mark else "quad") if line.left is None else typst_maths(line.left)
    right = joined(typst_maths(piece) for piece in line.pieces)
    remark = f" #remark{_content(line.remark)}" if line.remark else ""
    return f"{left} {mark}{right}{remark}"


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


def _marked(marked: b.Marked) -> str:
    rows = " ; ".join(", ".join(map(_marked_cell, row)) for row in marked.rows)  # "];" would only end the code
    return f'#block(below: 1em, $ mat(delim: "[", {rows}) $)'


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
    # What comes next fills a page where a picture does not fit.
    b.Picture: lambda picture: _floated(picture_of(picture)),
    b.Heat: lambda heat: f"#block(inset: (left: 2.4em))[{drawing_typst(picture_of(heat))}]",
    b.Space: lambda space: f"#room({space.lines})",
    b.Marked: _marked,
    b.Finding: _finding,
}


# Formulas, in Typst's mathematics.

_SIGNS = dict(
    zip("·×−=+≈…|∘", ["dot.op", "times", "minus", "=", "+", "approx", "dots.h", "bar.v", "compose"], strict=True)
)
_OVER = {"\u0302": "hat", "\u0303": "tilde", "\u20d7": "arrow", "\u0307": "dot"}


def typst_maths(maths: m.Maths) -> str:
    """The formula in Typst, without the dollar signs around it."""
    return NODES[type(maths)](maths)


def string(text: str) -> str:
    """A string literal of Typst's."""
    kept = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _letter(letter: m.Letter) -> str:
    """A letter alone is set in italics; a word is text."""
    base = letter.text.rstrip("′")
    primes = "'" * (len(letter.text) - len(base))
    apart = unicodedata.normalize("NFD", base)
    if apart[1:] in _OVER:
        return f"{_OVER[apart[1:]]}({_letter(m.Letter(apart[0]))}){primes}"
    if len(base) == 1:
        # As a string it would lose the room that a slanted letter needs after it: "V=".
        return f"italic({base}){primes}" if base.isalpha() else string(base) + primes
    return f"upright({string(base)}){primes}"


def _words(words: m.Words) -> str:
    if words == m.TRANSPOSED:
        return "top"
    if words == m.BLANK:
        return "blank"  # defined where the page begins
    return string(words.text)


def _named(named: m.Named) -> str:
    return _coloured(typst_maths(named.of), named.role)


def _coloured(formula: str, role: str) -> str:
    colour = family(role)
    return f"role{colour}({formula})" if colour else formula  # defined where the page begins


def _grid(grid: m.Grid) -> str:
    rows = "; ".join(", ".join(map(typst_maths, row)) for row in grid.rows)
    return _coloured(f"mat({rows})", grid.holds.role if grid.holds else "")


def _sign(sign: m.Sign) -> str:
    if sign.text in _SIGNS:
        return _SIGNS[sign.text]
    if len(sign.text) == 1 and not sign.text.isascii() and unicodedata.category(sign.text) == "Sm":
        # As a string it would lose its room: "α≤β". Roots and ℘ are more than signs to Typst.
        return string(sign.text) if sign.text in "√∛∜℘" else sign.text
    return f"\\{sign.text}" if sign.text in "()[],;" else string(sign.text)


def _row(row: m.Row) -> str:
    """Side by side; a minus that starts a row is a sign of its number and takes no room of its own."""
    if not row.items:
        return string("")  # a function without its argument would be a mistake
    if set(row.items) == {m.BLANK}:
        return f"#blanks({len(row.items)})"
    if row.items[0] == m.Sign("−"):
        return joined(['class("normal", minus)', *map(typst_maths, row.items[1:])])
    return joined([typst_maths(item) for item in row.items])


def joined(pieces: Iterable[str]) -> str:
    """One after the other, with a space only where two names would run together: Typst shows it beside text."""
    line = ""
    for piece in pieces:
        together = line[-1:].isalnum() and piece[:1].isalnum()
        line += f" {piece}" if together else piece
    return line


NODES: Mapping[type[m.Maths], Callable[[Any], str]] = {
    m.Letter: _letter,
    m.Number: lambda number: number.text if number.text.replace(".", "", 1).isdecimal() else string(number.text),
    m.Sign: _sign,
    m.Words: _words,
    m.Named: _named,
    m.Gap: lambda gap: f"gap({string(gap.text)})",
    m.Row: _row,
    m.Below: lambda node: f"attach({typst_maths(node.base)}, b: {typst_maths(node.script)})",
    m.Above: lambda node: f"attach({typst_maths(node.base)}, t: {typst_maths(node.script)})",
    m.Ratio: lambda ratio: f"frac({typst_maths(ratio.over)}, {typst_maths(ratio.under)})",
    m.RootOf: lambda root: f"sqrt({typst_maths(root.of)})",
    m.Barred: lambda barred: f"macron({typst_maths(barred.of)})",
    m.Grid: _grid,
}
