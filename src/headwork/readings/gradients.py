"""Gradients: the gradient of a graph is a graph. One table says what each operation passes back to its inputs.

For L a number made of the last step, d_s is ∂L/∂s, a step as large as s. The rules are those of matrices:

    C = A·B          d_A = d_C·Bᵀ, d_B = Aᵀ·d_C
    P = softmax(S)   d_S = P∘(d_P − D), where D is the column of row sums of P∘d_P: the number a fused kernel keeps
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from headwork import ops
from headwork.errors import HeadworkError
from headwork.graph import Step, in_order
from headwork.notation import PLAIN
from headwork.readings.gathering import Passed, added, gathered
from headwork.readings.shapes import shapes

MINUS_ONE = Fraction(-1)


def gradients(last: Step, *, of: Collection[Step], seed: Step, shifts: Collection[Step] = ()) -> dict[Step, Step]:
    """For every step between some inputs and the last one the step that is its gradient, the last one's first.

    `of` are the steps that gradients are wanted of, `seed` is ∂L/∂last. What `of` does not lead to has none.
    `shifts` are steps that the last one does not depend on, though it is worked with them, as a softmax is with its
    row's maximum: all that they would pass back adds up to 0, so they pass nothing.
    """
    shape = shapes(last)
    order = in_order(last)
    leading = set(of)
    for step in order:
        if step not in shifts and leading.intersection(step.inputs):
            leading.add(step)
    if last not in leading:
        raise HeadworkError(f"{PLAIN.of(last)} rests on none of the steps that gradients are asked of")
    turned = Turned()
    found: dict[Step, Step] = {}
    waiting: dict[Step, list[Passed]] = {step: [] for step in order}
    for step in reversed(order):
        if step is last:
            found[step] = seed
        elif step in leading and waiting[step]:
            found[step] = added(step, list(gathered(step, waiting[step], shape)))
        else:
            continue
        for passed in GRADIENTS[type(step.op)](Back(step, found[step], shape, turned)):
            if passed.to in leading:
                waiting[passed.to].append(passed)
    return found


class Turned:
    """Transposes, each made once; that of a transpose is what it was made of."""

    def __init__(self) -> None:
        self.made: dict[Step, Step] = {}

    def __call__(self, step: Step) -> Step:
        if isinstance(step.op, ops.Transpose):
            return step.inputs[0]
        if step not in self.made:
            self.made[step] = Step(ops.Transpose(), (step,), f"{step.role}_transposed", step.head)
        return self.made[step]


@dataclass(frozen=True)
class Back:
    """A step on the way back: its gradient `d`, and what is known of the steps before it."""

    step: Step
    d: Step
    shape: Mapping[Step, ops.Shape]
    turned: Turned

    def to(self, position: int, op: ops.Op | None, *inputs: Step) -> Passed:
        return Passed(self.step.inputs[position], self.step, op, inputs)

    def made(self, role: str, op: ops.Op, *inputs: Step) -> Step:
        """A step on the way, with a name of its own."""
        return Step(op, inputs, role, self.step.head)

    def ones(self) -> Step:
        """As many as there are entries in what goes in."""
        shape = self.shape[self.step.inputs[0]]
        return self.made(f"ones_{self.step.role}", ops.Constant(shape, Fraction(1)))

    def narrowed(self, position: int, full: Step) -> Passed:
        """To an input that was spread over rows or columns: the sum of all that it met."""
        own, out = self.shape[self.step.inputs[position]][-2:], self.shape[self.step][-2:]
        axes = [axis for axis in (-1, -2) if own[axis] != out[axis]]
        if not axes:
            return self.to(position, None, full)
        for axis in axes[:-1]:
            full = self.made(f"{full.role}_sums", ops.Sums(axis), full)
        return self.to(position, ops.Sums(axes[-1]), full)


# The rules: what a step passes back to its inputs.


def _matmul(back: Back) -> Iterator[Passed]:
    """d_A = d·Bᵀ and d_B = Aᵀ·d. To what stands transposed in the product directly: of Q·Kᵀ d_K is dᵀ·Q."""
    (A, B), d, turned = back.step.inputs, back.d, back.turned
    if isinstance(A.op, ops.Transpose):
        yield Passed(A.inputs[0], back.step, ops.MatMul(), (B, turned(d)))
    else:
        yield back.to(0, ops.MatMul(), d, turned(B))
    if isinstance(B.op, ops.Transpose):
        yield Passed(B.inputs[0], back.step, ops.MatMul(), (turned(d), A))
    else:
        yield back.to(1, ops.MatMul(), turned(A), d)


def _once_more(back: Back) -> Iterator[Passed]:
    """The gradient of a transpose is transposed, that of a quotient divided by the same."""
    yield back.to(0, back.step.op, back.d)


def _add(back: Back) -> Iterator[Passed]:
    """As it is to every term; to a single row, which was added to every row, the sum over the rows."""
    yield from (back.narrowed(position, back.d) for position in range(len(back.step.inputs)))


def _softmax(back: Back) -> Iterator[Passed]:
    """P∘(d_P − D), D the sum of P∘d_P over all that shared a row."""
    assert isinstance(back.step.op, ops.Softmax)
    weighted = back.made("weighted", ops.Multiply(), back.step, back.d)
    axis = back.step.op.axis
    if axis is None:
        by_row = back.made("row_terms", ops.Sums(), weighted)
        term = back.made("row_term", ops.Sums(-2), by_row)
    else:
        term = back.made("row_term", ops.Sums(axis), weighted)
    centred = back.made("centred", ops.Subtract(), back.d, term)
    yield back.to(0, ops.Multiply(), back.step, centred)


def _piece(back: Back) -> Iterator[Passed]:
    """A block's gradient, as it is; `gathered` puts the blocks together."""
    yield back.to(0, None, back.d)


