"""Maxima: a step means an expression, in the functions of `stack.mac`. One more reading of the graph, so the mistakes,
being rewritten graphs, are written by it too."""

from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce

from headwork import ops
from headwork.errors import HeadworkError
from headwork.graph import Rules, Step, StepOf, needed, read
from headwork.mistakes.operations import HideOthers, LaterColumn, LaterRow, LessMaximum, Share, ZeroHidden
from headwork.numbers.surd import Real, Surd
from headwork.readings.exact import Entry, Hidden, Matrix
from headwork.readings.moving import not_given

AXES = {-1: 1, -2: 2, None: 0}  # as `stack.mac` numbers them; so are the rules below


def maxima(last: Step, handed: Mapping[Step, str]) -> str:
    """A step as an expression in what is handed over: names of matrices. What is read twice is worked out once, under a
    name in it: written out each time, a gradient would take hundreds of megabytes."""
    read_by = Counter(source for step in needed(last, handed) if step not in handed for source in step.inputs)
    lines: list[str] = []

    def named(step: Step, *inputs: str) -> str:
        text: str = MAXIMA[type(step.op)](step, *inputs)
        if read_by[step] < 2:
            return text
        lines.append(f"hw_twice{len(lines) + 1}:{text}")
        return f"hw_twice{len(lines)}"

    whole = read(last, dict.fromkeys(MAXIMA, named), handed)[last]
    names = ",".join(line.partition(":")[0] for line in lines)
    return f"block([{names}],{','.join(lines)},{whole})" if lines else whole


def assignments(
    last: Step, handed: Mapping[Step, str], name: Callable[[Step], str]
) -> tuple[dict[Step, str], list[str]]:
    """Every step under a name of its own, worked out once; and the lines that do it."""
    lines: list[str] = []

    def named(step: Step, *inputs: str) -> str:
        lines.append(f"{name(step)}: {MAXIMA[type(step.op)](step, *inputs)};")
        return name(step)

    return read(last, dict.fromkeys(MAXIMA, named), handed), lines


def matrix_text(matrix: Matrix) -> str:
    """A matrix of exact numbers.

    >>> matrix_text(((Fraction(1, 2), Fraction(3)),))
    'matrix([1/2,3])'
    """
    return f"matrix({','.join('[' + ','.join(map(_number, row)) + ']' for row in matrix)})"


def _number(entry: Entry) -> str:
    if isinstance(entry, Hidden):
        return "hw_hidden"
    if isinstance(entry, Fraction | Surd):
        return real(entry)
    raise HeadworkError(f"{entry!r} is no number that a sheet can give; give a fraction or a root")


def real(number: Real) -> str:
    if isinstance(number, Surd):
        return "+".join(f"({c})*sqrt({r})" for r, c in sorted(number.terms.items()))
    return str(number)


def _divide(step: StepOf[ops.Divide], scores: str) -> str:
    by = step.op.by
    return f"hw_divide({scores},float({f'sqrt({by.of})' if isinstance(by, ops.Root) else real(by)}))"


def _axis(rule: int) -> Callable[..., str]:
    def along(step: StepOf[ops.Softmax | Share], scores: str) -> str:
        return f"hw_along({rule},{scores},{AXES[step.op.axis]})"

    return along


def _constant(step: StepOf[ops.Constant]) -> str:
    rows, columns = step.op.shape
    return f"hw_const(float({real(step.op.value)}),{rows},{columns})"


def _sums(step: StepOf[ops.Sums], matrix: str) -> str:
    return f"hw_sums({matrix})" if step.op.axis == -1 else f"transpose(hw_sums(transpose({matrix})))"


def _rotate(step: StepOf[ops.Rotate], matrix: str, cos: str, sin: str) -> str:
    turned = f"(-1.0)*{sin}" if step.op.back else sin
    return f"hw_rotate({matrix},{cos},{turned},{1 if step.op.pairs == 'neighbours' else 0})"


def _less_maximum(step: StepOf[LessMaximum], scores: str) -> str:
    lines = f"transpose({scores})" if step.op.of == "columns" else scores
    return f"hw_each(3,{scores},transpose(hw_tops({lines})))"


def _entry_by_entry(rule: int) -> Callable[..., str]:
    return lambda step, *parts: reduce(lambda left, right: f"hw_each({rule},{left},{right})", parts)


MAXIMA: Rules[str] = {
    ops.Given: not_given,
    ops.MatMul: lambda step, left, right: f"hw_dot({left},{right})",
    ops.Transpose: lambda step, matrix: f"transpose({matrix})",
    ops.Divide: _divide,
    ops.Add: _entry_by_entry(1),
    ops.Softmax: _axis(1),
    ops.Split: lambda step, wide: f"hw_part({wide},{step.op.part},{step.op.of})",
    ops.Join: lambda step, *parts: f"hw_join([{','.join(parts)}])",
    ops.Constant: _constant,
    ops.Multiply: _entry_by_entry(2),
    ops.Subtract: _entry_by_entry(3),
    ops.DivideBy: lambda step, *parts: _entry_by_entry(7 if step.op.back else 4)(step, *parts),
    ops.Exp: lambda step, matrix: f"hw_power({matrix})",
    ops.Sums: _sums,
    ops.Maxima: lambda step, *parts: f"hw_tops(hw_join([{','.join(parts)}]))",
    ops.Rows: lambda step, matrix: f"hw_some({matrix},{step.op.start + 1},{step.op.stop})",
    ops.Stack: lambda step, *parts: f"hw_stack([{','.join(parts)}])",
    ops.Rotate: _rotate,
    ops.Softcap: lambda step, scores: f"hw_cap({scores},float({real(step.op.by)}))",
    ops.Means: lambda step, matrix: f"hw_means({matrix})",
    ops.SquareRoot: lambda step, matrix: f"hw_roots({matrix})",
    ops.Relu: lambda step, matrix: f"hw_positive({matrix})",
    ZeroHidden: _entry_by_entry(5),
    HideOthers: _entry_by_entry(6),
    Share: _axis(2),
    LaterRow: lambda step, mask: f"hw_later({mask},{step.op.by})",
    LaterColumn: lambda step, mask: f"hw_further({mask},{step.op.by})",
    LessMaximum: _less_maximum,
}
