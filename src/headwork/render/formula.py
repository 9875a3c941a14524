"""An equation's right-hand side: X·W_Q,1, scores/√d_k, softmax(scaled). One rule for names and for matrices."""

from collections.abc import Callable, Mapping

from headwork import maths as m
from headwork import ops
from headwork.notation import Name
from headwork.numbers.text import written
from headwork.readings.shapes import size_maths
from headwork.render.cells import Style, cell
from headwork.working import Equation


def formula(equation: Equation, operands: tuple[m.Maths, ...] = ()) -> m.Maths:
    """How the value is made, of operands that are names unless matrices are handed in."""
    named = operands or tuple(operand.name.maths for operand in equation.operands)
    if equation.operands:
        named = tuple(_number(source.op) or shown for source, shown in zip(equation.step.inputs, named, strict=False))
    return FORMULA[type(equation.step.op)](equation, *named)


def made_of(equation: Equation) -> m.Maths | None:
    """= X·W; nothing for what is given."""
    return None if equation.given else m.related("=", formula(equation))


def divisor(op: ops.Divide, *, in_numbers: bool = False) -> m.Maths:
    """√d_k, or with its number √3."""
    if isinstance(op.by, ops.Root):
        return m.RootOf(size_maths(op.by.of) if in_numbers else Name.read(op.by.name).maths)
    by = written(op.by)
    return m.bracketed(by) if m.is_sum(by) or isinstance(by, m.Ratio) else by


def _number(op: ops.Op) -> m.Maths | None:
    """A constant that is a single number is written as that number."""
    if not isinstance(op, ops.Constant) or op.shape != (1, 1):
        return None
    return m.factor(cell(op.value, Style(exact=True))[0])


def _multiply(equation: Equation, left: m.Maths, right: m.Maths) -> m.Maths:
    number = _number(equation.step.inputs[1].op)
    return m.between((left, right), "∘") if number is None else m.between((number, left), "·")


def _divide(equation: Equation, scores: m.Maths) -> m.Maths:
    assert isinstance(equation.step.op, ops.Divide)
    if equation.step.op.by == -1:
        return m.minus(scores)
    return m.Row((scores, m.Sign("/"), divisor(equation.step.op, in_numbers=isinstance(scores, m.Grid))))


def _softmax(equation: Equation, scores: m.Maths) -> m.Maths:
    assert isinstance(equation.step.op, ops.Softmax)
    along = {-1: "", -2: " down the columns", None: " over everything"}[equation.step.op.axis]
    weights = m.applied("softmax", scores)
    return m.row(weights, m.Words(along)) if along else weights


def _lines(equation: Equation, of: str = "row") -> str:
    """What the page has in place of a step's rows or columns, where a row may stand upright."""
    return of if not equation.upright else {"row": "column", "column": "row"}[of]


def part(equation: Equation) -> str:
    """Which part of a matrix: columns 3–4, rows 1–2."""
    if equation.block is None:
        return f"block {equation.name.subscripts[-1]}"
    first, last = equation.block
    lines = _lines(equation, "row" if isinstance(equation.step.op, ops.Rows) else "column")
    return f"{lines} {first}" if first == last else f"{lines}s {first}–{last}"


def _sums(equation: Equation, matrix: m.Maths) -> m.Maths:
    assert isinstance(equation.step.op, ops.Sums)
    lines = _lines(equation, "row" if equation.step.op.axis == -1 else "column")
    return m.Row((m.Words(f"{lines} sums of "), matrix))


def _maxima(equation: Equation, *parts: m.Maths) -> m.Maths:
    return m.Row((m.Words(f"{_lines(equation)} maxima of "), parts[0] if len(parts) == 1 else _joined(equation, parts)))


def _means(equation: Equation, matrix: m.Maths) -> m.Maths:
    return m.Row((m.Words(f"{_lines(equation)} means of "), matrix))


def _square_root(equation: Equation, matrix: m.Maths) -> m.Maths:
    return m.Row((m.Words("square roots of "), matrix)) if isinstance(matrix, m.Grid) else m.RootOf(matrix)


def _stack(equation: Equation, *parts: m.Maths) -> m.Maths:
    under = m.between(parts, ";")
    return under if all(isinstance(p, m.Grid) for p in parts) else m.bracketed(under, "[", "]")


def _rotate(equation: Equation, matrix: m.Maths, *angles: m.Maths) -> m.Maths:
    assert isinstance(equation.step.op, ops.Rotate)
    rotate = m.Letter("rotate")
    function = m.Above(rotate, m.number("−1")) if equation.step.op.back else rotate
    given = (item for table in angles for item in (m.Words(", "), table))
    return m.Row((function, m.bracketed(m.Row((matrix, *given)))))


def _softcap(equation: Equation, scores: m.Maths) -> m.Maths:
    assert isinstance(equation.step.op, ops.Softcap)
    cap = m.factor(cell(equation.step.op.by, Style(exact=True))[0])
    inner = m.bracketed(m.Row((scores, m.Sign("/"), cap)))
    return m.between((cap, m.Row((m.Letter("tanh"), inner))), "·")


def _split(equation: Equation, wide: m.Maths) -> m.Maths:
    return m.Row((m.Words(f"{part(equation)} of "), wide))


def _join(equation: Equation, *parts: m.Maths) -> m.Maths:
    assert isinstance(equation.step.op, ops.Join)
    typical = equation.step.op.of is not None or len(parts) < len(equation.step.inputs)  # of all heads
    return _joined(equation, (m.Sign("…"), parts[0], m.Sign("…")) if typical else parts)


def _joined(equation: Equation, parts: tuple[m.Maths, ...]) -> m.Maths:
    """Side by side; below one another where rows stand upright."""
    return _stack(equation, *parts) if equation.upright else side_by_side(parts)


def side_by_side(parts: tuple[m.Maths, ...]) -> m.Maths:
    """[Q_1 | Q_2]; matrices have brackets of their own."""
    joined = m.between(parts, "|")
    return joined if all(isinstance(p, m.Grid) for p in parts) else m.bracketed(joined, "[", "]")


FORMULA: Mapping[type[ops.Op], Callable[..., m.Maths]] = {
    ops.Given: lambda equation: equation.name.maths,
    ops.MatMul: lambda equation, *factors: m.between(factors, "·"),
    ops.Transpose: lambda equation, matrix: m.Above(matrix, m.TRANSPOSED),
    ops.Divide: _divide,
    ops.Add: lambda equation, *terms: m.between(terms, "+"),
    ops.Softmax: _softmax,
    ops.Split: _split,
    ops.Join: _join,
    ops.Constant: lambda equation: equation.name.maths,
    ops.Multiply: _multiply,
    ops.Subtract: lambda equation, *terms: m.between(terms, "−"),
    ops.DivideBy: lambda equation, *sides: m.between(sides, "/"),
    ops.Exp: lambda equation, matrix: m.applied("exp", matrix),
    ops.Sums: _sums,
    ops.Maxima: _maxima,
    ops.Rows: _split,
    ops.Stack: _stack,
    ops.Rotate: _rotate,
    ops.Softcap: _softcap,
    ops.Means: _means,
    ops.SquareRoot: _square_root,
    ops.Relu: lambda equation, matrix: m.applied("ReLU", matrix),
}
