"""The bench's own page: a sheet's blocks as HTML, what is given as grids to edit, and only what an edit changes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib import resources
from typing import Any

from headwork import working as w
from headwork.graph import Step
from headwork.maths import Maths
from headwork.readings.exact import Hidden
from headwork.render import blocks as b
from headwork.render.cells import Style
from headwork.render.colours import family, style_sheet
from headwork.render.html import block_html, mathml, static
from headwork.render.layout import numbered
from headwork.render.page import layout_of, names_on
from headwork.render.prose import read_prose
from headwork.sheets.ready import Ready
from headwork.sheets.sheet import NUMBERS, EachHead, Part, Sheet
from headwork.solver import Solver
from headwork.solving import solve_problem
from headwork.web.lines import ShownLine, unchanged
from headwork.web.switches import switches
from headwork.web.tables import Table, given_name, sheet_of


class Page:
    """A sheet on the page. `edited` works the same sheet with other numbers, and remembers."""

    def __init__(self, table: Table, *, exact: bool = False) -> None:
        self.table, self.exact = table, exact
        self.sheet: Sheet = sheet_of(table)
        self.ready = [Ready(problem) for problem in self.sheet.problems]
        self.worked = [solve_problem(r.problem, ready=r) for r in self.ready]
        self.names = [names_on(worked) for worked in self.worked]
        self.pieces = list(self._lines())

    def _lines(self) -> Iterator[ShownLine]:
        """Every line of every part; each matrix gets its key anew, in the same order."""
        keys = numbered()
        for problem in self.worked:
            layout = layout_of(problem, exact=self.exact)
            for part in problem.parts:
                for line in part.lines:
                    yield ShownLine(line, layout, next(keys) if isinstance(line, w.Equation) else "")

    def edited(self, table: Table, sheet: Sheet) -> dict[str, Any]:
        """Work the sheet with other numbers: the entries that change, and the blocks where more than entries does."""
        self.sheet, self.table = sheet, table
        self.ready = [r.again(p) for r, p in zip(self.ready, self.sheet.problems, strict=True)]
        self.worked = [_anew(before, r) for before, r in zip(self.worked, self.ready, strict=True)]
        cells: list[tuple[int, int, str]] = []
        blocks: dict[int, str] = {}
        for number, new in enumerate(self._lines()):
            old = self.pieces[number]
            if _same(new.line, old.line):
                continue
            self.pieces[number] = new
            if (changed := new.changed_from(old)) is None:
                blocks[number] = new.html
            else:
                cells += [(number, place, html) for place, html in changed]
        return {"cells": cells, "blocks": blocks}

    def style(self, number: int) -> Style:
        """How the numbers of a problem are printed."""
        return layout_of(self.worked[number], exact=self.exact).style

    def part_of(self, block: int) -> tuple[int, Part]:
        """The number of the problem and the part in which a block stands."""
        for number, problem in enumerate(self.worked):
            for part in problem.parts:
                if block < len(part.lines):
                    return number, part.part
                block -= len(part.lines)
        raise AssertionError("every block stands in a part")

    def html(self) -> str:
        """The whole of it."""
        pieces = iter(enumerate(self.pieces))
        sections = [self._problem(number, pieces) for number in range(len(self.worked))]
        about = f'<p class="summary">{escape(self.sheet.summary)}</p>' if self.sheet.summary else ""
        return f"<header><h1>{escape(self.sheet.title)}</h1>{about}</header>\n" + "\n".join(sections)

    def _problem(self, number: int, pieces: Iterator[tuple[int, ShownLine]]) -> str:
        worked, ready = self.worked[number], self.ready[number]
        names = self.names[number]
        made = [f'<section class="problem" data-problem="{number}">']
        if len(self.worked) > 1:
            made.append(f"<h2>{number + 1}. {escape(worked.problem.title)}</h2>")
        made.append(f'<details class="settings"><summary>Switches</summary>{switches(ready, number)}</details>')
        if worked.problem.text:
            made.append(block_html(b.Paragraph(read_prose(worked.problem.text, names))))
        made += ['<div class="beside"><div class="start">', self.givens(number)]
        if worked.picture:
            made.append(block_html(b.Picture(worked.picture, asked=False)))
        made.append('</div><div class="parts">')
        for part in worked.parts:
            made.append(f'<article class="part" data-part="{escape(part.part.label)}">')
            made.append(block_html(b.Question(part.part.label, read_prose(part.part.text, names))))
            own = self.table["problem"][number]["part"][worked.parts.index(part)].get("given")
            made.append(self._grids(number, own, part.part.label) if own else "")
            for _ in part.lines:
                place, piece = next(pieces)
                about = _about(piece.line)
                made.append(f'<div class="block" data-block="{place}"{about}>{piece.html}</div>')
            if part.part.answer:
                made.append(block_html(b.Paragraph(read_prose(part.part.answer, names), "answer")))
            made.append("</article>")
        return "\n".join([*made, "</div></div></section>"])

    def givens(self, number: int, *, locked: bool = False) -> str:
        """What a problem gives, as grids."""
        made = self._grids(number, self.table["problem"][number].get("given", {}), None, locked)
        mask = self.ready[number].problem.mask
        if not isinstance(mask, str | EachHead):
            rows = "".join(
                "<tr>" + "".join(_mask_cell(isinstance(x, Hidden), i, j) for j, x in enumerate(row)) + "</tr>"
                for i, row in enumerate(mask)
            )
            made += (
                f'<div class="matrix"><span class="name">mask =</span><table class="cells mask" aria-label="mask" '
                f'data-problem="{number}" data-role="mask" data-head=""><tbody>{rows}</tbody></table></div>'
            )
        return f'<div class="givens" aria-label="What is given" role="group">{made}</div>'

    def _grids(self, number: int, given: Table, part: str | None, locked: bool = False) -> str:
        problem = self.sheet.problems[number]
        found = problem.given if part is None else next(p.given for p in problem.parts if p.label == part)
        names = {given_name(key, problem.notation.first_index): key for key in found}
        made = []
        for name, rows in given.items():
            role, head = names[name]
            called = problem.notation.of_role(role, head)
            about = {"problem": number, "part": part, "name": name, "role": role, "head": head}
            made.append(grid(called.maths, str(called), rows, about, locked=locked))
        return "".join(made)


def _anew(before: w.ProblemWorking, ready: Ready) -> w.ProblemWorking:
    """A problem's lines with other numbers; what holds no numbers rests on the shapes alone, which stay."""
    solver = Solver(ready, None, only_asked=False)
    parts = [
        replace(worked, lines=tuple(solver.values(worked.part)), steps=(), answers=())
        if worked.part.kind in NUMBERS
        else worked
        for worked in (replace(old, part=new) for old, new in zip(before.parts, ready.problem.parts, strict=True))
    ]
    return replace(before, problem=ready.problem, parts=tuple(parts))


