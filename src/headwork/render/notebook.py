"""The page as a notebook: every step a cell, with code that works it out with headwork and with PyTorch."""

import dataclasses
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from keyword import iskeyword

from headwork import ops
from headwork.extras import needs
from headwork.notation import Name
from headwork.numbers.certain import Certain
from headwork.numbers.closed import Closed
from headwork.numbers.digits import significant
from headwork.readings.exact import Entry, Matrix
from headwork.render.blocks import Block, Display, Heading, Heat, Picture, Title
from headwork.render.diagram import picture_of
from headwork.render.markdown import LAYOUT, block_markdown, escaped, for_notebooks
from headwork.render.page import layout_of, problem_blocks
from headwork.render.svg import svg
from headwork.sheets.save import number_text
from headwork.working import Equation, Operand, ProblemWorking, Working

_SETUP = """import torch  # pip install torch

from headwork.by_hand import matrix, step
from headwork.numbers.parse import parse_number
from headwork.ops import Add, Divide, Join, MatMul, Root, Softmax, Split, Transpose
from headwork.ops import DivideBy, Exp, Maxima, Means, Multiply, Relu, Rotate, Rows, Softcap, SquareRoot, Stack
from headwork.ops import Subtract, Sums


def tensor(equation):
    return torch.tensor(equation.__array__(), dtype=torch.float64)"""
# What is worked along a row: where rows stand as columns, along a column.
ALONG_ROWS = (ops.Softmax, ops.Split, ops.Join, ops.Sums, ops.Maxima, ops.Means, ops.Rotate)
Known = dict[str, Matrix]  # the value that each name on the page has had last


def working_notebook(working: Working, *, exact: bool = False) -> str:
    """The whole notebook, format 4.5."""
    nbformat = needs("nbformat")
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata["title"] = working.title
    made = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    for number, (kind, source) in enumerate(_cells(working, exact)):
        cell = made[kind](source)
        cell["id"] = f"cell-{number}"  # the same page gives the same file
        notebook.cells.append(cell)
    nbformat.validate(notebook)
    return str(nbformat.writes(notebook)) + "\n"


def _cells(working: Working, exact: bool) -> Iterator[tuple[str, str]]:
    yield "markdown", _markdown(Title(working.title))
    if any(problem.given or _worked(problem) for problem in working.problems):
        yield "code", _SETUP
    for number, problem in enumerate(working.problems, 1):
        if len(working.problems) > 1:
            yield "markdown", _markdown(Heading(f"{number}. {problem.problem.title}"))
        yield from _problem(problem, problem_blocks(problem, layout_of(problem, exact=exact, **LAYOUT)))


def _problem(problem: ProblemWorking, blocks: Iterable[Block]) -> Iterator[tuple[str, str]]:
    known: Known = {}
    if problem.given:
        yield "code", "\n".join(_given(equation, known) for equation in problem.given)
    text: list[str] = []
    for block in blocks:
        text.append(_markdown(block))
        if isinstance(block, Display) and block.equation is not None and block.equation.value is not None:
            yield "markdown", "\n\n".join(filter(None, text))
            text = []
            yield from _recomputed(block.equation, known)
    if any(text):
        yield "markdown", "\n\n".join(filter(None, text))


def _worked(problem: ProblemWorking) -> bool:
    return any(isinstance(line, Equation) and line.value for part in problem.parts for line in part.lines)


def _markdown(block: Block) -> str:
    """GitHub's Markdown, with formulas as notebooks have them and pictures in place."""
    if not isinstance(block, Picture | Heat):
        return for_notebooks(block_markdown(block))
    drawing = picture_of(block)
    data = b64encode(svg(drawing, "light").encode()).decode()
    return f"![{escaped(drawing.words)}](data:image/svg+xml;base64,{data})"


# Code.


def _given(equation: Equation, known: Known) -> str:
    assert equation.value is not None
    return _literal(equation.name, equation.value, known)


def _literal(name: Name, value: Matrix, known: Known) -> str:
    known[str(name)] = value
    return f"{_variable(name)} = matrix({_quoted(name)}, {_rows(value)})"


