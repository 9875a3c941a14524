"""Mistakes on the way back: transposes, the softmax's row term, the scale, and sums that are left out."""

from collections.abc import Iterable
from functools import partial

from headwork.graph import Last, Step, in_order
from headwork.mistakes.example import compare as compare
from headwork.mistakes.operations import shapes
from headwork.mistakes.rewriting import Edit, all_or_each, mistake, mistake_with_ways, relabelled
from headwork.ops import Add, Divide, MatMul, Rows, Subtract, Sums, Transpose


@mistake_with_ways(
    "gradient-not-transposed", "A transpose looks left out: of C = A·B the gradients are dC·Bᵀ and Aᵀ·dC."
)
def gradient_not_transposed(last: Last) -> Iterable[Edit]:
    """dC·B instead of dC·Bᵀ, or A·dC instead of Aᵀ·dC, wherever a gradient is made in that way, or all parts of one.

    >>> given = dict(X=[[1, 2], [3, 4]], W_Q=[[1, 0], [0, 1]], W_K=[[1, 0], [0, 1]], W_V=[[1, 1], [0, 1]])
    >>> compare("gradient-not-transposed", "d_V", "single_head", **given)
    right [[0.01422, 0.01422], [1.986, 1.986]], mistaken [[1, 1], [1, 1]]
    """
    turned = [s for s in in_order(last) if s.role.startswith("d_") and isinstance(s.op, MatMul) and _turned(s)]
    roles = [*dict.fromkeys(s.role for s in turned)]
    parts = [[r for r in roles if r.startswith(f"{of}_from_")] for of in dict.fromkeys(map(_part_of, roles))]
    return (partial(_unturned, wrong) for wrong in (*all_or_each(roles), *(p for p in parts if len(p) > 1)))


def _part_of(role: str) -> str:
    """d_X of d_X_from_Q."""
    return role.partition("_from_")[0]


def _turned(step: Step) -> bool:
    return any(isinstance(source.op, Transpose) for source in step.inputs)


def _unturned(roles: list[str], step: Step) -> Step | None:
    if step.role not in roles or not isinstance(step.op, MatMul) or not _turned(step):
        return None
    inputs = tuple(s.inputs[0] if isinstance(s.op, Transpose) else s for s in step.inputs)
    shape = shapes(inputs)
    left, right = (shape[s] for s in inputs)
    before = shapes(step)[step]
    same = left[-1] == right[-2] and (left[-2], right[-1]) == before[-2:]
    return Step(MatMul(), inputs, step.role, step.head) if same else None


# The softmax.


@mistake(
    "row-term-forgotten",
    "The softmax's row term looks forgotten: from dP take the row sums of P∘dP, then multiply by P.",
)
def row_term_forgotten(step: Step) -> Step | None:
    """P∘dP instead of P∘(dP − D).

    >>> compare("row-term-forgotten", "d_Q", Q=[[0]], K=[[0], [1]], V=[[1], [3]])
    right [[0.5]], mistaken [[1.5]]
    """
    return relabelled(step.inputs[0], step) if _centres(step) else None


def _centres(step: Step) -> bool:
    return isinstance(step.op, Subtract) and step.role == "centred"


@mistake(
    "jacobian-diagonal",
    "The softmax's Jacobian looks taken for its diagonal: every score of a row moves all its weights.",
)
def jacobian_diagonal(step: Step) -> Step | None:
    """P∘(1 − P)∘dP instead of P∘(dP − D).

    >>> compare("jacobian-diagonal", "d_Q", Q=[[0]], K=[[0], [1]], V=[[1], [3]])
    right [[0.5]], mistaken [[0.75]]
    """
    if not _centres(step) or not isinstance(step.inputs[1].op, Sums):
        return None
    own = step.inputs[1].inputs[0]  # P∘dP, not summed over the row
    return Step(Subtract(), (step.inputs[0], own), step.role, step.head)


# The scale.


