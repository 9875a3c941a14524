"""The page in HTML: one file, nothing from the network, formulas in MathML; entries can be pointed at."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from importlib import resources
from typing import Any

from headwork import maths as m
from headwork.render import blocks as b
from headwork.render.colours import family, style_sheet
from headwork.render.diagram import picture_of
from headwork.render.svg import svg
from headwork.working import ProblemWorking

LAYOUT = {"pointing": True}  # a page scrolls, so there is room
SCOPE = "headwork"  # the class of what a notebook shows: the style reaches nothing outside it


def document(blocks: Iterable[b.Block]) -> str:
    """The whole page; its first block is its title."""
    return "".join(streamed(blocks))


def streamed(blocks: Iterable[b.Block]) -> Iterator[str]:
    """The page piece by piece. What is known of entries that can be pointed at goes with it as data, and a script."""
    rest = iter(blocks)
    title = next(rest)
    assert isinstance(title, b.Title)
    yield (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title.text)}</title>\n<style>\n{style_sheet()}{static('page.css')}</style>\n</head>\n<body>\n<main>\n"
    )
    yield block_html(title) + "\n"
    found: dict[str, object] = {}
    yield from _sections(rest, found)
    yield "</main>\n"
    if found:
        data = json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
        yield f'<script type="application/json" id="how">{data}</script>\n<script>\n{static("page.js")}</script>\n'
    yield "</body>\n</html>\n"


def _sections(blocks: Iterable[b.Block], found: dict[str, object]) -> Iterator[str]:
    """A section for every heading and what stands under it; for what stands before the first one too."""
    begun = False
    for block in blocks:
        if not begun or isinstance(block, b.Heading):
            yield "</section>\n<section>\n" if begun else "<section>\n"
            begun = True
        if isinstance(block, b.Display):
            found.update((spot_id(how.spot), _how(how)) for how in block.how)
        yield block_html(block) + "\n"
    yield "</section>\n" if begun else ""


def static(name: str) -> str:
    return (resources.files("headwork.render") / "static" / name).read_text("utf-8")


def block_html(block: b.Block) -> str:
    return BLOCKS[type(block)](block)


def _how(how: b.How) -> dict[str, object]:
    """An entry for the script: what to light up, and what to show."""
    return {"from": [spot_id(spot) for spot in how.sources], "shown": how_html(how)}


def how_html(how: b.How) -> str:
    """The arithmetic of an entry, line by line, and why it is hidden."""
    lines = '<div class="display">' + "".join(f'<div class="line">{_line(line)}</div>' for line in how.lines) + "</div>"
    reason = f"<p>{escape(how.reason)}</p>" if how.reason else ""
    return lines + reason


def prose_html(prose: m.Prose) -> str:
    return "".join(escape(p) if isinstance(p, str) else mathml(p) for p in prose)


def _line(line: b.Aligned) -> str:
    left = mathml(line.left, display=True) if line.left is not None else ""
    pieces = "".join(f'<span class="piece">{mathml(piece, display=True)}</span>' for piece in line.pieces)
    remark = f'<span class="remark">{prose_html(line.remark)}</span>' if line.remark else ""
    return f'<span class="left">{left}</span><span class="right">{pieces}{remark}</span>'


def _display(display: b.Display) -> str:
    key = f' data-key="{display.key}"' if display.key else ""
    return f'<div class="display scroll"{key}>' + "".join(map(_line, display.lines)) + "</div>"


def _flow(flow: b.Flow) -> str:
    items = "\n".join(f'<span class="piece">{mathml(item)}</span>' for item in flow.items)
    return f'<div class="flow scroll">{items}</div>'


def _entries(entries: b.Entries) -> str:
    items = "\n".join(f"<li>{mathml(item)}</li>" for item in entries.items)
    return f'<ul class="entries scroll">{items}</ul>'


def _table(table: b.Table) -> str:
    def cells(row: tuple[m.Prose, ...], tag: str) -> Iterator[str]:
        for i, cell in enumerate(row):
            side = "" if i < table.left else ' class="right-hand"'
            scope = ' scope="col"' if tag == "th" else ""
            yield f"<{tag}{scope}{side}>{prose_html(cell)}</{tag}>"

    head = "".join(cells(table.header, "th"))
    rows = "\n".join(f"<tr>{''.join(cells(row, 'td'))}</tr>" for row in table.rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'


def _marked(marked: b.Marked) -> str:
    rows = ("".join(map(_marked_cell, row)) for row in marked.rows)
    grid = "".join(f"<mtr>{row}</mtr>" for row in rows)
    return f'<div class="display"><math display="block"><mo>[</mo><mtable>{grid}</mtable><mo>]</mo></math></div>'


def _marked_cell(cell: tuple[str, str]) -> str:
    text, verdict = cell
    return f'<mtd class="verdict-{verdict}"><mtext>{escape(text)} {b.SIGNS[verdict]}</mtext></mtd>'


def _finding(finding: b.Finding) -> str:
    said = f'<b>{escape(finding.name)}</b>: <span class="verdict-{finding.verdict}">{escape(finding.text)}</span>'
    return f'<div class="finding"><p>{said}</p>' + "".join(map(block_html, finding.inside)) + "</div>"


BLOCKS: Mapping[type[b.Block], Callable[[Any], str]] = {
    b.Title: lambda block: f"<h1>{escape(block.text)}</h1>",
    b.Heading: lambda block: f"<h2>{escape(block.text)}</h2>",
    b.Question: lambda block: f'<p class="question"><b>({escape(block.label)})</b> {prose_html(block.text)}</p>',
    b.Paragraph: lambda block: f'<p class="{block.kind}">{prose_html(block.text)}</p>',
    b.Flow: _flow,
    b.Display: _display,
    b.Entries: _entries,
    b.Table: _table,
    b.Picture: lambda picture: f'<figure class="picture">{svg(picture_of(picture))}</figure>',
    b.Heat: lambda heat: f'<figure class="heat">{svg(picture_of(heat))}</figure>',
    b.Marked: _marked,
    b.Finding: _finding,
    b.Space: lambda space: f'<div class="space" style="height:{1.8 * space.lines:.1f}em"></div>',
}


# For notebooks.


def fragment(thing: object) -> str:
    """A line, a problem or a whole working as a notebook shows it: the page's blocks and style, with no script."""
    from headwork.render.page import shown_blocks

    title = [b.Title(thing.problem.title)] if isinstance(thing, ProblemWorking) else []
    body = "\n".join(map(block_html, [*title, *shown_blocks(thing)]))
    return f'<div class="{SCOPE}"><style>\n{scoped(static("matrix.css"))}</style>\n{body}\n</div>'


