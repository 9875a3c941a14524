"""Weights as a heat map: a row for every query, a column for every key."""

from collections.abc import Iterator

from headwork.maths import Maths, Number, Words
from headwork.numbers.digits import decimal, to_float
from headwork.numbers.quick import quick_value
from headwork.readings.exact import Entry, Hidden
from headwork.render.colours import family
from headwork.render.drawing import Drawing, Label, Line, Rect, Shape, label_width
from headwork.working import Equation

ROOMY, LARGEST, SMALLEST = 36.0, 26.0, 3.0  # sides of a square: with a number in it, without, and of many
NUMBERED, WIDEST = 12, 440.0
TITLE, LEGEND = 22.0, 30.0
NAMES = 9.5  # size of what stands beside rows and columns
LONGEST = 16  # characters of a token's name


def heat_map(equation: Equation, first_index: int, tokens: tuple[str, ...] = (), keys: tuple[str, ...] = ()) -> Drawing:
    """The squares of a matrix of weights: the fuller, the larger; crossed out what the mask hides.

    `tokens` and `keys` are what the rows and columns are called; they are counted from `first_index` without.
    """
    return _Map(equation, first_index, tokens, keys).drawing()


class _Map:
    def __init__(self, equation: Equation, first_index: int, tokens: tuple[str, ...], keys: tuple[str, ...]) -> None:
        assert equation.value is not None
        self.equation, self.first_index = equation, first_index
        self.matrix = equation.value
        rows, columns = len(self.matrix), len(self.matrix[0])
        self.numbered = columns <= NUMBERED
        self.side = ROOMY if self.numbered else max(SMALLEST, min(LARGEST, WIDEST / columns))
        counted = [Number(str(i + first_index)) for i in range(max(rows, columns))]
        shown = self.side >= 9
        self.row_names: list[Maths] = [*map(_name, tokens)] if len(tokens) == rows else [*counted[:rows]]
        self.column_names: list[Maths] = [*map(_name, keys)] if len(keys) == columns else [*counted[:columns]]
        if not shown:
            self.row_names, self.column_names = [], []
        self.turned = any(label_width(name, NAMES) > self.side for name in self.column_names)
        self.left = 8 + max((label_width(name, NAMES) + 6 for name in self.row_names), default=0.0)
        over = [label_width(name, NAMES) for name in self.column_names]
        self.top = TITLE + (max(over, default=0.0) + 8 if self.turned else 16 if shown else 4)

    def drawing(self) -> Drawing:
        name, colour = self.equation.name, family(self.equation.role)
        rows, columns = len(self.matrix), len(self.matrix[0])
        shapes: list[Shape] = [Label(name.maths, self.left, 14, "start", 12, colour), *self._names()]
        for i in range(rows):
            for j in range(columns):
                shapes += self._cell(i, j, colour)
        bottom = self.top + rows * self.side
        legend = [*self._legend(bottom + 12, colour)]
        width = max(self.left + columns * self.side, *(_right(shape) for shape in (*shapes, *legend))) + 8
        words = f"Heat map of {name}, {rows} by {columns}: {self._fullest()}"
        return Drawing(f"{name} as a heat map", words, width, bottom + LEGEND, shapes + legend)

    def _names(self) -> Iterator[Shape]:
        for i, name in enumerate(self.row_names):
            yield Label(name, self.left - 5, self.top + (i + 0.5) * self.side + 3, "end", NAMES)
        for j, name in enumerate(self.column_names):
            middle = self.left + (j + 0.5) * self.side
            at = middle + 3 if self.turned else middle
            yield Label(name, at, self.top - 5, "start" if self.turned else "middle", NAMES, turned=self.turned)

    def _cell(self, i: int, j: int, colour: str) -> Iterator[Shape]:
        x, y, side = self.left + j * self.side, self.top + i * self.side, self.side - 1
        if self._is_hidden(i, j):
            yield from _crossed(x, y, side)
            return
        entry = self.matrix[i][j]
        yield Rect(x, y, side, side, "cell", colour, share=self._fill(_share(entry)))
        if self.numbered and not isinstance(entry, Hidden):
            yield Label(Number(decimal(entry, 2)), x + side / 2, y + side / 2 + 3.5, size=10)

    def _fill(self, share: float) -> float:
        """How much colour: not so much that a number in it could not be read."""
        return 0.03 + (0.39 if self.numbered else 0.9) * share

    def _is_hidden(self, i: int, j: int) -> bool:
        """Where the scores that the softmax saw were −∞."""
        scores = self.equation.operands[0].value if self.equation.operands else None
        return scores is not None and len(scores) == len(self.matrix) and isinstance(scores[i][j], Hidden)

    def _legend(self, y: float, colour: str) -> Iterator[Shape]:
        """What empty, full and crossed out mean."""
        x = self.left
        yield Label(Number("0"), x, y + 9, "start", NAMES)
        for i in range(5):
            yield Rect(x + 10 + 11 * i, y, 10, 10, "cell", colour, share=self._fill(i / 4))
        yield Label(Number("1"), x + 69, y + 9, "start", NAMES)
        if any(self._is_hidden(i, j) for i, row in enumerate(self.matrix) for j in range(len(row))):
            yield from _crossed(x + 88, y, 10)
            yield Label(Words("hidden"), x + 102, y + 9, "start", NAMES)

    def _fullest(self) -> str:
        tops = []
        for i, row in enumerate(self.matrix, self.first_index):
            shares = [_share(entry) for entry in row]
            tops.append(f"row {i} is fullest in column {shares.index(max(shares)) + self.first_index}")
        return "; ".join(tops[:8]) + "."


def _name(text: str) -> Maths:
    return Words(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def _crossed(x: float, y: float, side: float) -> Iterator[Shape]:
    yield Rect(x, y, side, side, "hidden")
    yield Line(((x, y + side), (x + side, y)), dashed=True)


def _share(entry: Entry) -> float:
    """A shade needs two digits, so float64 as it comes is enough."""
    if isinstance(entry, Hidden):
        return 0.0
    try:
        return min(1.0, max(0.0, quick_value(entry)[0]))
    except OverflowError:
        return min(1.0, max(0.0, to_float(entry)))


def _right(shape: Shape) -> float:
    if isinstance(shape, Label) and not shape.turned:
        return shape.left + label_width(shape.maths, shape.size)
    return 0.0
