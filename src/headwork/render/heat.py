"""Weights as a heat map: a row for every query, a column for every key."""

from headwork.maths import Number
from headwork.numbers.digits import to_float
from headwork.readings.exact import Entry, Hidden
from headwork.render.drawing import Drawing
from headwork.working import Equation

LARGEST, SMALLEST = 26.0, 3.0  # sides of a square
WIDEST = 320.0
MARGIN = 22.0


def heat_map(equation: Equation, first_index: int) -> Drawing:
    """The squares of a matrix of weights: the fuller, the larger."""
    assert equation.value is not None
    rows, columns = len(equation.value), len(equation.value[0])
    side = max(SMALLEST, min(LARGEST, WIDEST / columns))
    words = f"Heat map of {equation.name}, {rows} by {columns}: " + _largest(equation, first_index)
    drawing = Drawing(f"{equation.name} as a heat map", words, MARGIN + columns * side + 10, MARGIN + rows * side + 6)
    drawing.width = max(drawing.width, 60.0)
    for i, row in enumerate(equation.value):
        for j, entry in enumerate(row):
            drawing.shade(MARGIN + j * side, MARGIN + i * side, side - 1, _share(entry))
    drawing.label(equation.name.maths, MARGIN, 14, anchor="start", size=12)
    if side >= 12:
        for i in range(rows):
            drawing.label(Number(str(i + first_index)), MARGIN - 9, MARGIN + (i + 0.5) * side + 3, size=9)
    return drawing


def _share(entry: Entry) -> float:
    return 0.0 if isinstance(entry, Hidden) else min(1.0, max(0.0, to_float(entry)))


def _largest(equation: Equation, first_index: int) -> str:
    assert equation.value is not None
    tops = []
    for i, row in enumerate(equation.value, first_index):
        shares = [_share(entry) for entry in row]
        tops.append(f"row {i} is fullest in column {shares.index(max(shares)) + first_index}")
    return "; ".join(tops[:8]) + "."
