"""What a student reads, cut where answers go: the sheet's words and matrices as Markdown or HTML, formulas in LaTeX;
and as a notebook to fill in, for the graders that collect notebooks."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from headwork.marking.graders.fields import Field, fields
from headwork.marking.mark import Marker
from headwork.marking.rules import MarkingRules
from headwork.maths import Prose
from headwork.render.blocks import Block, Display, Flow, Heading, Paragraph, Question, Table, Title
from headwork.render.latex_maths import latex
from headwork.render.markdown import aligned_latex, block_markdown, for_notebooks
from headwork.render.page import layout_of, part_blocks, problem_blocks
from headwork.render.papers import handed_over
from headwork.sheets.sheet import NUMBERS, Problem
from headwork.solving import solve_problem
from headwork.working import PartWorking

Cell = dict[str, Any]


@dataclass(frozen=True)
class Piece:
    """Some blocks and the answers that go below them; the first pieces of a problem ask for none."""

    blocks: tuple[Block, ...]
    fields: tuple[Field, ...] = ()


def paper(marker: Marker) -> Iterator[Piece]:
    """The question paper: every problem's words and givens, then part by part."""
    asked = fields(marker)
    problems = [solve_problem(own.problem, ready=own.ready) for own in marker.problems]
    for number, worked in enumerate(problems, 1):
        layout, several = layout_of(worked), len(problems) > 1
        heading = (Heading(f"{number}. {worked.problem.title}"),) if several else ()
        start = replace(worked, parts=(), picture=None)
        numbers = any(part.kind in NUMBERS for part in worked.problem.parts)
        how = (Paragraph((how_to_answer(worked.problem),), "note"),) if numbers else ()
        yield Piece((*heading, *problem_blocks(start, layout), *how))
        for part in worked.parts:
            label = f"{number}.{part.part.label}" if several else part.part.label
            handed = tuple(filter(handed_over, part.lines))
            shown = PartWorking(replace(part.part, label=label, answer=""), handed, ())
            yield Piece(tuple(part_blocks(shown, layout)), tuple(f for f in asked if f.part == label))


def how_to_answer(problem: Problem) -> str:
    """How numbers are typed, and when one is right."""
    tolerance = MarkingRules.of(problem).tolerance
    return (
        f"Give {problem.places} decimals or more, or a fraction such as 7/2; −∞ is typed -inf. "
        f"A number is right if it is {tolerance}."
    )


def markdown(blocks: Iterable[Block]) -> str:
    """As notebooks show it."""
    return for_notebooks("\n\n".join(map(block_markdown, blocks)))


def html(blocks: Iterable[Block]) -> str:
    r"""As learning platforms show it: paragraphs, with formulas between \( and \) for their MathJax."""
    return "\n".join(_HTML[type(block)](block) for block in blocks)


def name_html(field: Field) -> str:
    return _inline(latex(field.shown.maths))


def _prose(prose: Prose) -> str:
    return "".join(escape(piece) if isinstance(piece, str) else _inline(latex(piece)) for piece in prose)


def _inline(formula: str) -> str:
    return rf"\({escape(formula.strip(), quote=False)}\)"


def _table(table: Table) -> str:
    rows = ("".join(f"<td>{_prose(cell)}</td>" for cell in row) for row in (table.header, *table.rows))
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


# The blocks of a question paper: no worked line or picture is among them, and a table where what is handed over has
# tokens beside its rows.
_HTML: Mapping[type[Block], Callable[[Any], str]] = {
    Title: lambda block: f"<h3>{escape(block.text)}</h3>",
    Heading: lambda block: f"<h4>{escape(block.text)}</h4>",
    Question: lambda block: f"<p><b>({escape(block.label)})</b> {_prose(block.text)}</p>",
    Paragraph: lambda block: f"<p>{_prose(block.text)}</p>",
    Flow: lambda block: "<p>" + " &#160; ".join(_inline(latex(item)) for item in block.items) + "</p>",
    Table: _table,
    Display: lambda block: rf"<p>\[{escape(aligned_latex(block.lines), quote=False)}\]</p>",
}


def student_cells(marker: Marker, title: str = "") -> Iterator[tuple[Cell, Piece]]:
    """What is to be read, and below every part a cell for its answers, each with the piece it belongs to."""
    yield text_cell("title", f"# {title or marker.sheet.title}"), Piece(())
    for number, piece in enumerate(paper(marker)):
        yield text_cell(f"text-{number}", markdown(piece.blocks)), piece
        if piece.fields:
            yield code_cell(f"answers-{number}", _to_fill_in(piece.fields)), piece


def _to_fill_in(fields: tuple[Field, ...]) -> str:
    lines = [f"# part {fields[0].part}", *(f"{field.python} = ...  # {_form(field)}" for field in fields)]
    return "\n".join(lines)


def _form(field: Field) -> str:
    if not field.entries:
        return 'a text, such as "n×d/h"'
    rows, columns = len(field.entries), len(field.entries[0])
    return "a number" if rows == columns == 1 else f"{rows}×{columns}, row by row: [[1, 0.25], [3, 4]]"


def text_cell(name: str, source: str, **metadata: Any) -> Cell:
    return {"cell_type": "markdown", "id": name, "metadata": metadata, "source": source}


def code_cell(name: str, source: str, **metadata: Any) -> Cell:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": metadata,
        "source": source,
        "execution_count": None,
        "outputs": [],
    }


def notebook(cells: Iterable[Cell]) -> bytes:
    """An .ipynb file."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": list(cells),
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return (json.dumps(whole, ensure_ascii=False, indent=1) + "\n").encode()