@mistake(
    "backward-scale-forgotten", "On the way back √d_k looks forgotten: what divides the scores divides their gradient."
)
def backward_scale_forgotten(step: Step) -> Step | None:
    """d_scores = d_scaled.

    >>> compare("backward-scale-forgotten", "d_Q", Q=[[0, 0, 0, 0]], K=[[0] * 4, [1] * 4], V=[[1], [3]])
    right [[0.25, 0.25, 0.25, 0.25]], mistaken [[0.5, 0.5, 0.5, 0.5]]
    """
    return relabelled(step.inputs[0], step) if _divides_gradient(step) else None


@mistake("backward-scale-twice", "On the way back √d_k looks divided by twice: once is enough.")
def backward_scale_twice(step: Step) -> Step | None:
    """d_scores = d_scaled/d_k.

    >>> compare("backward-scale-twice", "d_Q", Q=[[0, 0, 0, 0]], K=[[0] * 4, [1] * 4], V=[[1], [3]])
    right [[0.25, 0.25, 0.25, 0.25]], mistaken [[0.125, 0.125, 0.125, 0.125]]
    """
    if not _divides_gradient(step):
        return None
    once = Step(step.op, step.inputs, "d_scores_once", step.head)
    return Step(step.op, (once,), step.role, step.head)


def _divides_gradient(step: Step) -> bool:
    return isinstance(step.op, Divide) and step.role == "d_scores"


# Sums.


@mistake_with_ways(
    "gradients-not-summed", "Part of a sum looks left out: what several steps read gets a gradient from each of them."
)
def gradients_not_summed(last: Last) -> Iterable[Edit]:
    """dX of one head or of the queries alone, or without those …; the gradient of shared keys from one head alone.

    >>> given = dict(X=[[1]], W_Q=[[[1]], [[1]]], W_K=[[[1]], [[1]]], W_V=[[[2]], [[3]]], W_O=[[1], [1]])
    >>> compare("gradients-not-summed", "d_X", "multi_head", **given)
    right [[5]], mistaken [[2]]
    """
    for step in in_order(last):
        if isinstance(step.op, Add) and step.role.startswith("d_"):
            for kept in _groups(step):
                yield partial(_only, (step.role, step.head), kept)


def _groups(total: Step) -> list[list[int]]:
    """Which terms somebody may stop at: those of one head or that came one way, or all but those."""
    numbers = range(len(total.inputs))
    heads = dict.fromkeys(s.head for s in total.inputs if s.head is not None)
    ways = dict.fromkeys(s.role for s in total.inputs)
    groups = [[i for i in numbers if total.inputs[i].head == head] for head in heads]
    groups += [[i for i in numbers if total.inputs[i].role == way] for way in ways]
    groups += [[i for i in numbers if i not in left_out] for left_out in groups]
    different: list[list[int]] = []
    for group in groups:
        if 0 < len(group) < len(numbers) and group not in different:
            different.append(group)
    return different


def _only(which: tuple[str, object], kept: list[int], step: Step) -> Step | None:
    if (step.role, step.head) != which or not isinstance(step.op, Add) or len(step.inputs) <= max(kept):
        return None
    terms = tuple(step.inputs[i] for i in kept)
    return relabelled(terms[0], step) if len(terms) == 1 else Step(Add(), terms, step.role, step.head)


@mistake_with_ways(
    "bias-gradient-not-summed",
    "A bias is added to every row, so its gradient is the sum over the rows: it looks left out.",
)
def bias_gradient_not_summed(last: Last) -> Iterable[Edit]:
    """db = dQ, all rows of it or the first alone, instead of the sum of its rows.

    >>> given = dict(X=[[1], [2]], W_Q=[[1]], W_K=[[1]], W_V=[[1]], b_V=[0])
    >>> compare("bias-gradient-not-summed", "d_b_V", "single_head", **given)
    right [[2]], mistaken [[0.3881], [1.612]]
    """
    yield lambda step: relabelled(step.inputs[0], step) if _sums_a_bias(step) else None
    yield lambda step: Step(Rows(0, 1), step.inputs, step.role, step.head) if _sums_a_bias(step) else None


def _sums_a_bias(step: Step) -> bool:
    return step.op == Sums(-2) and step.role.startswith("d_b_")