def _join(back: Back) -> Iterator[Passed]:
    assert isinstance(back.step.op, ops.Join)
    widths = [back.shape[source][-1] for source in back.step.inputs]
    if any(width != widths[0] for width in widths):
        raise HeadworkError(f"the parts of {PLAIN.of(back.step)} are not of one width; its gradient cannot be split")
    of = len(widths) if back.step.op.of is None else back.step.op.of
    for part in range(len(widths)):
        yield back.to(part, None if of == 1 else ops.Split(part, of), back.d)


def _multiply(back: Back) -> Iterator[Passed]:
    left, right = back.step.inputs
    yield back.to(0, ops.Multiply(), back.d, right)
    if back.shape[right] == back.shape[left]:
        yield back.to(1, ops.Multiply(), back.d, left)
    else:
        yield back.narrowed(1, back.made(f"d_{back.step.role}_times", ops.Multiply(), back.d, left))


def _subtract(back: Back) -> Iterator[Passed]:
    yield back.to(0, None, back.d)
    less = back.made(f"d_{back.step.role}_negated", ops.Divide(MINUS_ONE), back.d)
    yield back.narrowed(1, less)


def _divide_by(back: Back) -> Iterator[Passed]:
    """Of A/B to A d/B, and to B −d∘(A/B)/B, summed where B was spread.

    Where nothing may be read B is the sum of no exponentials, and nothing goes back; a root that is 0 has no slope.
    """
    right = back.step.inputs[1]
    by = ops.DivideBy(back=not isinstance(right.op, ops.SquareRoot))
    yield back.to(0, by, back.d, right)
    share = back.made(f"d_{back.step.role}_times", ops.Multiply(), back.d, back.step)
    each = back.made(f"d_{back.step.role}_shares", by, share, right)
    yield back.narrowed(1, back.made(f"d_{back.step.role}_negated", ops.Divide(MINUS_ONE), each))


def _sums(back: Back) -> Iterator[Passed]:
    """One number for a row is what every entry of the row gets."""
    yield back.to(0, ops.Multiply(), back.ones(), back.d)


def _means(back: Back) -> Iterator[Passed]:
    """Every entry of a row gets its share of what the mean gets."""
    width = back.shape[back.step.inputs[0]][-1]
    share = back.made(f"d_{back.step.role}_shared", ops.Divide(Fraction(width)), back.d)
    yield back.to(0, ops.Multiply(), back.ones(), share)


def _square_root(back: Back) -> Iterator[Passed]:
    """d/(2√x)"""
    each = back.made(f"d_{back.step.role}_shares", ops.DivideBy(), back.d, back.step)
    yield back.to(0, ops.Divide(Fraction(2)), each)


def _relu(back: Back) -> Iterator[Passed]:
    """d where the entry was let through, else 0: max(x, 0)/x is 1 or 0, and 0/0 is 0."""
    gate = back.made(f"gate_{back.step.role}", ops.DivideBy(), back.step, back.step.inputs[0])
    yield back.to(0, ops.Multiply(), back.d, gate)


def _maxima(back: Back) -> Iterable[Passed]:
    raise HeadworkError(
        f"the gradient of {PLAIN.of(back.step)}, a maximum, is not worked: it jumps from entry to entry. The softmax "
        'takes the same gradient without it: write softmax = "whole" or "steps"'
    )


def _stack(back: Back) -> Iterator[Passed]:
    start = 0
    for position, source in enumerate(back.step.inputs):
        stop = start + back.shape[source][-2]
        yield back.to(position, ops.Rows(start, stop), back.d)
        start = stop


def _rotate(back: Back) -> Iterator[Passed]:
    """Turned back. The angles are known and get none."""
    op = back.step.op
    assert isinstance(op, ops.Rotate)
    yield back.to(0, ops.Rotate(op.pairs, not op.back), back.d, *back.step.inputs[1:])


def _softcap(back: Back) -> Iterator[Passed]:
    """Of c·tanh(s/c) d∘(1 − tanh²): d less what is lost where the cap is near."""
    assert isinstance(back.step.op, ops.Softcap)
    tanh = back.made("tanh", ops.Divide(back.step.op.by), back.step)
    squared = back.made("tanh_squared", ops.Multiply(), tanh, tanh)
    yield back.to(0, ops.Subtract(), back.d, back.made("lost", ops.Multiply(), back.d, squared))


GRADIENTS: Mapping[type[ops.Op], Callable[[Back], Iterable[Passed]]] = {
    ops.Given: lambda back: (),
    ops.MatMul: _matmul,
    ops.Transpose: _once_more,
    ops.Divide: _once_more,
    ops.Add: _add,
    ops.Softmax: _softmax,
    ops.Split: _piece,
    ops.Join: _join,
    ops.Constant: lambda back: (),
    ops.Multiply: _multiply,
    ops.Subtract: _subtract,
    ops.DivideBy: _divide_by,
    ops.Exp: lambda back: [back.to(0, ops.Multiply(), back.d, back.step)],
    ops.Sums: _sums,
    ops.Maxima: _maxima,
    ops.Rows: _piece,
    ops.Stack: _stack,
    ops.Rotate: _rotate,
    ops.Softcap: _softcap,
    ops.Means: _means,
    ops.SquareRoot: _square_root,
    ops.Relu: _relu,
}