def _recomputed(equation: Equation, known: Known) -> Iterator[tuple[str, str]]:
    """Two cells: exactly, by headwork; in float64, by PyTorch, which must agree."""
    assert equation.value is not None
    if equation.given:
        yield "code", _given(equation, known)
        return
    if not equation.worked:
        return  # on a key the way is left out, and nothing is left to work it out from
    before = [line for operand in equation.operands for line in _fetched(operand, known)]
    inputs = [_variable(operand.name) for operand in equation.operands]
    name = _variable(equation.name)
    columns = ["upright=True"] if equation.upright and isinstance(equation.step.op, ALONG_ROWS) else []
    worked = f"{name} = step({_quoted(equation.name)}, {', '.join([_op(equation), *inputs, *columns])})"
    known[str(equation.name)] = equation.value
    yield "code", "\n".join([*before, worked, name])
    tensors = [f"tensor({source})" for source in inputs]
    torch = TORCH[type(equation.step.op)](equation, *tensors)
    yield "code", f"by_torch = {torch}\ntorch.testing.assert_close(by_torch, tensor({name}))\nby_torch"


def _fetched(operand: Operand, known: Known) -> Iterator[str]:
    """What has had no line of its own: a transpose, a row, or a matrix whose name has been used for another since."""
    assert operand.value is not None
    if known.get(str(operand.name)) == operand.value:
        return
    upright = operand.name.flipped()
    if known.get(str(upright)) == tuple(zip(*operand.value, strict=True)):
        known[str(operand.name)] = operand.value
        yield f"{_variable(operand.name)} = step({_quoted(operand.name)}, Transpose(), {_variable(upright)})"
    else:
        yield _literal(operand.name, operand.value, known)


def _quoted(name: Name) -> str:
    return json.dumps(str(name), ensure_ascii=False)


def _variable(name: Name) -> str:
    """A name for Python: scores_1, W_Q_1, K_1_T."""
    plain = re.sub(r"\W+", "_", str(name).replace("ᵀ", "_T").replace("′", "_before")).strip("_")
    return plain if plain.isidentifier() and not iskeyword(plain) else f"m_{plain}"


def _rows(matrix: Matrix) -> str:
    return "[" + ", ".join("[" + ", ".join(_number(x) for x in row) + "]" for row in matrix) + "]"


def _number(entry: Entry) -> str:
    """An exact number as `matrix` reads it; what has no such form, in fifteen digits."""
    return json.dumps(significant(entry, 15)) if isinstance(entry, Closed | Certain) else number_text(entry)


def _op(equation: Equation) -> str:
    """The operation as Python: Softmax(), Split(part=1, of=2)."""
    op = equation.step.op
    if isinstance(op, ops.Divide | ops.Softcap) and not isinstance(op.by, ops.Root):
        return f"{type(op).__name__}(parse_number({_number(op.by)}))"
    if isinstance(op, ops.Divide) and isinstance(op.by, ops.Root):
        return f'Divide(Root({op.by.of}, "{op.by.name}"))'
    if not dataclasses.is_dataclass(op):
        return repr(op)
    told = [f for f in dataclasses.fields(op) if getattr(op, f.name) != f.default]
    return f"{type(op).__name__}({', '.join(f'{f.name}={getattr(op, f.name)!r}' for f in told)})"


def _torch_divide(equation: Equation, scores: str) -> str:
    from headwork.numbers.digits import to_float
    from headwork.readings.exact import divisor

    assert isinstance(equation.step.op, ops.Divide)
    by = equation.step.op.by
    under = f"{by.of} ** 0.5" if isinstance(by, ops.Root) else repr(to_float(divisor(by)))
    return f"{scores} / {under}"


def _torch_softmax(equation: Equation, scores: str) -> str:
    assert isinstance(equation.step.op, ops.Softmax)
    axis = -2 if equation.upright else equation.step.op.axis
    if axis is None:
        return f"torch.softmax({scores}.flatten(), 0).reshape({scores}.shape)"
    return f"torch.softmax({scores}, {axis})"


