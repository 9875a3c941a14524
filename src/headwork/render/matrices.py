"""Formulas drawn in text over several lines: matrices in brackets, decimal points above one another, tables."""

from collections.abc import Iterator, Sequence

from headwork.inline import inline, sentence
from headwork.maths import TRANSPOSED, Above, Grid, Maths, Prose, Row, Words
from headwork.maths import width as maths_width

Lines = list[str]  # of equal width, where they make a figure


def drawn(maths: Maths) -> Lines:
    """A formula with its matrices drawn, all else level with their middle lines."""
    return beside(*(_piece(item) for item in _flat(maths))) if holds_matrix(maths) else [inline(maths)]


def holds_matrix(maths: Maths) -> bool:
    return any(isinstance(item, Grid) or _is_turned(item) for item in _flat(maths))


def _is_turned(maths: Maths) -> bool:
    return isinstance(maths, Above) and isinstance(maths.base, Grid) and maths.script == TRANSPOSED


def _flat(maths: Maths) -> Iterator[Maths]:
    if isinstance(maths, Row):
        for item in maths.items:
            yield from _flat(item) if isinstance(item, Row) and holds_matrix(item) else [item]
    else:
        yield maths


def _piece(maths: Maths) -> Lines | str:
    if isinstance(maths, Grid):
        return _matrix(maths)
    if isinstance(maths, Above) and isinstance(maths.base, Grid):
        first, *more = _matrix(maths.base)
        return [f"{first}ᵀ", *more]
    return maths.text.strip() if isinstance(maths, Words) else inline(maths)


def _matrix(grid: Grid) -> Lines:
    return bracketed([[inline(cell).rstrip() for cell in row] for row in grid.rows])


def bracketed(rows: Sequence[Sequence[str]]) -> Lines:
    """A matrix in brackets.

    >>> print("\\n".join(bracketed([["1", "2.5"], ["10", "3"]])))
    ⎡ 1  2.5⎤
    ⎣10  3  ⎦
    """
    columns = [aligned(column) for column in zip(*rows, strict=True)]
    lines = ["  ".join(row) for row in zip(*columns, strict=True)]
    if len(lines) == 1:
        return [f"[{lines[0]}]"]
    left = ["⎡", *"⎢" * (len(lines) - 2), "⎣"]
    right = ["⎤", *"⎥" * (len(lines) - 2), "⎦"]
    return [f"{a}{line}{b}" for a, line, b in zip(left, lines, right, strict=True)]


def aligned(column: Sequence[str]) -> list[str]:
    """Texts padded to one width, decimal points (or last digits of integers) above one another."""
    wholes, parts = zip(*(_at_point(text) for text in column), strict=True)
    before, after = max(map(len, wholes)), max(map(len, parts))
    return [f"{whole:>{before}}{part:<{after}}" for whole, part in zip(wholes, parts, strict=True)]


def _at_point(text: str) -> tuple[str, str]:
    plain = text.lstrip("−").replace(".", "", 1)
    if not plain.isdecimal() or "." not in text:
        return text, ""
    point = text.index(".")
    return text[:point], text[point:]


def beside(*figures: Lines | str, gap: str = " ") -> Lines:
    """Figures side by side, their middle lines level; of an even number the upper one counts as the middle."""
    lines = [[figure] if isinstance(figure, str) else figure for figure in figures]
    above = max(_middle(figure) for figure in lines)
    below = max(len(figure) - _middle(figure) for figure in lines)
    padded = [_padded(figure, above - _middle(figure), above + below) for figure in lines]
    return [gap.join(row).rstrip() for row in zip(*padded, strict=True)]


def _middle(figure: Lines) -> int:
    return (len(figure) - 1) // 2


def _padded(figure: Lines, above: int, height: int) -> Lines:
    room = width(figure)
    lines = [line.ljust(room) for line in figure]
    return [" " * room] * above + lines + [" " * room] * (height - above - len(figure))


def width(figure: Lines) -> int:
    return max(map(len, figure))


def table(rows: Sequence[Sequence[str]], left: int = 1) -> Lines:
    """A plain table, its header over a rule; the first `left` columns are flush left, the others flush right."""
    padded = [
        [x.ljust(max(map(len, column))) if i < left else x.rjust(max(map(len, column))) for x in column]
        for i, column in enumerate(zip(*rows, strict=True))
    ]
    lines = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
    rule = "─" * max(map(len, lines))
    return [lines[0], rule, *lines[1:]]


def columns_that_fit(rows: Sequence[Sequence[Prose]], room: int, cell: int | None = None) -> list[list[int]]:
    """Column numbers for one table, or for several that each repeat the names (columns 0 and 1).

    Where a `cell` of so many characters is broken into lines, it is not in text: scripts are small there.
    """
    wide = text_width if cell is None else printed_width
    widths = [max(map(wide, column)) + 2 for column in zip(*rows, strict=True)]
    if cell is not None:
        widths[:2] = [min(width, cell + 2) for width in widths[:2]]
    tables = [[0, 1]]
    for i in range(2, len(widths)):
        if len(tables[-1]) > 2 and sum(widths[j] for j in tables[-1]) + widths[i] > room:
            tables.append([0, 1])
        tables[-1].append(i)
    return tables


def text_width(cell: Prose) -> int:
    return len(sentence(cell))


def printed_width(cell: Prose) -> int:
    return sum(len(piece) if isinstance(piece, str) else maths_width(piece) for piece in cell)
