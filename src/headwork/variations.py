"""What later models changed about attention: each a rewrite of the graph, not another formula.

with_past        K = [K_past; K_new], and V likewise: a cache of the keys and values so far
with_positions   X + P in place of X
rotated          Q and K with every pair of columns turned by its position's angle
rescored         between the scale and the softmax: c·tanh(s/c), then + bias, then + mask
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from headwork import ops
from headwork.errors import HeadworkError
from headwork.formulas import checked, given
from headwork.graph import Head, KeyBlock, Step, in_order, rewrite
from headwork.numbers.surd import Real
from headwork.readings.shapes import shapes

Pairs = Literal["neighbours", "halves"]  # column 1 with 2, or with the first of the second half
Terms = Mapping[Head, Step]  # what is added to the scores of every head


@dataclass(frozen=True)
class Variations:
    """What is changed, in the order in which it is worked."""

    past: Literal["", "K_past", "X_past"] = ""  # keys and values of earlier tokens are given, or made of X_past
    positions: bool = False
    rotary: Pairs | None = None
    softcap: Real | None = None
    slopes: tuple[Real, ...] = ()  # ALiBi: what every head's distances are multiplied by
    bias: Literal["", "one", "each"] = ""  # given once, or for every head
    mask: Literal["", "one", "each"] = ""


PLAIN = Variations()


def varied(last: Step, how: Variations, past: ops.Size = 0) -> Step:
    """The formula as it is changed, with what that takes given; `past` is the number of earlier tokens."""
    if how.past:
        last = with_past(last, past, from_X=how.past == "X_past")
    if how.positions:
        last = with_positions(last)
    if how.rotary:
        last = rotated(last, how.rotary)
    bias = _sloped(last, how.slopes) if how.slopes else _terms("bias", how.bias, last)
    return checked(rescored(last, softcap=how.softcap, bias=bias, mask=_terms("mask", how.mask, last)))


def with_past(last: Step, past: ops.Size, *, from_X: bool = False) -> Step:
    """The keys and values of earlier tokens above those of the new ones, which alone have queries.

    `from_X` works the earlier ones out too, of X_past as the new ones of X: what a cache saves.
    """
    shape = shapes(last)
    X = next((step for step in shape if step.role == "X"), None)
    if from_X and X is None:
        raise HeadworkError("X_past is given, but this formula takes no X; give K_past and V_past")
    whole = [step for step in shape if step.role in ("K", "V") and not isinstance(step.op, ops.Split | ops.Rows)]
    if from_X and X:
        X_past = given("X_past", _with_rows(shape[X], past))
        # All at once: what they share, a norm of X_past, is worked once.
        made = rewrite(tuple(whole), lambda s: X_past if s is X else _made_earlier(s))
    else:
        made = tuple(given(f"{step.role}_past", _with_rows(shape[step], past), step.head) for step in whole)
    before = dict(zip(whole, made, strict=True))

    def edit(step: Step) -> Step | None:
        earlier = before.get(step)
        if earlier is None:
            return None
        if isinstance(step.op, ops.Given):  # of all keys: the new ones are what the earlier ones leave
            new = given(f"{step.role}_new", _with_rows(shape[step], shape[step][-2] - past), step.head)
        else:
            new = Step(step.op, step.inputs, f"{step.role}_new", step.head)
        return Step(ops.Stack(), (earlier, new), step.role, step.head)

    return rewrite(last, edit)


def _with_rows(shape: ops.Shape, rows: ops.Size) -> ops.Shape:
    return (*shape[:-2], rows, shape[-1])


def _made_earlier(step: Step) -> Step | None:
    """K_past of X_past, K_past_before_bias, normed_past_1: under a name of its own what earlier tokens make."""
    if not any("_past" in source.role for source in step.inputs):
        return None
    name, number = step.role.removesuffix("_1"), "_1" if step.role.endswith("_1") else ""
    letter, bias = name.removesuffix("_before_bias"), "_before_bias" if name.endswith("_before_bias") else ""
    return Step(step.op, step.inputs, f"{letter}_past{bias}{number}", step.head)


def with_positions(last: Step) -> Step:
    """X_positioned = X + P wherever X was read; X_past is the first of the same sequence and gets P's first rows."""
    shape = shapes(last)
    read = {step.role: step for step in shape if step.role in ("X_past", "X") and isinstance(step.op, ops.Given)}
    tokens, width = shape[read["X"]][-2:]
    past = shape[read["X_past"]][-2] if "X_past" in read else 0
    P = given("positions", (past + tokens, width))
    added = {"X": P}
    if "X_past" in read:
        added = {
            "X_past": Step(ops.Rows(0, past), (P,), "positions_past"),
            "X": Step(ops.Rows(past, past + tokens), (P,), "positions_new"),
        }
    sums = {read[role]: Step(ops.Add(), (read[role], rows), f"{role}_positioned") for role, rows in added.items()}
    return rewrite(last, sums.get)


