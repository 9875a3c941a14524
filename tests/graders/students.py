"""Five students: everything right, a slip carried on, nothing, something unreadable, a mistake by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from math import inf
from typing import Any

from headwork.graph import Step
from headwork.marking.answers import Answers
from headwork.marking.graders.fields import fields
from headwork.marking.mark import Marker, ProblemMarker
from headwork.marking.marks import Marks
from headwork.mistakes.catalogue import CATALOGUE
from headwork.mistakes.evidence import view
from headwork.mistakes.operations import FLOATS
from headwork.mistakes.predict import Variant
from headwork.readings.floats import Floats
from headwork.sheets.sheet import NUMBERS, Sheet

PLACES = 4  # two more than are asked for
Parts = dict[str, dict[str, Any]]
LEARNING = """
title = "There and back"
formula = "single_head"
places = 2
[given]
X = [[1, 2], [0, 1]]
W_Q = [[1, 0], [1, 2]]
W_K = [[2, 1], [1, 0]]
W_V = [[0, 1], [1, 1]]
[[part]]
label = "a"
points = "3/2"
find = ["weights", "head_output"]
[[part]]
label = "b"
points = 4
kind = "gradient"
loss = "half-squares"
target = [[1, 0], [0, 1]]
find = ["W_V", "W_Q"]
rate = "0.5"
"""


def parts_of(sheet: Sheet, *, slip: bool = False, mistake: str | None = None, places: int = PLACES) -> Parts:
    """Every answer, each worked out from the ones before it as they were written down."""
    marker = Marker(sheet)
    parts: Parts = {}
    for number, problem in enumerate(marker.problems, 1):
        prefix = f"{number}." if len(marker.problems) > 1 else ""
        for label, name, written in _worked(problem, slip, mistake, places):
            parts.setdefault(prefix + label, {})[name] = [[_text(x, places) for x in row] for row in written]
    return parts


def _worked(problem: ProblemMarker, slip: bool, mistake: str | None, places: int) -> Iterator[tuple[str, str, Floats]]:
    right = problem.ready.ends
    mistaken = Variant(right if mistake is None else CATALOGUE[mistake].made_in(right)[0], FLOATS)
    own: dict[Step, Floats] = {}
    for part in problem.problem.parts:
        if part.kind not in NUMBERS:
            continue
        truth = problem.truths[part.label]
        for question in truth.asked:
            step = question.found.step
            value = mistaken.predict(step, {**truth.handed, **{s: a for s, a in own.items() if s is not step}})
            assert value is not None
            written = [[round(x, places) for x in row] for row in value]
            if slip:
                written[0][0] += 1
                slip = False
            own[step] = written
            yield part.label, question.name, view(question.found, written)


def _text(number: float, places: int) -> str:
    return "-inf" if number == -inf else f"{number + 0.0:.{places}f}"


def five(sheet: Sheet) -> dict[str, Parts]:
    """Those whom every package has to mark as `headwork mark` does."""
    right = parts_of(sheet)
    label, names = next(iter(right.items()))
    name = next(iter(names))
    return {
        "right": right,
        "slipped": parts_of(sheet, slip=True),
        "blank": {},
        "malformed": {**right, label: {**names, name: [["1", "oops"], ["2"]]}},
        "mistaken": parts_of(sheet, mistake="forgot-scale"),
    }


def marks_of(sheet: Sheet, parts: Parts) -> Marks:
    """What `headwork mark` gives."""
    return Marker(sheet).mark(Answers("student", parts))


def toml(parts: Parts) -> str:
    lines = []
    for label, answers in parts.items():
        lines.append(f'["{label}"]')
        for name, rows in answers.items():
            lines.append(f'"{name}" = [{", ".join("[" + ", ".join(map(repr, row)) + "]" for row in rows)}]')
    return "\n".join(lines) + "\n"


def notebook_cells(parts: Parts) -> list[str]:
    return [
        "\n".join([f"# part {label}", *(f"{name} = {_literal(rows)}" for name, rows in answers.items())])
        for label, answers in parts.items()
    ]


def filled_in(blank: str, parts: Parts) -> str:
    """A student's notebook with answers in its cells; what is not answered stays as it was."""
    notebook = json.loads(blank)
    cells = dict(zip(parts, notebook_cells(parts), strict=True))
    for cell in notebook["cells"]:
        label = "".join(cell["source"]).partition("\n")[0].removeprefix("# part ")
        if cell["cell_type"] == "code" and label in cells:
            cell["source"] = cells.pop(label)
    for text in cells.values():
        notebook["cells"].append({**cell, "cell_type": "code", "source": text, "execution_count": None, "outputs": []})
    return json.dumps(notebook)


def _literal(rows: list[list[str]]) -> str:
    return "[" + ", ".join("[" + ", ".join(row) + "]" for row in rows) + "]"


def responses(sheet: Sheet, parts: Parts) -> list[str]:
    """What a student types into the fields, in their order."""
    typed = []
    for field in fields(Marker(sheet)):
        given = parts.get(field.part, {}).get(field.name)
        for i, row in enumerate(field.entries):
            for j, _ in enumerate(row):
                typed.append(given[i][j] if given and i < len(given) and j < len(given[i]) else "")
    return typed


def boxes_of(sheet: Sheet, parts: Parts) -> Parts:
    """The same answers box by box, as they come back from Moodle."""
    typed = iter(responses(sheet, parts))
    spread: Parts = {}
    for field in fields(Marker(sheet)):
        for name in (name for row in field.entries for name in row):
            spread.setdefault(field.part, {})[name] = next(typed)
    return spread


def last_alone(parts: Parts) -> Parts:
    """A slip in the last answer: nothing comes after it, so nothing has to follow."""
    changed = {label: dict(answers) for label, answers in parts.items()}
    label = list(changed)[-1]
    name = list(changed[label])[-1]
    rows = [list(row) for row in changed[label][name]]
    rows[0][0] = str(Fraction(rows[0][0]) + 1) if "." not in rows[0][0] else f"{float(rows[0][0]) + 1:.4f}"
    changed[label][name] = rows
    return changed
