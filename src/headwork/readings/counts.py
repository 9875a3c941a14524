"""Counts: what a step costs, in numbers or in symbols, in a stated convention."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import prod

from headwork import ops
from headwork.graph import Last, Step, StepOf, in_order
from headwork.maths import MINUS, Letter, Maths, Number, Prose, Row, between, factor
from headwork.readings.shapes import shapes


@dataclass(frozen=True)
class Convention:
    """How operations are counted. `first_term` counts the addition of each sum's first term to nothing."""

    name: str
    text: Prose
    first_term: bool
    exponentials: bool


_A, _B, _C, _N = (Letter(letter) for letter in "abcn")
_PRODUCT: Prose = ("An ", between((_A, _B), "×"), " by ", between((_B, _C), "×"), " product is ")
_REST = (
    "Hidden entries are worked out like the rest; a difference counts as an addition, a comparison as nothing, "
    "a square root as an exponential. "
    "Bytes: every step reads its inputs and writes its result once; transposes, splits and blocks of rows only look."
)


def _less_one(size: Maths) -> Maths:
    return Row((size, MINUS, Number("1")))


BY_HAND = Convention(
    "by-hand",
    (
        *_PRODUCT,
        between((_A, _B, _C), "·"),
        " multiplications and ",
        between((_A, factor(_less_one(_B)), _C), "·"),
        " additions; dividing the scores costs one division an entry; a softmax row of ",
        *(_N, " costs ", _less_one(_N), " additions and ", _N, " divisions. "),
        "Exponentials are listed, not added in. " + _REST,
    ),
    first_term=False,
    exponentials=False,
)
FLOPS = Convention(
    "flops",
    (
        *_PRODUCT,
        between((Number("2"), _A, _B, _C), "·"),
        " operations, every sum starting from zero; every division and every exponential counts as one. " + _REST,
    ),
    first_term=True,
    exponentials=True,
)
CONVENTIONS = {convention.name: convention for convention in (BY_HAND, FLOPS)}


@dataclass(frozen=True)
class Count:
    """What one step, or a whole formula, costs."""

    multiplications: ops.Size = 0
    additions: ops.Size = 0
    divisions: ops.Size = 0
    exponentials: ops.Size = 0
    bytes: ops.Size = 0

    def __add__(self, other: Count) -> Count:
        return Count(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Count)))

    def times(self, number: ops.Size) -> Count:
        return Count(*(getattr(self, f.name) * number for f in fields(Count)))

    def operations(self, convention: Convention = BY_HAND) -> ops.Size:
        """The operations that the convention adds in."""
        counted = self.multiplications + self.additions + self.divisions
        return counted + self.exponentials if convention.exponentials else counted


def counts(last: Last, convention: Convention = BY_HAND, item_bytes: int = 4) -> dict[Step, Count]:
    """What every step costs. A step of a typical head is counted once; see `repeats` for how often it stands.

    With 3 tokens and d_k = 4 the scores cost 36 multiplications and 27 additions.
    """
    shape = shapes(last)
    return {
        step: _count(step, convention, item_bytes, shape[step], [shape[s] for s in step.inputs])
        for step in in_order(last)
    }


def _count(step: Step, convention: Convention, item: int, out: ops.Shape, inputs: Sequence[ops.Shape]) -> Count:
    """The operations, by the rule for the step's own; and what it reads and writes, each number once."""
    count = COUNTS[type(step.op)](step, convention, out, *inputs)
    if isinstance(step.op, LOOKING):
        return count
    # Of a typical head's part as much is read, over all heads, as is written.
    read = [out] if isinstance(step.op, ops.Join | ops.Stack) else inputs
    return replace(count, bytes=item * sum(prod(shape) for shape in (out, *read)))


def repeats(last: Last) -> dict[Step, ops.Size]:
    """How many steps each one stands for: 1, or h when it belongs to a typical head of h."""
    of = [step.op.of for step in in_order(last) if isinstance(step.op, ops.Join)]
    symbol = next((size for size in of if size is not None), 1)
    return {step: symbol if isinstance(step.head, str) else 1 for step in in_order(last)}


def total(last: Last, each: Mapping[Step, Count]) -> Count:
    """The whole formula's cost."""
    times = repeats(last)
    return sum((count.times(times[step]) for step, count in each.items()), Count())


def _matmul(step: Step, convention: Convention, out: ops.Shape, left: ops.Shape, right: ops.Shape) -> Count:
    entries, inner = prod(out), left[-1]
    return Count(multiplications=entries * inner, additions=entries * (inner if convention.first_term else inner - 1))


def _add(step: Step, convention: Convention, out: ops.Shape, *terms: ops.Shape) -> Count:
    return Count(additions=prod(out) * (len(terms) - 1))


def _sums(step: Step, convention: Convention, out: ops.Shape, matrix: ops.Shape) -> Count:
    entries, sums = prod(matrix), prod(out)
    return Count(additions=entries if convention.first_term else entries - sums)


def _softmax(step: StepOf[ops.Softmax], convention: Convention, out: ops.Shape, scores: ops.Shape) -> Count:
    entries = prod(out)
    sums = prod(out[:-2]) * {-1: out[-2], -2: out[-1], None: 1}[step.op.axis]
    each = {-1: out[-1], -2: out[-2], None: out[-1] * out[-2]}[step.op.axis]
    additions = entries if convention.first_term else sums * (each - 1)
    return Count(additions=additions, divisions=entries, exponentials=entries)


LOOKING = (ops.Given, ops.Constant, ops.Transpose, ops.Split, ops.Rows)  # nothing is read or written
MOVING = (*LOOKING, ops.Join, ops.Stack, ops.Maxima, ops.Relu)  # nothing is worked out, or only compared
COUNTS: Mapping[type[ops.Op], Callable[..., Count]] = {
    **dict.fromkeys(MOVING, lambda step, convention, *shapes: Count()),
    ops.MatMul: _matmul,
    **dict.fromkeys((ops.Divide, ops.DivideBy), lambda step, convention, out, *shapes: Count(divisions=prod(out))),
    **dict.fromkeys((ops.Add, ops.Subtract), _add),
    ops.Softmax: _softmax,
    ops.Multiply: lambda step, convention, out, left, right: Count(multiplications=prod(out)),
    **dict.fromkeys((ops.Exp, ops.SquareRoot), lambda step, convention, out, matrix: Count(exponentials=prod(out))),
    ops.Sums: _sums,
    ops.Rotate: lambda step, convention, out, *shapes: Count(multiplications=2 * prod(out), additions=prod(out)),
    ops.Softcap: lambda step, convention, out, scores: Count(
        multiplications=prod(out), divisions=prod(out), exponentials=prod(out)
    ),
    ops.Means: lambda step, convention, out, matrix: _sums(step, convention, out, matrix) + Count(divisions=prod(out)),
}
