"""The page in HTML: one file, nothing from the network, formulas in MathML; entries can be pointed at."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from importlib import resources
from typing import Any

from headwork.maths import Prose
from headwork.render import blocks as b
from headwork.render.colours import style_sheet
from headwork.render.mathml import mathml, spot_id
from headwork.render.svg import svg

LAYOUT = {"pointing": True}  # a page scrolls, so there is room


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
    inside = False
    for block in blocks:
        if not inside or isinstance(block, b.Heading):
            yield "</section>\n<section>\n" if inside else "<section>\n"
            inside = True
        if isinstance(block, b.Display):
            found.update((spot_id(how.spot), _how(how)) for how in block.how)
        yield block_html(block) + "\n"
    yield "</section>\n" if inside else ""


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


def prose_html(prose: Prose) -> str:
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
    def cells(row: tuple[Prose, ...], tag: str) -> Iterator[str]:
        for i, cell in enumerate(row):
            side = "" if i < table.left else ' class="right-hand"'
            scope = ' scope="col"' if tag == "th" else ""
            yield f"<{tag}{scope}{side}>{prose_html(cell)}</{tag}>"

    head = "".join(cells(table.header, "th"))
    rows = "\n".join(f"<tr>{''.join(cells(row, 'td'))}</tr>" for row in table.rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'


def _picture(picture: b.Picture) -> str:
    from headwork.render.diagram import fitting

    return f'<figure class="picture">{svg(fitting(picture.diagram))}</figure>'


def heat_svg(heat: b.Heat) -> str:
    from headwork.render.heat import drawn

    return svg(drawn(heat))


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
    b.Picture: _picture,
    b.Heat: lambda heat: f'<figure class="heat">{heat_svg(heat)}</figure>',
    b.Marked: _marked,
    b.Finding: _finding,
    b.Space: lambda space: f'<div class="space" style="height:{1.8 * space.lines:.1f}em"></div>',
}