def scoped(style: str) -> str:
    """Every rule under the class: one rule to a line, as the file has them."""
    return "".join(f".{SCOPE} {line}\n" if "{" in line else f"{line}\n" for line in style.splitlines())


# Formulas, which browsers set by themselves. The brackets of a matrix are drawn by the style sheet.

STILL = ' stretchy="false"'
OPENING = (m.Sign("("), m.Sign("["))
FULL = ' displaystyle="true"'


def mathml(maths: m.Maths, *, display: bool = False) -> str:
    """A whole formula; fractions stand at full size in a display."""
    return f"<math{FULL if display else ''}>{inside(maths)}</math>"


def inside(maths: m.Maths) -> str:
    """A part of a formula, as it stands in one."""
    return NODES[type(maths)](maths)


def _one(maths: m.Maths) -> str:
    """As a single element: MathML counts children, and a minus that comes first in its row is a sign."""
    return f"<mrow>{inside(maths)}</mrow>" if isinstance(maths, m.Row) else inside(maths)


def _words(words: m.Words) -> str:
    if words == m.BLANK:
        return '<mspace class="blank" width="2.6em" height="1.1em" depth="0.3em"/>'
    return f"<mtext>{escape(words.text).replace(' ', '&#160;')}</mtext>"


def _sign(sign: m.Sign) -> str:
    return f"<mo{STILL if sign.text in '|‖()[]⟨⟩' else ''}>{escape(sign.text)}</mo>"


def _row(row: m.Row) -> str:
    """Side by side; brackets grow with a fraction or a matrix between them, and only then."""
    items = [_one(item) for item in row.items]
    if len(items) == 3 and row.items[0] in OPENING and ("<mfrac" in items[1] or "<mtable" in items[1]):
        items[0], items[2] = (
            f"<mo>{sign.text}</mo>" for sign in (row.items[0], row.items[2]) if isinstance(sign, m.Sign)
        )
    return "".join(items)


def _name(named: m.Named) -> str:
    of, role = _one(named.of), family(named.role)
    return f'<mrow class="role-{role}">{of}</mrow>' if role else of


def _grid(grid: m.Grid) -> str:
    rows = "".join(
        "<mtr>" + "".join(f"<mtd{_named(grid, i, j)}>{inside(cell)}</mtd>" for j, cell in enumerate(row)) + "</mtr>"
        for i, row in enumerate(grid.rows)
    )
    role = family(grid.holds.role) if grid.holds else ""
    return f'<mtable class="grid{f" role-{role}" if role else ""}"{held(grid.holds)}>{rows}</mtable>'


def held(holds: m.Holds | None) -> str:
    """The attributes by which a page, its tests and other people's scripts find a matrix."""
    if holds is None:
        return ""
    return f' data-role="{escape(holds.role)}" data-head="{"" if holds.head is None else escape(str(holds.head))}"'


def _named(grid: m.Grid, i: int, j: int) -> str:
    name = f' id="{spot_id((grid.key, i, j))}"' if grid.key else ""
    if grid.holds is None:
        return name
    row, column = grid.holds.place(i, j)
    return f'{name} data-row="{row}" data-column="{column}"'


def spot_id(spot: b.Spot) -> str:
    """What a page calls an entry of a matrix."""
    return "-".join(map(str, spot))


NODES: Mapping[type[m.Maths], Callable[[Any], str]] = {
    m.Letter: lambda letter: f"<mi>{escape(letter.text)}</mi>",
    m.Number: lambda number: f"<mn>{escape(number.text)}</mn>",
    m.Sign: _sign,
    m.Words: _words,
    m.Named: _name,
    m.Gap: lambda gap: f"<mphantom><mn>{escape(gap.text)}</mn></mphantom>",
    m.Row: _row,
    m.Below: lambda node: f"<msub>{_one(node.base)}{_one(node.script)}</msub>",
    m.Above: lambda node: f"<msup>{_one(node.base)}{_one(node.script)}</msup>",
    m.Ratio: lambda ratio: f"<mfrac>{_one(ratio.over)}{_one(ratio.under)}</mfrac>",
    m.RootOf: lambda root: f"<msqrt>{inside(root.of)}</msqrt>",
    m.Barred: lambda barred: f'<mover accent="true">{inside(barred.of)}<mo>¯</mo></mover>',
    m.Grid: _grid,
}