def rotated(last: Step, pairs: Pairs) -> Step:
    """The scores of Q_rotated and K_rotated. Queries have the last of the positions that the keys have."""
    shape = shapes(last)
    turned: dict[Step, None] = {}
    for step in shape:
        if step.role == "scores":
            (Q, (K,)) = step.inputs[0], step.inputs[1].inputs
            turned |= {Q: None, _whole(K): None}
    tokens, width = shape[Q][-2:]
    keys = shape[_whole(K)][-2]
    if isinstance(width, int) and width % 2:
        raise HeadworkError(f"rotary positions turn columns in pairs, but d_k is {width}; give it an even number")
    half = width // 2 if isinstance(width, int) else width / 2
    tables = [given(role, (keys, half)) for role in ("cos", "sin")]
    of = {"K": tables, "Q": tables}
    if tokens != keys:
        of["Q"] = [Step(ops.Rows(keys - tokens, keys), (table,), f"{table.role}_Q") for table in tables]
    made = {s: Step(ops.Rotate(pairs), (s, *of[s.role]), f"{s.role}_rotated", s.head) for s in turned}
    return rewrite(last, made.get)


def _whole(keys: Step) -> Step:
    """All keys, where these are a block of them."""
    return keys.inputs[0] if isinstance(keys.op, ops.Rows) else keys


def rescored(last: Step, *, softcap: Real | None, bias: Terms, mask: Terms) -> Step:
    """What is done to the scores, scaled where they are, before the softmax."""
    role = "scaled" if any(step.role == "scaled" for step in in_order(last)) else "scores"

    def edit(step: Step) -> Step | None:
        if step.role != role:
            return None
        if softcap is not None:
            step = Step(ops.Softcap(softcap), (step,), "capped", step.head)
        for name, terms in (("biased", bias), ("masked", mask)):
            if terms:
                step = Step(ops.Add(), (step, terms[step.head]), name, step.head)
        return step

    return rewrite(last, edit)


def _terms(role: str, how: Literal["", "one", "each"], last: Step) -> dict[Head, Step]:
    """A matrix for all heads, or one for each of them; for every block of keys its own columns in any case."""
    if not how:
        return {}
    shape = shapes(last)
    scores = [step for step in shape if step.role == "scores"]
    shared = given(role, shape[scores[0]][-2:])
    return {
        step.head: given(role, shape[step][-2:], step.head)
        if how == "each" or isinstance(step.head, KeyBlock)
        else shared
        for step in scores
    }


def _sloped(last: Step, slopes: tuple[Real, ...]) -> dict[Head, Step]:
    """ALiBi: −slope·distance for every head."""
    bias = {}
    for head, distance in _terms("distance", "one", last).items():
        own = slopes[head] if isinstance(head, int) and not isinstance(head, KeyBlock) else slopes[0]
        slope = Step(ops.Constant((1, 1), -own), (), "slope", head)
        bias[head] = Step(ops.Multiply(), (distance, slope), "bias", head)
    return bias
