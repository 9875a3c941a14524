"""Counts: what a step costs, in numbers or in symbols, in a stated convention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from math import prod

from headwork import ops
from headwork.graph import Last, Step, in_order
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
    "Hidden entries are worked out like the rest; a difference counts as an addition, a comparison as nothing. "
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
        step: COUNTS[type(step.op)](step, convention, item_bytes, shape[step], *(shape[s] for s in step.inputs))
        for step in in_order(last)
    }


def repeats(last: Last) -> dict[Step, ops.Size]:
    """How many steps each one stands for: 1, or h when it belongs to a typical head of h."""
    of = [step.op.of for step in in_order(last) if isinstance(step.op, ops.Join)]
    symbol = next((size for size in of if size is not None), 1)
    return {step: symbol if isinstance(step.head, str) else 1 for step in in_order(last)}


def total(last: Last, each: Mapping[Step, Count]) -> Count:
    """The whole formula's cost."""
    times = repeats(last)
    return sum((count.times(times[step]) for step, count in each.items()), Count())


def _nothing(step: Step, convention: Convention, item: int, *shape: ops.Shape) -> Count:
    return Count()


def _matmul(step: Step, convention: Convention, item: int, out: ops.Shape, left: ops.Shape, right: ops.Shape) -> Count:
    entries, inner = prod(out), left[-1]
    return Count(
        multiplications=entries * inner,
        additions=entries * (inner if convention.first_term else inner - 1),
        bytes=_moved(item, out, left, right),
    )


def _divide(step: Step, convention: Convention, item: int, out: ops.Shape, scores: ops.Shape) -> Count:
    return Count(divisions=prod(out), bytes=_moved(item, out, scores))


def _add(step: Step, convention: Convention, item: int, out: ops.Shape, *terms: ops.Shape) -> Count:
    return Count(additions=prod(out) * (len(terms) - 1), bytes=_moved(item, out, *terms))


def _multiply(step: Step, convention: Convention, item: int, out: ops.Shape, *factors: ops.Shape) -> Count:
    return Count(multiplications=prod(out), bytes=_moved(item, out, *factors))


def _divide_by(step: Step, convention: Convention, item: int, out: ops.Shape, *sides: ops.Shape) -> Count:
    return Count(divisions=prod(out), bytes=_moved(item, out, *sides))


def _exp(step: Step, convention: Convention, item: int, out: ops.Shape, matrix: ops.Shape) -> Count:
    return Count(exponentials=prod(out), bytes=_moved(item, out, matrix))


def _sums(step: Step, convention: Convention, item: int, out: ops.Shape, matrix: ops.Shape) -> Count:
    entries, sums = prod(matrix), prod(out)
    return Count(additions=entries if convention.first_term else entries - sums, bytes=_moved(item, out, matrix))


def _maxima(step: Step, convention: Convention, item: int, out: ops.Shape, *parts: ops.Shape) -> Count:
    return Count(bytes=_moved(item, out, *parts))


def _softmax(step: Step, convention: Convention, item: int, out: ops.Shape, scores: ops.Shape) -> Count:
    assert isinstance(step.op, ops.Softmax)
    entries = prod(out)
    batches = prod(out[:-2])
    sums = batches * {-1: out[-2], -2: out[-1], None: 1}[step.op.axis]
    each = {-1: out[-1], -2: out[-2], None: out[-1] * out[-2]}[step.op.axis]
    return Count(
        additions=entries if convention.first_term else sums * (each - 1),
        divisions=entries,
        exponentials=entries,
        bytes=_moved(item, out, scores),
    )


def _join(step: Step, convention: Convention, item: int, out: ops.Shape, *parts: ops.Shape) -> Count:
    return Count(bytes=2 * item * prod(out))


def _moved(item: int, *matrices: ops.Shape) -> ops.Size:
    return item * sum(prod(shape) for shape in matrices)


COUNTS: Mapping[type[ops.Op], Callable[..., Count]] = {
    ops.Given: _nothing,
    ops.MatMul: _matmul,
    ops.Transpose: _nothing,
    ops.Divide: _divide,
    ops.Add: _add,
    ops.Softmax: _softmax,
    ops.Split: _nothing,
    ops.Join: _join,
    ops.Constant: _nothing,
    ops.Multiply: _multiply,
    ops.Subtract: _add,
    ops.DivideBy: _divide_by,
    ops.Exp: _exp,
    ops.Sums: _sums,
    ops.Maxima: _maxima,
    ops.Rows: _nothing,
    ops.Stack: _join,
}
