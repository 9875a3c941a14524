"""An entry pointed at: its arithmetic, the entries it was made of, and those behind them, back to the givens."""

from collections.abc import Mapping
from typing import Any

from headwork.errors import HeadworkError
from headwork.graph import Step
from headwork.readings.entries import came_from
from headwork.readings.exact import Matrix
from headwork.render.arithmetic import entry_how
from headwork.render.html import how_html
from headwork.web.page import Page
from headwork.working import Equation

MOST_BEHIND = 4000  # entries that are lit up behind one

Spot = tuple[Step, int, int]


def entry(page: Page, block: int, row: int, column: int) -> dict[str, Any]:
    """The entry in this row and column, counted from 0, of the step that a block shows."""
    line = page.pieces[block].line if 0 <= block < len(page.pieces) else None
    if not isinstance(line, Equation) or line.value is None:
        raise HeadworkError("there is no entry to point at here")
    across = row - (line.row or 0)
    i, j = (column, across) if line.upright else (across, column)
    if not (0 <= i < len(line.value) and 0 <= j < len(line.value[0])):
        raise HeadworkError(f"{line.name} has no entry there")
    number, part = page.part_of(block)
    ready, problem = page.ready[number], page.sheet.problems[number]
    if not line.worked:
        return {"html": "", "from": [], "behind": []}
    how = entry_how(line, (i, j), "", problem.notation, page.style(number), problem.only_causal)
    meaning = ready.truth(part)
    made_of, behind = _behind((line.step, row, column), meaning, ready.handed_in(part))
    return {"html": how_html(how), "from": list(map(_told, made_of)), "behind": list(map(_told, behind))}


def _behind(spot: Spot, meaning: Mapping[Step, Matrix], handed: Mapping[Step, Matrix]) -> tuple[list[Spot], list[Spot]]:
    """What an entry was made of, and everything further back."""
    made_of = _sources(spot, meaning)
    found: dict[Spot, None] = dict.fromkeys(made_of)
    waiting = list(found)
    while waiting and len(found) < MOST_BEHIND:
        last = waiting.pop(0)
        if last[0] in handed:
            continue
        for source in _sources(last, meaning):
            if source not in found:
                found[source] = None
                waiting.append(source)
    direct = set(made_of)
    return made_of, [s for s in found if s not in direct]


def _sources(spot: Spot, meaning: Mapping[Step, Matrix]) -> list[Spot]:
    step, row, column = spot
    if not all(s in meaning for s in step.inputs):
        return []
    _, places = came_from(step, row, column, [meaning[s] for s in step.inputs])
    return [(step.inputs[number], i, j) for number, i, j in places]


def _told(spot: Spot) -> tuple[str, Any, int, int]:
    step, row, column = spot
    return step.role, "" if step.head is None else step.head, row, column
