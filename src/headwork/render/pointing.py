"""What a page that can be pointed at knows of every entry: where it came from, and its arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwork.graph import Step
from headwork.ops import Add, Given, Softmax
from headwork.readings.exact import Hidden
from headwork.render.blocks import Aligned
from headwork.render.cells import Style
from headwork.render.equations import arithmetic_display, operand_key
from headwork.render.mathml import place
from headwork.sheets.sheet import Problem
from headwork.working import Arithmetic, Equation

MOST_PLACES = 20_000  # numbers that go into one matrix; beyond them the page would weigh megabytes


@dataclass(frozen=True)
class How:
    """One entry: its place, the places it came from, the lines of its arithmetic, and why it is hidden if it is."""

    place: str
    sources: tuple[str, ...]
    lines: tuple[Aligned, ...]
    reason: str = ""


def pointed_at(equation: Equation, key: str, problem: Problem, style: Style) -> Iterator[How]:
    """Every entry of a worked equation; nothing for one that is given, or too large to be followed by hand."""
    if equation.value is None or equation.op is None or any(o.value is None for o in equation.operands):
        return
    first = equation.origin(0, 0)
    if len(equation.value) * len(equation.value[0]) * len(first.places) > MOST_PLACES:
        return
    for i, row in enumerate(equation.value):
        for j in range(len(row)):
            yield _how(equation, i, j, key, problem, style)


def _how(equation: Equation, i: int, j: int, key: str, problem: Problem, style: Style) -> How:
    origin = equation.origin(i, j)
    row, column = _in_step(equation, i, j)
    step = Step(Given(equation.shape), (), equation.role, equation.head)
    name = problem.notation.entry(step, row, column)
    operands = tuple(operand.name for operand in equation.operands)
    line = Arithmetic(name, equation.op, operands, origin.terms, origin.result)
    sources = tuple(place(operand_key(key, int(s.role)), r, c) for s, r, c in origin.places)
    return How(place(key, i, j), sources, arithmetic_display(line, style).lines, _reason(line, row, column, problem))


def _in_step(equation: Equation, i: int, j: int) -> tuple[int, int]:
    """The entry's row and column in the whole step."""
    if equation.row is None:
        return i, j
    return equation.row, i if equation.upright else j


def _reason(line: Arithmetic, row: int, column: int, problem: Problem) -> str:
    """Why an entry is hidden."""
    own = line.result if isinstance(line.op, Add) else line.terms[0][0] if isinstance(line.op, Softmax) else None
    if not isinstance(own, Hidden):
        return ""
    first = problem.notation.first_index
    hidden = f"Hidden: the mask keeps token {row + first} from reading key {column + first}"
    return f"{hidden}, which comes later." if problem.mask == "causal" else f"{hidden}."
