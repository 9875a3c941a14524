"""A `Working` as JSON, schema 1.

{"schema": 1, "title", "problems": [{"title", "parts": [{"label", "kind", "steps": [
    {"name", "role", "head", "shape", "value", "exact"}]}]}]}

`steps` are all that the part needed, inputs first. `head` counts from 0, or is null. `shape` holds numbers, or text
where a size is a symbol. `value` holds decimals of 12 significant digits as text ("-inf" where hidden) and `exact`
closed forms, null for an entry that has none or one too long to read; both are null where only a shape is known. Parts
of other kinds than "value" carry their lines as "text" besides.
"""

import json
from typing import Any

from headwork.numbers.digits import significant
from headwork.numbers.text import length, text
from headwork.readings.exact import Entry, Hidden
from headwork.readings.shapes import size_text
from headwork.render.cells import LONGEST_FORM
from headwork.render.layout import Layout
from headwork.render.page import layout_of
from headwork.render.text import WIDTH, on_lines, part_text
from headwork.sheets.sheet import NUMBERS
from headwork.working import Counts, Diagram, Equation, PartWorking, Shapes, Working

SCHEMA = 1
FIGURES = 12


def working_json(working: Working) -> str:
    """The whole working, indented."""
    return json.dumps(_working(working), indent=2, ensure_ascii=False) + "\n"


def _working(working: Working) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "title": working.title,
        "problems": [
            {
                "title": problem.problem.title,
                "parts": [_part(part, layout_of(problem, **on_lines(WIDTH))) for part in problem.parts],
            }
            for problem in working.problems
        ],
    }


def _part(worked: PartWorking, layout: Layout) -> dict[str, Any]:
    fields = {
        "label": worked.part.label,
        "kind": worked.part.kind,
        "find": list(worked.part.find),
        "steps": [_step(equation) for equation in worked.steps or _table_steps(worked)],
    }
    if worked.part.kind not in NUMBERS:
        fields["text"] = part_text(worked, layout)
    return fields


def _table_steps(worked: PartWorking) -> list[Equation]:
    """The steps of a table of shapes or counts."""
    steps: list[Equation] = []
    for line in worked.lines:
        if isinstance(line, Shapes | Diagram):
            steps += line.rows
        elif isinstance(line, Counts):
            steps += [equation for equation, _, _ in line.rows]
    return steps


def _step(equation: Equation) -> dict[str, Any]:
    return {
        "name": str(equation.name),
        "role": equation.role,
        "head": equation.head,
        "shape": [size if isinstance(size, int) else size_text(size) for size in equation.shape],
        "value": _matrix(equation, _decimal),
        "exact": _matrix(equation, _closed),
    }


def _matrix(equation: Equation, write: Any) -> list[list[str]] | None:
    return None if equation.value is None else [[write(entry) for entry in row] for row in equation.value]


def _decimal(entry: Entry) -> str:
    return "-inf" if isinstance(entry, Hidden) else significant(entry, FIGURES)


def _closed(entry: Entry) -> str | None:
    if isinstance(entry, Hidden):
        return "-inf"
    return text(entry) if length(entry) <= LONGEST_FORM else None
