"""The catalogue of mistakes. Each is a rewrite of the graph with a stable tag and a line of advice.

The same catalogue marks a student's matrix and inspects a function: which rewrite predicts these numbers? The
examples below are run as tests; `compare` puts the right matrix beside the mistaken one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations

from headwork.errors import ShapeError
from headwork.graph import Step, in_order, rewrite
from headwork.mistakes.example import compare as compare
from headwork.mistakes.operations import HideOthers, Share, ZeroHidden, shapes
from headwork.mistakes.pieces import add_up, is_projection, relabelled, row_block, side_by_side, stack
from headwork.ops import Add, Divide, Given, Join, MatMul, Root, Softmax, Split, Transpose

Edit = Callable[[Step], Step | None]
Ways = Callable[[Step], Iterable[Edit]]


@dataclass(frozen=True)
class Mistake:
    """A named rewrite. `ways` gives, for a graph, every way of making it: in all heads, in one head, in one matrix."""

    tag: str
    advice: str
    ways: Ways
    per_head: bool = False  # whether the ways after the first are the same edit in one head

    def made_in(self, last: Step) -> list[Step]:
        """The graphs with the mistake in them, one for every way; none where the graph gives no occasion for it."""
        return [graph for edit in self.ways(last) if (graph := edited(last, edit)) is not None]

    def made_everywhere(self, last: Step) -> list[Step]:
        """The same without the ways that go wrong in one head only."""
        ways = list(self.ways(last))
        chosen = ways[:1] if self.per_head else ways
        return [graph for edit in chosen if (graph := edited(last, edit)) is not None]


def edited(last: Step, edit: Edit) -> Step | None:
    """The rewritten graph; None where nothing changes, or where nothing fits together any more."""
    try:
        graph = rewrite(last, edit)
    except ShapeError:
        return None
    return None if graph is last else graph


CATALOGUE: dict[str, Mistake] = {}


def mistake(tag: str, advice: str) -> Callable[[Edit], Edit]:
    """Enter an edit that can be made in every head, or in one of them."""

    def enter(edit: Edit) -> Edit:
        CATALOGUE[tag] = Mistake(tag, advice, lambda last: _in_all_or_one_head(edit, last), True)
        return edit

    return enter


def mistake_with_ways(tag: str, advice: str) -> Callable[[Ways], Ways]:
    """Enter a mistake whose edits depend on the whole graph."""

    def enter(ways: Ways) -> Ways:
        CATALOGUE[tag] = Mistake(tag, advice, ways)
        return ways

    return enter


def _in_all_or_one_head(edit: Edit, last: Step) -> list[Edit]:
    heads = sorted({step.head for step in in_order(last) if step.role == "scores" and isinstance(step.head, int)})
    one = [lambda step, head=head: edit(step) if step.head == head else None for head in heads]
    return [edit, *one] if len(heads) > 1 else [edit]


# The scale.


@mistake("forgot-scale", "These look like raw scores: divide by √d_k before the softmax.")
def forgot_scale(step: Step) -> Step | None:
    """softmax(Q·Kᵀ)·V

    >>> compare("forgot-scale", "scaled", Q=[[2, 0, 0, 2]], K=[[1, 0, 0, 1]], V=[[1]])
    right [[2]], mistaken [[4]]
    """
    return relabelled(step.inputs[0], step) if isinstance(step.op, Divide) else None


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
    if not isinstance(step.op, Divide) or not isinstance(step.op.by, Root):
        return None
    d_model = next((s.op.shape[-1] for s in in_order(step) if s.role == "X" and isinstance(s.op, Given)), None)
    if not isinstance(d_model, int) or d_model == step.op.by.of:
        return None
    return Step(Divide(Root(d_model, "d_model")), step.inputs, step.role, step.head)


# The softmax.


@mistake("softmax-columns", "Here the columns look normalised: every row of the weights sums to 1.")
def softmax_columns(step: Step) -> Step | None:
    """The softmax runs down the queries instead of along the keys.

    >>> compare("softmax-columns", "weights", Q=[[0], [1]], K=[[0], [2]], V=[[1], [1]])
    right [[0.5, 0.5], [0.1192, 0.8808]], mistaken [[0.5, 0.1192], [0.5, 0.8808]]
    """
    return Step(Softmax(axis=-2), step.inputs, step.role, step.head) if isinstance(step.op, Softmax) else None


@mistake("softmax-everything", "Here the whole matrix looks normalised at once: every row of the weights sums to 1.")
def softmax_everything(step: Step) -> Step | None:
    """One sum for the whole matrix instead of one for every row.

    >>> compare("softmax-everything", "weights", Q=[[0], [0]], K=[[1], [2]], V=[[1], [1]])
    right [[0.5, 0.5], [0.5, 0.5]], mistaken [[0.25, 0.25], [0.25, 0.25]]
    """
    return Step(Softmax(axis=None), step.inputs, step.role, step.head) if isinstance(step.op, Softmax) else None


@mistake(
    "no-exponential", "The scores look shared out as they are: the softmax takes e to the power of each one first."
)
def no_exponential(step: Step) -> Step | None:
    """s/Σs instead of eˢ/Σeˢ.

    >>> compare("no-exponential", "weights", Q=[[1]], K=[[1], [3]], V=[[1], [1]])
    right [[0.1192, 0.8808]], mistaken [[0.25, 0.75]]
    """
    if not isinstance(step.op, Softmax):
        return None
    return Step(Share(step.op.axis), step.inputs, step.role, step.head)


# The mask.


@mistake("mask-after-softmax", "Hidden weights look set to 0 after the softmax: mask before it, so that rows sum to 1.")
def mask_after_softmax(step: Step) -> Step | None:
    """Zeros put in after the softmax: the rows no longer sum to 1.

    >>> see = [[True, False], [True, True]]
    >>> compare("mask-after-softmax", "weights", Q=[[0], [0]], K=[[0], [0]], V=[[1], [1]], mask=see)
    right [[1, 0], [0.5, 0.5]], mistaken [[0.5, 0], [0.5, 0.5]]
    """
    if not isinstance(step.op, Softmax | Share) or step.inputs[0].role != "masked":
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
    if step.role != "masked":
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
    return Step(HideOthers(), step.inputs, step.role, step.head) if step.role == "masked" else None


# Queries, keys and projections.


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
def q_k_swapped(last: Step) -> Iterable[Edit]:
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

    yield from _in_all_or_one_head(exchanged, last)
    swap = _exchange(last, ("W_Q", "W_K"), ("b_Q", "b_K"))
    if swap:
        yield swap.get


def _exchange(last: Step, *pairs: tuple[str, str]) -> Mapping[Step, Step]:
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


@mistake_with_ways("projection-transposed", "A projection looks transposed: with tokens as rows it is X·W, not X·Wᵀ.")
def projection_transposed(last: Step) -> Iterable[Edit]:
    """X·Wᵀ instead of X·W, in all of W_Q, W_K, W_V or in one projection.

    >>> given = dict(X=[[1, 0]], W_Q=[[1, 2], [3, 4]], W_K=[[1, 0], [0, 1]], W_V=[[1, 0], [0, 1]])
    >>> compare("projection-transposed", "Q", "single_head", **given)
    right [[1, 2]], mistaken [[1, 3]]
    """
    for roles in (("W_Q", "W_K", "W_V"), ("W_Q",), ("W_K",), ("W_V",), ("W_O",)):

        def edit(step: Step, roles: tuple[str, ...] = roles) -> Step | None:
            if not is_projection(step) or step.inputs[1].role not in roles:
                return None
            W = step.inputs[1]
            rows, columns = shapes(W)[W]
            if rows != columns:
                return None
            turned = Step(Transpose(), (W,), f"{W.role}_transposed", W.head)
            return Step(step.op, (step.inputs[0], turned), step.role, step.head)

        yield edit


# Heads.


@mistake("heads-strided", "The heads look dealt out column by column: a head is a block of neighbouring columns.")
def heads_strided(step: Step) -> Step | None:
    """Head i takes columns i, i + heads, i + 2·heads … instead of a block.

    >>> eye = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    >>> given = dict(X=[[1, 2, 3, 4]], W_Q=eye, W_K=eye, W_V=eye, W_O=eye)
    >>> compare("heads-strided", "Q_1", "multi_head_blocks", heads=2, **given)
    right [[1, 2]], mistaken [[1, 3]]
    """
    if not isinstance(step.op, Split) or not isinstance(step.op.of, int):
        return None
    (wide,) = step.inputs
    columns = shapes(wide)[wide][-1]
    if not isinstance(columns, int):
        return None
    chosen = range(step.op.part, columns, step.op.of)
    pieces = [Step(Split(column, columns), (wide,), "column", step.head) for column in chosen]
    return Step(Join(), tuple(pieces), step.role, step.head)


@mistake_with_ways("heads-reordered", "The heads look joined in another order: head 1 first, then head 2 …")
def heads_reordered(last: Step) -> Iterable[Edit]:
    """[head_2 | head_1] instead of [head_1 | head_2]: any two exchanged, or all reversed.

    >>> given = dict(head_output=[[[1, 2]], [[3, 4]]], heads=2)
    >>> compare("heads-reordered", "joined", "multi_head", **given)
    right [[1, 2, 3, 4]], mistaken [[3, 4, 1, 2]]
    """
    heads = len(next((s.inputs for s in in_order(last) if s.role == "joined"), ()))
    orders = [list(range(heads))[::-1]] if heads > 2 else []
    for i, j in combinations(range(heads), 2):
        order = list(range(heads))
        order[i], order[j] = order[j], order[i]
        orders.append(order)
    for order in orders:
        yield partial(_joined_in, order)


def _joined_in(order: list[int], step: Step) -> Step | None:
    return Step(step.op, tuple(step.inputs[i] for i in order), step.role) if step.role == "joined" else None


@mistake("joined-by-rows", "The heads look stacked under one another: join them side by side, row by row.")
def joined_by_rows(step: Step) -> Step | None:
    """The heads under one another.

    >>> compare("joined-by-rows", "joined", "multi_head", head_output=[[[1, 2]], [[3, 4]]], heads=2)
    right [[1, 2, 3, 4]], mistaken [[1, 2], [3, 4]]
    """
    return stack("joined", step.inputs) if _joins(step) else None


@mistake("heads-added", "The heads look added up: join them side by side and let W_O do the mixing.")
def heads_added(step: Step) -> Step | None:
    """head_1 + head_2 instead of [head_1 | head_2].

    >>> compare("heads-added", "joined", "multi_head", head_output=[[[1, 2]], [[3, 4]]], heads=2)
    right [[1, 2, 3, 4]], mistaken [[4, 6]]
    """
    return add_up("joined", step.inputs) if _joins(step) else None


@mistake_with_ways("split-before-projection", "X looks split before it was projected: every head reads all of X.")
def split_before_projection(last: Step) -> Iterable[Edit]:
    """Head i projects only its own columns of X, with its own rows of W, or with one small projection for all heads.

    >>> first = [[[1], [0]], [[1], [0]]]
    >>> given = dict(X=[[1, 2]], W_Q=[[[3], [1]], [[5], [1]]], W_K=first, W_V=first, W_O=[[1], [1]])
    >>> compare("split-before-projection", "Q_1", "multi_head", **given)
    right [[5]], mistaken [[3]]
    """
    heads = sum(1 for step in in_order(last) if step.role == "scores")
    if heads < 2:
        return

    def own(step: Step, shared: bool = False) -> Step | None:
        if not is_projection(step) or step.inputs[0].role not in ("X", "context"):
            return None
        X, W = step.inputs
        sizes = shapes(step)
        widths = [sizes[X][-1]] if isinstance(step.head, int) else [sizes[X][-1], sizes[W][-1]]
        if any(not isinstance(width, int) or width % heads for width in widths):
            return None
        if isinstance(step.head, int):
            return None if shared else _own_part(step, X, W, step.head, step.head, heads, step.role)
        blocks = [Step(Split(h, heads), (W,), "block", h) for h in range(heads)]
        pieces = [
            _own_part(step, X, blocks[0 if shared else h], h, 0 if shared else h, heads, "part") for h in range(heads)
        ]
        return side_by_side(step.role, pieces)

    yield own
    yield lambda step: own(step, shared=True)


def _own_part(step: Step, X: Step, W: Step, columns: int, rows: int, heads: int, role: str) -> Step:
    """The head's columns of X times some rows of its projection."""
    part = Step(Split(columns, heads), (X,), "columns", columns)
    return Step(MatMul(), (part, row_block(W, rows, heads)), role, step.head)