def _torch_split(equation: Equation, wide: str) -> str:
    assert isinstance(equation.step.op, ops.Split)
    return f"{wide}.chunk({equation.step.op.of}, dim={_along(equation, -1)})[{equation.step.op.part}]"


def _torch_maxima(equation: Equation, *parts: str) -> str:
    along = _along(equation, -1)
    all_of_it = parts[0] if len(parts) == 1 else f"torch.cat([{', '.join(parts)}], dim={along})"
    return f"{all_of_it}.amax({along}, keepdim=True)"


def _torch_rows(equation: Equation, matrix: str) -> str:
    assert isinstance(equation.step.op, ops.Rows)
    rows = f"{equation.step.op.start}:{equation.step.op.stop}"
    return f"{matrix}[:, {rows}]" if equation.upright else f"{matrix}[{rows}]"


def _torch_rotate(equation: Equation, *operands: str) -> str:
    op = equation.step.op
    assert isinstance(op, ops.Rotate)
    matrix, cos, sin = (f"{operand}.T" for operand in operands) if equation.upright else operands
    first, second = [f"{matrix}[:, ::2]", f"{matrix}[:, 1::2]"]
    if op.pairs == "halves":
        first, second = [f"{matrix}.chunk(2, dim=-1)[{half}]" for half in (0, 1)]
    signs = "+-" if op.back else "-+"
    pair = f"[{first} * {cos} {signs[0]} {second} * {sin}, {second} * {cos} {signs[1]} {first} * {sin}]"
    turned = f"torch.cat({pair}, dim=-1)" if op.pairs == "halves" else f"torch.stack({pair}, dim=-1).flatten(-2)"
    return f"{turned}.T" if equation.upright else turned


def _torch_softcap(equation: Equation, scores: str) -> str:
    from headwork.numbers.digits import to_float

    assert isinstance(equation.step.op, ops.Softcap)
    cap = to_float(equation.step.op.by)
    return f"{cap!r} * torch.tanh({scores} / {cap!r})"


def _torch_divide_by(equation: Equation, left: str, right: str) -> str:
    """0/0 is 0, and on the way back x/0."""
    assert isinstance(equation.step.op, ops.DivideBy)
    return f"({left} / {right}).nan_to_num({'0, 0, 0' if equation.step.op.back else '0'})"


def _along(equation: Equation, axis: int) -> int:
    """An axis of the step, as one of the page, which may have rows upright."""
    return -3 - axis if equation.upright else axis


TORCH: Mapping[type[ops.Op], Callable[..., str]] = {
    ops.Given: lambda equation: "",
    ops.MatMul: lambda equation, left, right: f"{left} @ {right}",
    ops.Transpose: lambda equation, matrix: f"{matrix}.T",
    ops.Divide: _torch_divide,
    ops.Add: lambda equation, *terms: " + ".join(terms),
    ops.Softmax: _torch_softmax,
    ops.Split: _torch_split,
    ops.Join: lambda equation, *parts: f"torch.cat([{', '.join(parts)}], dim={_along(equation, -1)})",
    ops.Constant: lambda equation: "",
    ops.Multiply: lambda equation, left, right: f"{left} * {right}",
    ops.Subtract: lambda equation, left, right: f"({left} - {right}).nan_to_num(-torch.inf, neginf=-torch.inf)",
    ops.DivideBy: _torch_divide_by,
    ops.Exp: lambda equation, matrix: f"torch.exp({matrix})",
    ops.Sums: lambda equation, matrix: f"{matrix}.sum({_along(equation, equation.step.op.axis)}, keepdim=True)",
    ops.Maxima: _torch_maxima,
    ops.Rows: _torch_rows,
    ops.Stack: lambda equation, *parts: f"torch.cat([{', '.join(parts)}], dim={-1 if equation.upright else -2})",
    ops.Rotate: _torch_rotate,
    ops.Softcap: _torch_softcap,
    ops.Means: lambda equation, matrix: f"{matrix}.mean({_along(equation, -1)}, keepdim=True)",
    ops.SquareRoot: lambda equation, matrix: f"torch.sqrt({matrix})",
    ops.Relu: lambda equation, matrix: f"torch.relu({matrix})",
}
