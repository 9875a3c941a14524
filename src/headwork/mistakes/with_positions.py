"""Mistakes with what later models changed: the cache, positions, rotary positions, biases by distance, the softcap."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from headwork.graph import Last, Step
from headwork.mistakes.example import compare as compare
from headwork.mistakes.operations import LaterColumn, shapes
from headwork.mistakes.rewriting import Edit, masks, mistake, mistake_with_ways, relabelled
from headwork.ops import Add, Rotate, Softcap, Stack, Subtract

# The cache.


@mistake_with_ways("past-forgotten", "The cache looks left out: the new tokens read the earlier ones' keys and values.")
def past_forgotten(last: Last) -> Iterable[Edit]:
    """K and V of the new tokens alone.

    >>> past = dict(K_past=[[2]], V_past=[[5]])
    >>> compare("past-forgotten", "scores", Q=[[1]], K_new=[[3]], V_new=[[4]], **past)
    right [[2, 3]], mistaken [[3]]
    """
    yield lambda step: relabelled(step.inputs[1], step) if _has_past(step) else None


@mistake_with_ways("past-last", "The earlier keys look put after the new ones: they come first, as their tokens did.")
def past_last(last: Last) -> Iterable[Edit]:
    """[K_new; K_past] instead of [K_past; K_new], and V likewise, or one of them.

    >>> past = dict(K_past=[[2]], V_past=[[5]])
    >>> compare("past-last", "scores", Q=[[1]], K_new=[[3]], V_new=[[4]], **past)
    right [[2, 3]], mistaken [[3, 2]]
    """
    for roles in (("K", "V"), ("K",), ("V",)):
        yield partial(_turned_over, roles)


def _turned_over(roles: tuple[str, ...], step: Step) -> Step | None:
    return Step(step.op, step.inputs[::-1], step.role, step.head) if _has_past(step) and step.role in roles else None


def _has_past(step: Step) -> bool:
    return isinstance(step.op, Stack) and step.role in ("K", "V")


@mistake("causal-top-left", "The mask looks laid on at the top left: the last token reads the last key.")
def causal_top_left(step: Step) -> Step | None:
    """Token 1 reads key 1 alone, though earlier tokens have left keys before its own.

    >>> zero = [[0], [0], [0]]
    >>> compare("causal-top-left", "masked", Q=[[0], [0]], K=zero, V=zero, mask="causal")
    right [[0, 0, -inf], [0, 0, 0]], mistaken [[0, -inf, -inf], [0, 0, -inf]]
    """
    if not masks(step):
        return None
    scores, mask = step.inputs
    rows, columns = shapes(mask)[mask][-2:]
    if not isinstance(rows, int) or not isinstance(columns, int) or rows >= columns:
        return None
    moved = Step(LaterColumn(columns - rows), (mask,), "mask_moved", mask.head)
    return Step(step.op, (scores, moved), step.role, step.head)


# Positions.


@mistake("forgot-positions", "The positions look left out: they are added to X before it is projected.")
def forgot_positions(step: Step) -> Step | None:
    """X·W instead of (X + P)·W.

    >>> given = dict(X=[[1]], positions=[[2]], W_Q=[[1]], W_K=[[1]], W_V=[[1]])
    >>> compare("forgot-positions", "Q", "single_head", **given)
    right [[3]], mistaken [[1]]
    """
    added = step.role in ("X_positioned", "X_past_positioned")
    return relabelled(step.inputs[0], step) if added else None


@mistake("forgot-position-bias", "The bias by distance looks left out: it is added to the scores before the softmax.")
def forgot_position_bias(step: Step) -> Step | None:
    """softmax(scaled) instead of softmax(scaled + bias).

    >>> compare("forgot-position-bias", "biased", Q=[[0]], K=[[0], [0]], V=[[1], [1]], bias={"alibi": ["1/2"]})
    right [[-0.5, 0]], mistaken [[0, 0]]
    """
    return relabelled(step.inputs[0], step) if step.role == "biased" else None


@mistake("position-bias-sign", "The bias by distance looks taken off: it is added, and makes far keys count less.")
def position_bias_sign(step: Step) -> Step | None:
    """scaled − bias, as a slope without its minus leads to.

    >>> compare("position-bias-sign", "biased", Q=[[0]], K=[[0], [0]], V=[[1], [1]], bias={"alibi": ["1/2"]})
    right [[-0.5, 0]], mistaken [[0.5, 0]]
    """
    added = step.role == "biased" and isinstance(step.op, Add)
    return Step(Subtract(), step.inputs, step.role, step.head) if added else None


# Rotary positions.

_QUARTER = {"cos": [[1], [0]], "sin": [[0], [1]]}  # token 1 as it is, token 2 a quarter turn further


@mistake_with_ways("forgot-rotary", "Queries or keys look unturned: both are turned by their positions' angles.")
def forgot_rotary(last: Last) -> Iterable[Edit]:
    """Q and K as they were projected, or one of them.

    >>> Q = [[1, 2], [3, 4]]
    >>> compare("forgot-rotary", "Q_rotated", Q=Q, K=Q, V=Q, **_QUARTER)
    right [[1, 2], [-4, 3]], mistaken [[1, 2], [3, 4]]
    """
    for roles in _SIDES:
        yield partial(_unturned, roles)


_SIDES = (("Q_rotated", "K_rotated"), ("Q_rotated",), ("K_rotated",))


def _unturned(roles: tuple[str, ...], step: Step) -> Step | None:
    return relabelled(step.inputs[0], step) if isinstance(step.op, Rotate) and step.role in roles else None


@mistake_with_ways("rotary-backwards", "A turn looks made backwards: (a, b) becomes (a·cos − b·sin, a·sin + b·cos).")
def rotary_backwards(last: Last) -> Iterable[Edit]:
    """The sign of the sine changed, in Q and K or in one of them.

    >>> Q = [[1, 2], [3, 4]]
    >>> compare("rotary-backwards", "Q_rotated", Q=Q, K=Q, V=Q, **_QUARTER)
    right [[1, 2], [-4, 3]], mistaken [[1, 2], [4, -3]]
    """
    for roles in _SIDES:
        yield partial(_backwards, roles)


def _backwards(roles: tuple[str, ...], step: Step) -> Step | None:
    if not isinstance(step.op, Rotate) or step.role not in roles:
        return None
    return Step(replace(step.op, back=not step.op.back), step.inputs, step.role, step.head)


@mistake("rotary-pairs", "The columns look paired otherwise: this sheet says which two are turned together.")
def rotary_pairs(step: Step) -> Step | None:
    """Columns 1 and 3, 2 and 4 turned together instead of 1 and 2, 3 and 4; or the other way round.

    >>> Q, turn = [[1, 2, 3, 4]], dict(cos=[[0, 1]], sin=[[1, 0]])
    >>> compare("rotary-pairs", "Q_rotated", Q=Q, K=Q, V=Q, **turn)
    right [[-2, 1, 3, 4]], mistaken [[-3, 2, 1, 4]]
    """
    if not isinstance(step.op, Rotate) or shapes(step)[step][-1] == 2:  # of two columns there is one pair
        return None
    other = Rotate("halves" if step.op.pairs == "neighbours" else "neighbours", step.op.back)
    return Step(other, step.inputs, step.role, step.head)


# The softcap.


@mistake("forgot-softcap", "The softcap looks left out: the scaled scores s become c·tanh(s/c).")
def forgot_softcap(step: Step) -> Step | None:
    """softmax(scaled).

    >>> compare("forgot-softcap", "capped", Q=[[4]], K=[[1]], V=[[1]], softcap=2)
    right [[1.928]], mistaken [[4]]
    """
    return relabelled(step.inputs[0], step) if isinstance(step.op, Softcap) else None


@mistake("softcap-after-mask", "The softcap looks taken after the mask: −∞ becomes −c, and hidden keys are read.")
def softcap_after_mask(step: Step) -> Step | None:
    """c·tanh((scaled + mask)/c) instead of c·tanh(scaled/c) + mask.

    >>> see = [[True, False]]
    >>> compare("softcap-after-mask", "masked", Q=[[0]], K=[[1], [1]], V=[[1], [1]], mask=see, softcap=2)
    right [[0, -inf]], mistaken [[0, -2]]
    """
    if not masks(step) or not isinstance(step.inputs[0].op, Softcap):
        return None
    capped, mask = step.inputs
    first = Step(Add(), (capped.inputs[0], mask), "masked_first", step.head)
    return Step(capped.op, (first,), step.role, step.head)
