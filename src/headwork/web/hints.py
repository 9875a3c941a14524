"""Hints in steps: the formula, then the row and the column, then the arithmetic."""

from collections.abc import Callable, Mapping
from typing import Any

from headwork import ops
from headwork.errors import HeadworkError
from headwork.graph import Step
from headwork.maths import Row, Sign
from headwork.readings.entries import origin
from headwork.readings.exact import Matrix
from headwork.render.arithmetic import arithmetic_display
from headwork.render.blocks import How
from headwork.render.cells import Style, grid
from headwork.render.equations import shape_remark
from headwork.render.formula import formula
from headwork.render.html import how_html, mathml
from headwork.sheets.ready import Ready
from headwork.solver import Solver
from headwork.web.page import Page
from headwork.working import Equation, arithmetic


def hint(page: Page, number: int, label: str, name: str, place: tuple[int, int], level: int) -> str:
    """A hint for the entry in this row and column of the step, counted from 0: level 1, 2 or 3."""
    ready = page.ready[number]
    part = next((p for p in ready.problem.parts if p.label == label), None)
    if part is None:
        raise HeadworkError(f"there is no part '{label[:40]}'")
    (found, *_) = ready.find(name)
    meaning = ready.truth(part)
    rows, columns = len(meaning[found.step]), len(meaning[found.step][0])
    if not (0 <= place[0] < rows and 0 <= place[1] < columns):
        raise HeadworkError(f"{name} has no entry there")
    equation = Solver(ready, None, only_asked=False).equation(found.step, meaning, ready.handed_in(part))
    if equation.given:
        return "<p>This one is given: copy it.</p>"
    return LEVELS[min(max(level, 1), 3)](ready, equation, place, meaning)


def _formula(ready: Ready, equation: Equation, place: tuple[int, int], meaning: Mapping[Step, Matrix]) -> str:
    shown = Row((equation.name.maths, Sign("="), formula(equation)))
    (_, shape, _) = shape_remark(equation)
    assert not isinstance(shape, str)
    return f'<p>{mathml(shown)} <span class="remark">({mathml(shape)})</span></p>'


def _row_and_column(ready: Ready, equation: Equation, place: tuple[int, int], meaning: Mapping[Step, Matrix]) -> str:
    row, column = place
    first, step = ready.problem.notation.first_index, equation.step
    style = Style(ready.problem.places)
    names = [ready.problem.notation.of(source) for source in step.inputs]
    if isinstance(step.op, ops.MatMul):
        left, right = (meaning[source] for source in step.inputs)
        across, down = grid((left[row],), style)[0], grid(tuple((r[column],) for r in right), style)[0]
        words = f"row {row + first} of {mathml(names[0].maths)} and column {column + first} of {mathml(names[1].maths)}"
        return f"<p>{words}: {mathml(Row((across, Sign('·'), down)))}, pair by pair, added up.</p>"
    sources = {step.inputs[number]: None for number, _, _ in origin(step, row, column, meaning).places}
    rows = [(ready.problem.notation.of(s).maths, _line(s, row, meaning, style)) for s in sources]
    shown = (f"<p>row {row + first} of {mathml(name)}: {mathml(line)}</p>" for name, line in rows)
    return "".join(shown) + f"<p>{SAY[type(step.op)]}</p>"


def _line(source: Step, row: int, meaning: Mapping[Step, Matrix], style: Style) -> Any:
    matrix = meaning[source]
    return grid((matrix[row % len(matrix)],), style)[0]


def _arithmetic(ready: Ready, equation: Equation, place: tuple[int, int], meaning: Mapping[Step, Matrix]) -> str:
    line = arithmetic(origin(equation.step, *place, meaning), ready.problem.notation)
    return how_html(How(("", 0, 0), (), arithmetic_display(line, Style(ready.problem.places)).lines))


SAY: Mapping[type[ops.Op], str] = {
    ops.Given: "This one is given.",
    ops.MatMul: "A row and a column, pair by pair, added up.",
    ops.Transpose: "Rows and columns change places.",
    ops.Divide: "Divide the entry in this place.",
    ops.Add: "Add the entries in this place.",
    ops.Softmax: "e to each of the row, and each over the sum of them all.",
    ops.Split: "Every head takes its own columns.",
    ops.Join: "The heads stand side by side: find the one that this column belongs to.",
    ops.Constant: "Every entry is the same number.",
    ops.Multiply: "Multiply the entries in this place.",
    ops.Subtract: "Take off the entry in this place, or the row's number.",
    ops.DivideBy: "Divide the entry by its row's number.",
    ops.Exp: "e to the entry in this place.",
    ops.Sums: "Add up the row, or the column where sums of columns are asked for.",
    ops.Maxima: "The largest of the row.",
    ops.Rows: "Some of the rows: find the one that this is.",
    ops.Stack: "They stand under one another: find the one that this row belongs to.",
    ops.Rotate: "Of the pair that is turned together: one by the cosine, the other by the sine.",
    ops.Softcap: "Divide by the cap, take the tanh, and multiply by the cap again.",
    ops.Means: "Add up the row, and divide by how many there are.",
    ops.SquareRoot: "The square root of the entry in this place.",
    ops.Relu: "The entry in this place, or 0 where that is negative.",
}
LEVELS: Mapping[int, Callable[..., str]] = {1: _formula, 2: _row_and_column, 3: _arithmetic}