@mistake(
    "merged-untransposed", "The heads look merged without moving tokens first: row i of every head belongs together."
)
def merged_untransposed(step: Step) -> Step | None:
    """heads×tokens×d_v read off, in order, as tokens×(heads·d_v).

    >>> heads = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    >>> compare("merged-untransposed", "joined", "multi_head", head_output=heads, heads=2)
    right [[1, 2, 5, 6], [3, 4, 7, 8]], mistaken [[1, 2, 3, 4], [5, 6, 7, 8]]
    """
    if not _joins(step):
        return None
    each = shapes(step)
    tokens = each[step.inputs[0]][-2]
    if not isinstance(tokens, int) or any(each[head] != each[step.inputs[0]] for head in step.inputs):
        return None
    rows = [row_block(head, token, tokens) for head in step.inputs for token in range(tokens)]
    width = len(step.inputs)
    return stack("joined", [side_by_side("row", rows[i : i + width]) for i in range(0, len(rows), width)])


def _joins(step: Step) -> bool:
    return isinstance(step.op, Join) and step.role == "joined" and step.op.of is None and len(step.inputs) > 1


# What is left out.


@mistake_with_ways("forgot-output-projection", "This looks like the joined heads themselves: multiply them by W_O.")
def forgot_output_projection(last: Step) -> Iterable[Edit]:
    """The joined heads handed in as the output.

    >>> given = dict(head_output=[[[1]], [[3]]], W_O=[[1, 1], [0, 2]], heads=2)
    >>> compare("forgot-output-projection", "output", "multi_head", **given)
    right [[1, 7]], mistaken [[1, 3]]
    """
    yield (
        lambda step: relabelled(step.inputs[0], step) if is_projection(step) and step.inputs[1].role == "W_O" else None
    )
    if any(step.role == "output_before_bias" for step in in_order(last)):
        yield (
            lambda step: (
                relabelled(step.inputs[0].inputs[0], step)
                if step.role == "output" and step.inputs[0].role == "output_before_bias"
                else None
            )
        )


@mistake_with_ways("forgot-bias", "A bias looks left out: it is X·W + b.")
def forgot_bias(last: Step) -> Iterable[Edit]:
    """X·W without its + b: everywhere, or in one place.

    >>> given = dict(X=[[1]], W_Q=[[1]], W_K=[[1]], W_V=[[1]], b_Q=[2])
    >>> compare("forgot-bias", "Q", "single_head", **given)
    right [[3]], mistaken [[1]]
    """
    names = sorted({step.role for step in in_order(last) if step.role.startswith("b_")})
    for roles in ([names] if len(names) > 1 else []) + [[name] for name in names]:
        yield partial(_without, roles)


def _without(roles: list[str], step: Step) -> Step | None:
    left_out = isinstance(step.op, Add) and step.inputs[1].role in roles
    return relabelled(step.inputs[0], step) if left_out else None
