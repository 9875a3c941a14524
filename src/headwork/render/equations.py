"""An equation as lines of a display: its formula, then its matrices with their numbers in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwork.numbers.text import text
from headwork.ops import Add, Divide, Join, MatMul, Root, Softmax, Split, Transpose
from headwork.readings.exact import Matrix
from headwork.readings.shapes import shape_text
from headwork.render.arithmetic import arithmetic_text
from headwork.render.blocks import Aligned, Display
from headwork.render.cells import Style, cells
from headwork.render.formula_text import formula_text
from headwork.render.maths import Above, Gap, Grid, Letter, Maths, Number, Ratio, RootOf, Row, Sign, Words, row, width
from headwork.render.reading import read_maths
from headwork.working import Arithmetic, Equation, Unfilled


def equation_display(equation: Equation, style: Style, key: str, room: int | None) -> Display:
    """name = formula (shape), and under it the numbers. `room` is how wide a line may be; None is without end."""
    remark = shape_remark(equation)
    name, formula = read_maths(str(equation.name)), formula_text(equation)
    if equation.value is None:
        return Display((Aligned(name, (_after("=", read_maths(formula)),), remark),), equation, key)
    value, exact = grid(equation.value, style, key)
    if not formula:
        first, *more = _fitting(value, room, "=")
        return Display((Aligned(name, (first,), ("as given ", *remark)), *_under(more)), equation, key)
    top = Aligned(name, (_after("=", read_maths(formula)),), remark)
    operands = _operands(equation, style, key, room)
    pieces = _fitting(value, room, "=" if exact else "≈")
    beside = len(pieces) == 1 and (room is None or sum(map(width, (*operands, *pieces))) <= room)
    lines = [Aligned(None, (*operands, *pieces))] if beside else [*_under(operands), *_under(pieces)]
    return Display((top, *lines), equation, key)


def shape_remark(equation: Equation) -> tuple[str | Maths, ...]:
    return ("(", read_maths(shape_text(equation.shape)), ")")


def arithmetic_display(line: Arithmetic, style: Style) -> Display:
    """One entry: terms with numbers in, the sum, the result."""
    name = str(line.name)
    first, *more = (words.strip() for words in arithmetic_text(line, style))
    lines = [_arithmetic_line(read_maths(name), first.removeprefix(name).strip())]
    return Display((*lines, *(_arithmetic_line(None, words) for words in more)))


def _arithmetic_line(left: Maths | None, words: str) -> Aligned:
    maths, _, remark = words.partition("   ")
    return Aligned(left, (read_maths(maths),), (remark,) if remark else ())


def unfilled_display(unfilled: Unfilled) -> Display:
    """The name and formula of a step, with an empty place for every number."""
    line = unfilled.line
    name = read_maths(str(line.name))
    if isinstance(line, Arithmetic):
        return Display((Aligned(name, (_after("=", Gap("0000000000")),)),))
    empty = Grid(tuple((Words("____"),) * line.shape[-1] for _ in range(line.shape[-2])))
    top = Aligned(name, (_after("=", read_maths(formula_text(line))),), shape_remark(line))
    return Display((top, Aligned(None, (_after("=", empty),))))


def grid(matrix: Matrix, style: Style, key: str = "") -> tuple[Grid, bool]:
    """A matrix with its decimal points above one another, and whether every number in it is exact."""
    rows, exact = cells(matrix, style)
    columns = [_column(column) for column in zip(*rows, strict=True)]
    return Grid(tuple(zip(*columns, strict=True)), key), exact


def _column(texts: Sequence[str]) -> list[Maths]:
    decimals = [_decimals(words) for words in texts]
    most = max((d for d in decimals if d is not None), default=0)
    return [_padded(words, d, most) for words, d in zip(texts, decimals, strict=True)]


def _decimals(words: str) -> int | None:
    """How many digits stand after the point; None for what is no plain decimal."""
    whole, _, part = words.lstrip("−").partition(".")
    return len(part) if whole.isdecimal() and (part.isdecimal() or not part) else None


def _padded(words: str, decimals: int | None, most: int) -> Maths:
    number = read_maths(words)
    if decimals is None or decimals == most:
        return number
    return Row((number, Gap(("" if decimals else ".") + "0" * (most - decimals))))


def _operands(equation: Equation, style: Style, key: str, room: int | None) -> list[Maths]:
    """The right-hand side with its matrices in; nothing where one is not known or it is too wide for the page."""
    shown = [grid(o.value, style, operand_key(key, i)) for i, o in enumerate(equation.operands) if o.value]
    if not shown or len(shown) < len(equation.operands):
        return []
    relation = "=" if all(exact for _, exact in shown) else "≈"
    made = _after(relation, OPERANDS[type(equation.op)](equation, [matrix for matrix, _ in shown]))
    return [made] if room is None or width(made) <= room else []


def operand_key(key: str, number: int) -> str:
    return f"{key}o{number}"


def _after(relation: str, maths: Maths) -> Maths:
    return Row((Sign(relation), maths))


def _under(pieces: Sequence[Maths]) -> list[Aligned]:
    return [Aligned(None, (piece,)) for piece in pieces]


def _fitting(matrix: Grid, room: int | None, relation: str) -> list[Maths]:
    """The matrix in one piece, or in as few blocks of columns as fit; an ellipsis says that its rows go on."""
    count = len(matrix.rows[0])
    for chunks in range(1, count + 1):
        size = -(-count // chunks)
        blocks = [Grid(tuple(r[at : at + size] for r in matrix.rows), matrix.key) for at in range(0, count, size)]
        if room is None or all(width(block) + 3 <= room for block in blocks):
            break
    return [_after(relation if i == 0 else "…", block) for i, block in enumerate(blocks)]


def _between(sign: str) -> Callable[[Equation, list[Grid]], Maths]:
    def joined(equation: Equation, blocks: list[Grid]) -> Maths:
        spaced: list[Maths] = [blocks[0]]
        for block in blocks[1:]:
            spaced += [Sign(sign), block]
        return row(spaced)

    return joined


def _divided(equation: Equation, blocks: list[Grid]) -> Maths:
    assert isinstance(equation.op, Divide)
    by = equation.op.by
    under = RootOf(Number(str(by.of))) if isinstance(by, Root) else read_maths(text(by))
    return Row((Ratio(Number("1"), under), Sign("·"), blocks[0]))


def _split(equation: Equation, blocks: list[Grid]) -> Maths:
    wide = str(equation.operands[0].name)
    words = formula_text(equation).removesuffix(wide)
    return Row((Words(words), blocks[0]))


OPERANDS: Mapping[Any, Callable[[Equation, list[Grid]], Maths]] = {
    MatMul: _between("·"),
    Add: _between("+"),
    Join: _between("|"),
    Divide: _divided,
    Softmax: lambda equation, blocks: Row((Letter("softmax"), blocks[0])),
    Split: _split,
    Transpose: lambda equation, blocks: Above(blocks[0], Words("T")),
}
