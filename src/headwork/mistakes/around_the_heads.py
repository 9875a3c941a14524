"""Mistakes around the heads: projections, the split, the join, and what is left out."""

from collections.abc import Iterable
from functools import partial
from itertools import combinations

from headwork.graph import Last, Step, in_order
from headwork.mistakes.example import compare as compare
from headwork.mistakes.operations import shapes
from headwork.mistakes.rewriting import (
    Edit,
    add_up,
    all_or_each,
    is_projection,
    mistake,
    mistake_with_ways,
    relabelled,
    row_block,
    side_by_side,
    stack,
)
from headwork.ops import Add, Join, MatMul, Split, Transpose

# Projections.


@mistake_with_ways("projection-transposed", "A projection looks transposed: with tokens as rows it is X·W, not X·Wᵀ.")
def projection_transposed(last: Last) -> Iterable[Edit]:
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
def heads_reordered(last: Last) -> Iterable[Edit]:
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
def split_before_projection(last: Last) -> Iterable[Edit]:
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
        if not is_projection(step) or step.inputs[0].role not in ("X", "X_positioned", "context"):
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


@mistake_with_ways("split-untransposed", "The heads look split without moving tokens: a head is columns of all tokens.")
def split_untransposed(last: Last) -> Iterable[Edit]:
    """tokens×(heads·d_k) read off, in order, as heads×tokens×d_k; or as tokens×heads×d_k, and every token's heads
    attend to one another.

    >>> eye = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    >>> given = dict(X=[[1, 2, 3, 4], [5, 6, 7, 8]], W_Q=eye, W_K=eye, W_V=eye, W_O=eye)
    >>> compare("split-untransposed", "Q_1", "multi_head_blocks", heads=2, **given)
    right [[1, 2], [5, 6]], mistaken [[1, 2], [3, 4]]
    """
    yield _read_off
    heads = {(s.role, s.head): s for s in in_order(last) if isinstance(s.op, Split) and s.role in ("Q", "K", "V")}
    numbers = [head for role, head in heads if role == "Q"]
    tokens = {shapes(s)[s][-2] for s in heads.values()}
    if len(numbers) < 2 or 3 * len(numbers) != len(heads) or len(tokens) != 1 or tokens == {1}:
        return
    (rows,) = tokens
    if not isinstance(rows, int):
        return
    of_token = {
        role: [stack("heads", [row_block(heads[role, h], t, rows) for h in numbers]) for t in range(rows)]
        for role in ("K", "V")
    }

    def among_heads(step: Step) -> Step | None:
        if step.role == "scores":
            each = [Step(Transpose(), (keys,), "turned") for keys in of_token["K"]]
        elif step.role == "head_output":
            each = of_token["V"]
        else:
            return None
        left = step.inputs[0]
        parts = [Step(MatMul(), (row_block(left, t, rows), right), "row") for t, right in enumerate(each)]
        return relabelled(stack(step.role, parts), step)

    yield among_heads


def _read_off(step: Step) -> Step | None:
    if not isinstance(step.op, Split):
        return None
    (wide,) = step.inputs
    rows, heads = shapes(wide)[wide][-2], step.op.of
    if not isinstance(rows, int) or not isinstance(heads, int) or rows < 2:
        return None
    pieces = range(step.op.part * rows, (step.op.part + 1) * rows)
    blocks = [Step(Split(piece % heads, heads), (wide,), "block") for piece in pieces]
    read = [row_block(block, piece // heads, rows) for piece, block in zip(pieces, blocks, strict=True)]
    return relabelled(stack(step.role, read), step)


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
def forgot_output_projection(last: Last) -> Iterable[Edit]:
    """The joined heads handed in as the output.

    >>> given = dict(head_output=[[[1]], [[3]]], W_O=[[1, 1], [0, 2]], heads=2)
    >>> compare("forgot-output-projection", "output", "multi_head", **given)
    right [[1, 7]], mistaken [[1, 3]]
    """
    yield _unprojected
    if any(step.role == "output_before_bias" for step in in_order(last)):
        yield _neither_projected_nor_biased


def _unprojected(step: Step) -> Step | None:
    return relabelled(step.inputs[0], step) if is_projection(step) and step.inputs[1].role == "W_O" else None


def _neither_projected_nor_biased(step: Step) -> Step | None:
    before_bias = step.role == "output" and step.inputs[0].role == "output_before_bias"
    return relabelled(step.inputs[0].inputs[0], step) if before_bias else None


@mistake_with_ways("forgot-bias", "A bias looks left out: it is X·W + b.")
def forgot_bias(last: Last) -> Iterable[Edit]:
    """X·W without its + b: everywhere, or in one place.

    >>> given = dict(X=[[1]], W_Q=[[1]], W_K=[[1]], W_V=[[1]], b_Q=[2])
    >>> compare("forgot-bias", "Q", "single_head", **given)
    right [[3]], mistaken [[1]]
    """
    names = sorted({step.role for step in in_order(last) if step.role.startswith("b_")})
    return (partial(_without, roles) for roles in all_or_each(names))


def _without(roles: list[str], step: Step) -> Step | None:
    left_out = isinstance(step.op, Add) and step.inputs[-1].role in roles
    return relabelled(step.inputs[0], step) if left_out else None
