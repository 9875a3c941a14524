"""Attention, written once. Everything else in headwork is a reading of what stands here.

    dot_product         softmax(Q·Kᵀ)·V
    scaled_dot_product  softmax(Q·Kᵀ/√d_k)·V
    single_head         the same with Q = X·W_Q, K = X·W_K, V = X·W_V, and W_O after it
    multi_head          a projection for every head, the heads joined, W_O after them
    multi_head_blocks   one wide projection, split into heads
    blockwise           scaled_dot_product with the keys taken block by block, as a fused kernel takes them

Shapes: X tokens×d_model, Q tokens×d_k, K keys×d_k, V keys×d_v, scores and weights tokens×keys,
a head's output tokens×d_v, joined tokens×(heads·d_v). Every function takes steps (projections are one or two of
them) and returns the last step.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from headwork import ops
from headwork.errors import HeadworkError, ShapeError, did_you_mean
from headwork.graph import Head, KeyBlock, Step, rewrite
from headwork.numbers.surd import Real
from headwork.readings.shapes import shapes

Scale = Real | Literal["sqrt(d_k)"] | None  # what the scores are divided by; None leaves them as they are
SQRT_D_K: Literal["sqrt(d_k)"] = "sqrt(d_k)"


@dataclass(frozen=True)
class Projection:
    """A matrix to multiply by, and the bias added to the product where there is one: X·W + b."""

    W: Step
    b: Step | None = None


def dot_product(Q: Step, K: Step, V: Step, *, mask: Step | None = None) -> Step:
    """softmax(Q·Kᵀ)·V"""
    return scaled_dot_product(Q, K, V, mask=mask, scale=None)


def scaled_dot_product(Q: Step, K: Step, V: Step, *, mask: Step | None = None, scale: Scale = SQRT_D_K) -> Step:
    """softmax(Q·Kᵀ/√d_k + mask)·V"""
    scores = product("scores", Q, transposed(K))
    weights = softmax(masked(scaled(scores, scale, Q), mask))
    return checked(product("head_output", weights, V))


def single_head(
    X: Step,
    W_Q: Projection,
    W_K: Projection,
    W_V: Projection,
    W_O: Projection | None = None,
    *,
    context: Step | None = None,
    mask: Step | None = None,
    scale: Scale = SQRT_D_K,
) -> Step:
    """softmax(X·W_Q·(X·W_K)ᵀ/√d_k)·X·W_V·W_O; keys and values come from the context where there is one."""
    C = context or X
    Q, K, V = projected("Q", X, W_Q), projected("K", C, W_K), projected("V", C, W_V)
    head = scaled_dot_product(Q, K, V, mask=mask, scale=scale)
    return checked(projected("output", head, W_O) if W_O else head)


def multi_head(
    X: Step,
    W_Q: Sequence[Projection],
    W_K: Sequence[Projection],
    W_V: Sequence[Projection],
    W_O: Projection,
    *,
    context: Step | None = None,
    mask: Step | None = None,
    scale: Scale = SQRT_D_K,
    heads: ops.Size | None = None,
) -> Step:
    """[head_1 | … | head_h]·W_O, where head_i = softmax(Q_i·K_iᵀ/√d_k)·V_i and Q_i = X·W_Q,i.

    With fewer K and V than Q, neighbouring heads share: head i reads key head i // (heads / kv_heads).
    `heads` is given when the number is a symbol; the one projection handed in is then typical of them.
    """
    C = context or X
    Q = [projected("Q", X, W) for W in W_Q]
    K = [projected("K", C, W) for W in W_K]
    V = [projected("V", C, W) for W in W_V]
    return joined_heads(Q, K, V, W_O, mask, scale, heads)


def multi_head_blocks(
    X: Step,
    W_Q: Projection,
    W_K: Projection,
    W_V: Projection,
    W_O: Projection,
    *,
    heads: ops.Size,
    kv_heads: ops.Size | None = None,
    context: Step | None = None,
    mask: Step | None = None,
    scale: Scale = SQRT_D_K,
) -> Step:
    """The same layer with W_Q = [W_Q,1 | … | W_Q,h] in one block: project once, then split the columns."""
    C = context or X
    Q = split(projected("Q", X, W_Q), heads)
    K = split(projected("K", C, W_K), kv_heads or heads)
    V = split(projected("V", C, W_V), kv_heads or heads)
    return joined_heads(Q, K, V, W_O, mask, scale, heads)


def blockwise(
    Q: Step, K: Step, V: Step, *, blocks: Sequence[int], mask: Sequence[Step] | None = None, scale: Scale = SQRT_D_K
) -> Step:
    """softmax(Q·Kᵀ/√d_k)·V, never more than one block of the scores at a time.

    After every block the running maximum m, the running sum ℓ of e^(s − m) and the running output Σ e^(s − m)·v are
    those of all keys so far: what was there before is corrected by c = e^(m before − m). In the end running/ℓ.
    `blocks` are the numbers of keys in each, in order; `mask` has one matrix for each.
    """
    maxima: Step | None = None
    sums: Step | None = None
    running: Step | None = None
    start = 0
    for number, size in enumerate(blocks):
        block = KeyBlock(number)
        rows = ops.Rows(start, start + size)
        keys, values = (Step(rows, (whole,), whole.role, block) for whole in (K, V))
        scores = scaled(product("scores", Q, transposed(keys)), scale, Q)
        scores = masked(scores, mask[number]) if mask else scores
        before, known = maxima, () if maxima is None else (maxima,)
        maxima = Step(ops.Maxima(), (*known, scores), "maxima", block)
        shifted = Step(ops.Subtract(), (scores, maxima), "shifted", block)
        exponentials = Step(ops.Exp(), (shifted,), "exponentials", block)
        here = Step(ops.Sums(), (exponentials,), "sums" if before is None else "block_sums", block)
        output = product("running" if before is None else "block_output", exponentials, values)
        if before is None:
            sums, running = here, output
        else:
            drop = Step(ops.Subtract(), (before, maxima), "drop", block)
            correction = Step(ops.Exp(), (drop,), "correction", block)
            sums = _corrected("sums", sums, correction, here)
            running = _corrected("running", running, correction, output)
        start += size
    if running is None or sums is None:
        raise HeadworkError("blockwise needs at least one block of keys; give blocks = 2, or their sizes")
    return checked(Step(ops.DivideBy(), (running, sums), "head_output"))


def _corrected(role: str, before: Step | None, correction: Step, here: Step) -> Step:
    """What was there before, made smaller by the correction, and what this block adds."""
    assert before is not None
    kept = Step(ops.Multiply(), (before, correction), f"kept_{role}", correction.head)
    return Step(ops.Add(), (kept, here), role, correction.head)


def cut(keys: int, blocks: int | Sequence[int]) -> tuple[int, ...]:
    """How many keys each block has: as equal as they can be, the first ones larger; or as told.

    >>> cut(5, 2), cut(5, [1, 4])
    ((3, 2), (1, 4))
    """
    if isinstance(blocks, int):
        if not 1 <= blocks <= keys:
            raise HeadworkError(f"{keys} keys cannot be cut into {blocks} blocks; give 1 to {keys}")
        return tuple(keys // blocks + (i < keys % blocks) for i in range(blocks))
    if sum(blocks) != keys or min(blocks) < 1:
        raise HeadworkError(f"blocks of {', '.join(map(str, blocks))} keys do not make {keys}; give sizes that do")
    return tuple(blocks)


@dataclass(frozen=True)
class Formula:
    """What is to be known of a formula by those who do not read it."""

    function: Callable[..., Step]
    projects: bool = True  # takes X and projections; else Q, K and V as they are
    heads: Literal["one", "each", "split"] = "one"  # several: a projection for each, or a wide one that is split
    scaled: bool = True
    blocks: bool = False  # the keys are taken block by block

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def several(self) -> bool:
        """Whether there are heads to join."""
        return self.heads != "one"


FORMULAS: Mapping[str, Formula] = {
    formula.name: formula
    for formula in (
        Formula(dot_product, projects=False, scaled=False),
        Formula(scaled_dot_product, projects=False),
        Formula(single_head),
        Formula(multi_head, heads="each"),
        Formula(multi_head_blocks, heads="split"),
        Formula(blockwise, projects=False, blocks=True),
    )
}


def formula_named(name: str) -> Formula:
    """The formula of this name, or an error that lists them."""
    if name not in FORMULAS:
        meant = did_you_mean(name, FORMULAS) or f"; choose from {', '.join(FORMULAS)}"
        raise HeadworkError(f"there is no formula '{name}'{meant}")
    return FORMULAS[name]


# The pieces of which they are made.


def joined_heads(
    Q: Sequence[Step],
    K: Sequence[Step],
    V: Sequence[Step],
    W_O: Projection,
    mask: Step | None,
    scale: Scale,
    heads: ops.Size | None,
) -> Step:
    if len(Q) % len(K) or len(K) != len(V):
        raise ShapeError(
            f"{len(Q)} query heads cannot share {len(K)} key and {len(V)} value heads. "
            "Give as many keys as values, and a number that divides the number of queries."
        )
    group = len(Q) // len(K)
    each = [scaled_dot_product(q, K[i // group], V[i // group], mask=mask, scale=scale) for i, q in enumerate(Q)]
    symbol = None if heads is None or isinstance(heads, int) else heads
    joined = Step(ops.Join(of=symbol), tuple(each), "joined")
    return checked(projected("output", joined, W_O))


def given(role: str, shape: ops.Shape, head: Head = None) -> Step:
    return Step(ops.Given(shape), (), role, head)


def product(role: str, left: Step, right: Step) -> Step:
    return Step(ops.MatMul(), (left, right), role, right.head if left.head is None else left.head)


def transposed(K: Step) -> Step:
    return Step(ops.Transpose(), (K,), f"{K.role}_transposed", K.head)


def projected(role: str, X: Step, by: Projection) -> Step:
    """X·W, or X·W + b."""
    if by.b is None:
        return product(role, X, by.W)
    before = product(f"{role}_before_bias", X, by.W)
    return Step(ops.Add(), (before, by.b), role, before.head)


def scaled(scores: Step, scale: Scale, Q: Step) -> Step:
    """scores/√d_k, where d_k is the number of columns of Q."""
    if scale is None:
        return scores
    by = ops.Root(shapes(Q)[Q][-1], "d_k") if scale == SQRT_D_K else scale
    return Step(ops.Divide(by), (scores,), "scaled", scores.head)


def masked(scores: Step, mask: Step | None) -> Step:
    """scores + mask, where the mask holds 0 for "may be read" and −∞ for "hidden"."""
    return Step(ops.Add(), (scores, mask), "masked", scores.head) if mask else scores


def softmax(scores: Step) -> Step:
    return Step(ops.Softmax(), (scores,), "weights", scores.head)


def unfolded(last: Step, *, maximum: bool = False) -> Step:
    """Every softmax taken apart: exponentials, row sums, quotients; first, if wanted, less the row's maximum.

    weights = exp(s)/Σexp(s), or exp(s − max)/Σexp(s − max): the same weights, and no exponential is larger than 1.
    """
    return rewrite(last, lambda step: _in_steps(step, maximum) if isinstance(step.op, ops.Softmax) else None)


def _in_steps(weights: Step, maximum: bool) -> Step:
    (scores,) = weights.inputs
    assert weights.op == ops.Softmax(), "formulas share out rows"
    if maximum:
        maxima = Step(ops.Maxima(), (scores,), "maxima", scores.head)
        scores = Step(ops.Subtract(), (scores, maxima), "shifted", scores.head)
    exponentials = Step(ops.Exp(), (scores,), "exponentials", scores.head)
    sums = Step(ops.Sums(), (exponentials,), "sums", scores.head)
    return Step(ops.DivideBy(), (exponentials, sums), weights.role, weights.head)


def split(wide: Step, heads: ops.Size) -> list[Step]:
    """The blocks of columns; for a symbolic number of heads the i-th of them, typical of all."""
    if isinstance(heads, int):
        return [Step(ops.Split(part, heads), (wide,), wide.role, part) for part in range(heads)]
    return [Step(ops.Split(0, heads), (wide,), wide.role, "i")]


def checked(last: Step) -> Step:
    """A graph is checked when it is built: shapes that do not fit are an error here, not later."""
    shapes(last)
    return last
