"""Mistakes within a head: the scale, the softmax, the mask, queries and keys."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Literal

from headwork.graph import Last, Step, in_order
from headwork.mistakes.example import compare as compare
from headwork.mistakes.operations import HideOthers, LaterRow, LessMaximum, Share, ZeroHidden, shapes
from headwork.mistakes.rewriting import Edit, in_all_or_one_head, masks, mistake, mistake_with_ways, relabelled
from headwork.ops import Divide, Exp, Given, Root, Size, Softmax, Sums, Transpose

# The scale.


@mistake("forgot-scale", "These look like raw scores: divide by √d_k before the softmax.")
def forgot_scale(step: Step) -> Step | None:
    """softmax(Q·Kᵀ)·V, and nothing to divide by on the way back either.

    >>> compare("forgot-scale", "scaled", Q=[[2, 0, 0, 2]], K=[[1, 0, 0, 1]], V=[[1]])
    right [[2]], mistaken [[4]]
    """
    divided = isinstance(step.op, Divide) and step.role in ("scaled", "d_scores")
    return relabelled(step.inputs[0], step) if divided else None


@mistake("scaled-by-d_k", "The scores look divided by d_k: divide by its square root.")
def scaled_by_d_k(step: Step) -> Step | None:
    """softmax(Q·Kᵀ/d_k)·V

    >>> compare("scaled-by-d_k", "scaled", Q=[[2, 0, 0, 2]], K=[[1, 0, 0, 1]], V=[[1]])
    right [[2]], mistaken [[1]]
    """
    if not isinstance(step.op, Divide) or not isinstance(step.op.by, Root) or not isinstance(step.op.by.of, int):
        return None
    return Step(Divide(Fraction(step.op.by.of)), step.inputs, step.role, step.head)


@mistake("scaled-by-sqrt-d_model", "The scores look divided by √d_model: it is √d_k, the width of one head.")
def scaled_by_sqrt_d_model(step: Step) -> Step | None:
    """softmax(Q·Kᵀ/√d_model)·V

    >>> I = [[1, 0], [0, 1], [0, 0], [0, 0]]
    >>> given = dict(X=[[1, 1, 0, 0]], W_Q=[I, I], W_K=[I, I], W_V=[I, I], W_O=[[1], [1], [1], [1]])
    >>> compare("scaled-by-sqrt-d_model", "scaled_1", "multi_head", **given)
    right [[1.414]], mistaken [[1]]
    """
    d_model = _d_model(step)
    return None if d_model is None else _divided_by_root(step, d_model, "d_model", ())


@mistake_with_ways("scaled-by-sqrt-tokens", "The scores look divided by √tokens: it is √d_k, the width of one head.")
def scaled_by_sqrt_tokens(last: Last) -> Iterable[Edit]:
    """softmax(Q·Kᵀ/√tokens)·V, or √keys; where that is no other mistake's number.

    >>> compare("scaled-by-sqrt-tokens", "scaled", Q=[[2, 2], [1, 1], [0, 0]], K=[[1, 1]], V=[[1]])
    right [[2.828], [1.414], [0]], mistaken [[2.309], [1.155], [0]]
    """
    for axis, name in ((-2, "tokens"), (-1, "keys")):

        def edit(step: Step, axis: int = axis, name: str = name) -> Step | None:
            shape = shapes(step)[step]
            return _divided_by_root(step, shape[axis], name, (_d_model(step), *(shape[-2:-1] if axis == -1 else ())))

        yield edit


@mistake_with_ways("scaled-by-sqrt-d_v", "The scores look divided by √d_v: it is √d_k, the width of the keys.")
def scaled_by_sqrt_d_v(last: Last) -> Iterable[Edit]:
    """softmax(Q·Kᵀ/√d_v)·V, where that is no other mistake's number.

    >>> compare("scaled-by-sqrt-d_v", "scaled", Q=[[2, 2]], K=[[1, 1]], V=[[1, 2, 3]])
    right [[2.828]], mistaken [[2.309]]
    """
    d_v = {step.head: shapes(step)[step][-1] for step in in_order(last) if step.role == "head_output"}

    def edit(step: Step) -> Step | None:
        return _divided_by_root(step, d_v.get(step.head), "d_v", (_d_model(step), *shapes(step)[step][-2:]))

    yield edit


def _divided_by_root(step: Step, size: Size, name: str, others: Sequence[Size]) -> Step | None:
    """The scale made √size, unless the size is d_k, one of the others, or such that its root is: 1 or d_k²."""
    if not isinstance(step.op, Divide) or not isinstance(step.op.by, Root) or not isinstance(size, int):
        return None
    d_k = step.op.by.of
    if size == d_k or (name != "d_model" and size in (1, d_k * d_k, *others)):
        return None
    return Step(Divide(Root(size, name)), step.inputs, step.role, step.head)


def _d_model(step: Step) -> Size:
    return next((s.op.shape[-1] for s in in_order(step) if s.role == "X" and isinstance(s.op, Given)), None)


# The softmax.


@mistake("softmax-columns", "Here the columns look normalised: every row of the weights sums to 1.")
def softmax_columns(step: Step) -> Step | None:
    """The softmax runs down the queries instead of along the keys.

    >>> compare("softmax-columns", "weights", Q=[[0], [1]], K=[[0], [2]], V=[[1], [1]])
    right [[0.5, 0.5], [0.1192, 0.8808]], mistaken [[0.5, 0.1192], [0.5, 0.8808]]
    """
    if isinstance(step.op, Sums) and step.role == "sums":  # a softmax in steps
        return Step(Sums(axis=-2), step.inputs, step.role, step.head)
    return Step(Softmax(axis=-2), step.inputs, step.role, step.head) if isinstance(step.op, Softmax) else None


@mistake("softmax-everything", "Here the whole matrix looks normalised at once: every row of the weights sums to 1.")
def softmax_everything(step: Step) -> Step | None:
    """One sum for the whole matrix instead of one for every row.

    >>> compare("softmax-everything", "weights", Q=[[0], [0]], K=[[1], [2]], V=[[1], [1]])
    right [[0.5, 0.5], [0.5, 0.5]], mistaken [[0.25, 0.25], [0.25, 0.25]]
    """
    if isinstance(step.op, Sums) and step.role == "sums":
        by_row = Step(Sums(), step.inputs, "row_sums", step.head)
        return Step(Sums(axis=-2), (by_row,), step.role, step.head)
    return Step(Softmax(axis=None), step.inputs, step.role, step.head) if isinstance(step.op, Softmax) else None


@mistake(
    "no-exponential", "The scores look shared out as they are: the softmax takes e to the power of each one first."
)
def no_exponential(step: Step) -> Step | None:
    """s/Σs instead of eˢ/Σeˢ.

    >>> compare("no-exponential", "weights", Q=[[1]], K=[[1], [3]], V=[[1], [1]])
    right [[0.1192, 0.8808]], mistaken [[0.25, 0.75]]
    """
    if isinstance(step.op, Exp):
        return relabelled(step.inputs[0], step)
    if not isinstance(step.op, Softmax):
        return None
    return Step(Share(step.op.axis), step.inputs, step.role, step.head)


@mistake_with_ways("maximum-of-wrong-axis", "A maximum looks taken along the wrong axis: take each row's own off it.")
def maximum_of_wrong_axis(last: Last) -> Iterable[Edit]:
    """softmax(s − max s), which changes nothing with a row's own maximum, with the column's; or with the maximum of
    row i taken off column i, as an axis that was not kept does.

    >>> compare("maximum-of-wrong-axis", "weights", Q=[[0], [1], [0]], K=[[0], [2]], V=[[1], [1]])
    right [[0.5, 0.5], [0.1192, 0.8808], [0.5, 0.5]], mistaken [[0.8808, 0.1192], [0.5, 0.5], [0.8808, 0.1192]]
    """
    lines: tuple[Literal["columns", "rows"], ...] = ("columns", "rows")
    for of in lines:

        def edit(step: Step, of: Literal["columns", "rows"] = of) -> Step | None:
            if step.op != Softmax(-1) or shapes(step)[step][-2] < 3:  # of two tokens it is what q-k-swapped predicts
                return None
            less = Step(LessMaximum(of), step.inputs, "less_maximum", step.head)
            return Step(step.op, (less,), step.role, step.head)

        yield edit


# The mask.


@mistake("mask-after-softmax", "Hidden weights look set to 0 after the softmax: mask before it, so that rows sum to 1.")
def mask_after_softmax(step: Step) -> Step | None:
    """Zeros put in after the softmax: the rows no longer sum to 1.

    >>> see = [[True, False], [True, True]]
    >>> compare("mask-after-softmax", "weights", Q=[[0], [0]], K=[[0], [0]], V=[[1], [1]], mask=see)
    right [[1, 0], [0.5, 0.5]], mistaken [[0.5, 0], [0.5, 0.5]]
    """
    if not isinstance(step.op, Softmax | Share) or not masks(step.inputs[0]):
        return None
    scores, mask = step.inputs[0].inputs
    before = Step(step.op, (scores,), "weights_before_mask", step.head)
    return Step(ZeroHidden(), (before, mask), step.role, step.head)


@mistake("mask-flipped", "The mask looks upside down: row i is token i, and hides the keys after it.")
def mask_flipped(step: Step) -> Step | None:
    """maskᵀ: rows taken for columns.

    >>> see = [[True, False], [True, True]]
    >>> compare("mask-flipped", "weights", Q=[[0], [0]], K=[[0], [0]], V=[[1], [1]], mask=see)
    right [[1, 0], [0.5, 0.5]], mistaken [[0.5, 0.5], [0, 1]]
    """
    if not masks(step):
        return None
    scores, mask = step.inputs
    rows, columns = shapes(mask)[mask][-2:]
    if rows != columns:
        return None
    return Step(step.op, (scores, Step(Transpose(), (mask,), "mask_flipped")), step.role, step.head)


@mistake("mask-inverted", "The mask looks inverted: here what may be read is hidden, and what is hidden is read.")
def mask_inverted(step: Step) -> Step | None:
    """True taken for "hidden".

    >>> see = [[True, False], [False, True]]
    >>> compare("mask-inverted", "weights", Q=[[0], [0]], K=[[0], [0]], V=[[1], [1]], mask=see)
    right [[1, 0], [0, 1]], mistaken [[0, 1], [1, 0]]
    """
    return Step(HideOthers(), step.inputs, step.role, step.head) if masks(step) else None


@mistake_with_ways("mask-off-by-one", "The mask looks one token off: token i reads itself and all before it.")
def mask_off_by_one(last: Last) -> Iterable[Edit]:
    """Token i reads as far as token i + 1, or only what is before itself.

    >>> zero = [[0], [0], [0]]
    >>> compare("mask-off-by-one", "masked", Q=zero, K=zero, V=zero, mask="causal")
    right [[0, -inf, -inf], [0, 0, -inf], [0, 0, 0]], mistaken [[0, 0, -inf], [0, 0, 0], [0, 0, 0]]
    """
    for by in (1, -1):

        def edit(step: Step, by: int = by) -> Step | None:
            if not masks(step):
                return None
            scores, mask = step.inputs
            rows, columns = shapes(mask)[mask][-2:]
            if rows != columns or rows < 3:  # of two tokens the first would read everything: forgot-mask
                return None
            return Step(step.op, (scores, Step(LaterRow(by), (mask,), "mask_moved")), step.role, step.head)

        yield edit


@mistake("mask-too-weak", "Hidden scores look set to 0 or to a small number: only −∞ leaves them no weight.")
def mask_too_weak(step: Step) -> Step | None:
    """A 0 for the hidden scores, of which the softmax makes e⁰ = 1.

    >>> see = [[True, False], [True, True]]
    >>> compare("mask-too-weak", "weights", Q=[[1], [1]], K=[[0], [2]], V=[[1], [1]], mask=see)
    right [[1, 0], [0.1192, 0.8808]], mistaken [[0.5, 0.5], [0.1192, 0.8808]]
    """
    return Step(ZeroHidden(), step.inputs, step.role, step.head) if masks(step) else None


@mistake("forgot-mask", "The mask looks left out: hidden keys must get no weight.")
def forgot_mask(step: Step) -> Step | None:
    """softmax(Q·Kᵀ/√d_k)·V where there is a mask.

    >>> see = [[True, False], [True, True]]
    >>> compare("forgot-mask", "weights", Q=[[0], [0]], K=[[0], [0]], V=[[1], [1]], mask=see)
    right [[1, 0], [0.5, 0.5]], mistaken [[0.5, 0.5], [0.5, 0.5]]
    """
    return relabelled(step.inputs[0], step) if masks(step) else None


# Queries and keys.


@mistake("k-not-transposed", "This looks like Q·K: every query meets every key in Q·Kᵀ, rows with rows.")
def k_not_transposed(step: Step) -> Step | None:
    """Q·K instead of Q·Kᵀ.

    >>> compare("k-not-transposed", "scores", Q=[[1, 0], [0, 1]], K=[[1, 2], [3, 4]], V=[[1], [1]])
    right [[1, 3], [2, 4]], mistaken [[1, 2], [3, 4]]
    """
    if step.role != "scores" or not isinstance(step.inputs[1].op, Transpose):
        return None
    Q, (K,) = step.inputs[0], step.inputs[1].inputs
    rows, columns = shapes(K)[K][-2:]
    return Step(step.op, (Q, K), step.role, step.head) if rows == columns else None


@mistake_with_ways("q-k-swapped", "Queries and keys look exchanged: row i of the scores belongs to query i.")
def q_k_swapped(last: Last) -> Iterable[Edit]:
    """K·Qᵀ instead of Q·Kᵀ; or W_Q and W_K taken for each other.

    >>> compare("q-k-swapped", "scores", Q=[[1, 0], [0, 1]], K=[[1, 2], [3, 4]], V=[[1], [1]])
    right [[1, 3], [2, 4]], mistaken [[1, 2], [3, 4]]
    """

    def exchanged(step: Step) -> Step | None:
        if step.role != "scores" or not isinstance(step.inputs[1].op, Transpose):
            return None
        Q, (K,) = step.inputs[0], step.inputs[1].inputs
        if shapes(step)[Q][-2] != shapes(step)[K][-2]:
            return None
        return Step(step.op, (K, Step(Transpose(), (Q,), "Q_transposed", Q.head)), step.role, step.head)

    yield from in_all_or_one_head(exchanged, last)
    swap = _exchange(last, ("W_Q", "W_K"), ("b_Q", "b_K"))
    if swap:
        yield swap.get


def _exchange(last: Last, *pairs: tuple[str, str]) -> Mapping[Step, Step]:
    """Each given matrix of one role for the other's, head by head; nothing where they do not match."""
    given = {(s.role, s.head): s for s in in_order(last) if isinstance(s.op, Given)}
    swap: dict[Step, Step] = {}
    for one, other in pairs:
        for (role, head), step in given.items():
            if role in (one, other):
                partner = given.get((other if role == one else one, head))
                if partner is None or partner.op != step.op:
                    return {}
                swap[step] = partner
    return swap
