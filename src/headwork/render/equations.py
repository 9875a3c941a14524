"""An equation as lines of a display: its formula, then its matrices with their numbers in."""

from collections.abc import Sequence

from headwork.maths import BLANK, Gap, Grid, Maths, Prose, Words, related
from headwork.ops import Add, Constant, MatMul, Softmax
from headwork.readings.shapes import shape_maths
from headwork.render.blocks import Aligned, Display
from headwork.render.cells import grid
from headwork.render.formula import formula
from headwork.render.layout import Layout
from headwork.working import Arithmetic, Equation, Unfilled

SHAPE = Words("(2×2)")  # about as wide as what is said of a shape


def equation_display(equation: Equation, layout: Layout, key: str) -> Display:
    """name = formula (shape), and under it the numbers."""
    remark, name = shape_remark(equation), equation.name.maths
    if equation.given and equation.value is not None:
        matrix, exact = grid(equation.value, layout.style, key, equation.holds)
        first, *more = _fitting(matrix, layout, "=" if exact else "≈")
        reason = "for the sum of all entries " if isinstance(equation.step.op, Constant) else "as given "
        return Display((Aligned(name, (first,), (reason, *remark)), *_under(more)), equation, key)
    made = related("=", formula(equation))
    top = Aligned(name, (made,), remark)
    if equation.value is None:
        return Display((top,), equation, key)
    value, exact = grid(equation.value, layout.style, key, equation.holds)
    operands = _operands(equation, layout, key)
    pieces = _fitting(value, layout, "=" if exact else "≈")
    beside = len(pieces) == 1 and layout.fits(*operands, *pieces)
    if beside and layout.abreast and (numbers := _on_one_line(equation, layout, (name, made, SHAPE), operands, pieces)):
        return Display((Aligned(name, (made, *numbers), remark),), equation, key)
    lines = [Aligned(None, (*operands, *pieces))] if beside else [*_under(operands), *_under(pieces)]
    return Display((top, *lines), equation, key)


def _on_one_line(
    equation: Equation, layout: Layout, names: Sequence[Maths], operands: Sequence[Maths], value: Sequence[Maths]
) -> Sequence[Maths]:
    """The numbers that stand beside the names where two displays may share a line; nothing if they stand below.

    Where all of it is too wide or too high for that, matrices that are gone through entry by entry are not copied.
    """
    copied = (*operands, *value)
    if layout.fits(*names, *copied, share=2):
        return copied
    flat = all(len(o.value or ()) <= len(equation.value or ()) for o in equation.operands)
    below = isinstance(equation.step.op, MatMul | Softmax) or (flat and layout.fits(*copied, share=2))
    return value if not below and layout.fits(*names, *value, share=2) else ()


def shape_remark(equation: Equation) -> Prose:
    return ("(", shape_maths(equation.shape), ")")


def unfilled_display(unfilled: Unfilled) -> Display:
    """The name and formula of a step, with an empty place for every number."""
    line = unfilled.line
    if isinstance(line, Arithmetic):
        return Display((Aligned(line.name.maths, (related("=", Gap("0000000000")),)),))
    empty = Grid(((BLANK,) * line.shape[-1],) * line.shape[-2])
    top = Aligned(line.name.maths, (related("=", formula(line)),), shape_remark(line))
    return Display((top, Aligned(None, (related("=", empty),))))


def _operands(equation: Equation, layout: Layout, key: str) -> list[Maths]:
    """The right-hand side with its matrices in; nothing where one is not known or it is too wide for the page.

    Nor where it is a sum of one term, which is the value already.
    """
    if isinstance(equation.step.op, Add) and len(equation.operands) == 1:
        return []
    shown = [
        grid(o.value, layout.style, operand_key(key, i), equation.operand_holds(i))
        for i, o in enumerate(equation.operands)
        if o.value
    ]
    if len(shown) < len(equation.operands):
        return []
    relation = "=" if all(exact for _, exact in shown) else "≈"
    made = related(relation, formula(equation, tuple(matrix for matrix, _ in shown)))
    return [made] if layout.fits(made) else []


def operand_key(key: str, number: int) -> str:
    return f"{key}o{number}"


def _under(pieces: Sequence[Maths]) -> list[Aligned]:
    return [Aligned(None, (piece,)) for piece in pieces]


def _fitting(matrix: Grid, layout: Layout, relation: str) -> list[Maths]:
    """The matrix in one piece, or in as few blocks of columns as fit; an ellipsis says that its rows go on."""
    count = len(matrix.rows[0])
    for chunks in range(1, count + 1):
        size = -(-count // chunks)
        blocks = [
            Grid(tuple(r[at : at + size] for r in matrix.rows), matrix.key, matrix.holds)
            for at in range(0, count, size)
        ]
        pieces = [related(relation if i == 0 else "…", block) for i, block in enumerate(blocks)]
        if all(map(layout.fits, pieces)):
            break
    return pieces