def _same(line: w.Line, old: w.Line) -> bool:
    """Whether a line shows the very numbers that it showed: what was not worked out anew is the same object."""
    if isinstance(line, w.Equation) and isinstance(old, w.Equation):
        both = zip(
            (line.value, *(o.value for o in line.operands)), (old.value, *(o.value for o in old.operands)), strict=True
        )
        return all(unchanged(new, before) for new, before in both)
    if isinstance(line, w.Arithmetic) and isinstance(old, w.Arithmetic):
        return unchanged((*line.terms, (line.result,)), (*old.terms, (old.result,)))
    return True


def _about(line: w.Line) -> str:
    """Which step a block is about, for the figure and for whoever asks."""
    if not isinstance(line, w.Equation | w.Arithmetic):
        return ""
    step: Step = line.step
    return f' data-step="{escape(step.role)}" data-head="{"" if step.head is None else step.head}"'


def grid(
    name: Maths,
    called: str,
    rows: Sequence[Sequence[str]],
    about: Mapping[str, object],
    *,
    corner: tuple[int, int] = (0, 0),
    locked: bool = False,
) -> str:
    """A name, "=", and an input for every entry. `about` are the data attributes by which it is found; `corner` is the
    row and column of the first entry; what is `locked` can be read and not changed."""
    data = "".join(f' data-{key}="{escape(str("" if value is None else value))}"' for key, value in about.items())
    label, close = escape(called), " readonly></td>" if locked else "></td>"
    role = family(str(about.get("role", "")))
    kind = f"cells role-{role}" if role else "cells"
    body = ""
    for i, row in enumerate(rows):
        cells = (_cell(label, text, i, j, corner) + close for j, text in enumerate(row))
        body += f"<tr>{''.join(cells)}</tr>"
    return (
        f'<div class="matrix"><span class="name">{mathml(name)}<span aria-hidden="true"> =</span></span>'
        f'<table class="{kind}" role="grid" aria-label="{label}"{data}><tbody>{body}</tbody></table></div>'
    )


def _cell(label: str, text: str, i: int, j: int, corner: tuple[int, int]) -> str:
    """Up to where its tag is closed."""
    return (
        f'<td role="gridcell"><input data-row="{i + corner[0]}" data-column="{j + corner[1]}" value="{escape(text)}" '
        f'size="{max(2, len(text))}" aria-label="{label}, row {i + 1}, column {j + 1}" autocomplete="off" '
        'spellcheck="false"'
    )


def _mask_cell(hidden: bool, i: int, j: int) -> str:
    said = "hidden" if hidden else "may be read"
    return (
        f'<td><button type="button" data-row="{i}" data-column="{j}" aria-pressed="{str(hidden).lower()}" '
        f'aria-label="token {i + 1}, key {j + 1}: {said}">{"−∞" if hidden else "0"}</button></td>'
    )


def view(table: Table, *, exact: bool = False) -> str:
    """A sheet's table as the fragment that stands in the page."""
    return Page(table, exact=exact).html()


def assets() -> dict[str, bytes]:
    """Every file of the page but index.html, by name: its own, and the style that all pages of headwork have."""
    own = resources.files("headwork.web") / "static"
    found = {file.name: file.read_bytes() for file in own.iterdir() if file.name != "index.html"}
    return {**found, "page.css": (style_sheet() + static("page.css")).encode()}


def document(table: Table, name: str, head: str = "") -> str:
    """The whole first page: index.html with a sheet in it. `head` goes into <head>: who answers, for instance."""
    shown = json.dumps({"name": name, "table": table}, ensure_ascii=False).replace("<", "\\u003c")
    page = (resources.files("headwork.web") / "static" / "index.html").read_text("utf-8").replace("<!--head-->", head)
    first = f'{view(table)}\n<script type="application/json" id="first">{shown}</script>'
    return page.replace("<!--view-->", first)
