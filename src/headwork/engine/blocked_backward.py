"""The gradients in NumPy, a block of tokens and a block of keys at a time: where no kernel was compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwork.engine.arguments import Call
from headwork.engine.arrays import Array
from headwork.engine.blocked import KEYS, TOKENS, Group, Rows, groups, heads_first, mixed
from headwork.engine.dropout import gain


def backward(
    call: Call,
    dout: Array,
    dlse: Array | None,
    dq: Array,
    dk: Array,
    dv: Array,
    dmask: Array | None = None,
    dslopes: Array | None = None,
    dtable: Array | None = None,
    delta: Array | None = None,
) -> None:
    """Add to dq, dk, dv, which have the batch axes of the result, and to the others, where it is asked for.

    `delta`, Σ dout·out of every row, stands for the output where it is given.
    """
    dout, dq, dk, dv = (heads_first(array, call.swapped) for array in (dout, dq, dk, dv))
    if dmask is not None:
        dmask = dmask.reshape((1,) * (dq.ndim - dmask.ndim) + dmask.shape)
    biases = Biases(dmask, dslopes, dtable, dq.ndim)
    rows = dq.shape[:-1]
    with np.errstate(all="ignore"):
        if delta is None:
            result = heads_first(call.out, call.swapped)
            delta = (dout.astype(call.accumulates) * result.astype(call.accumulates)).sum(-1)
        slope = delta.reshape(rows) if dlse is None else delta.reshape(rows) - dlse.reshape(rows)
        for group in groups(call):
            at = group.place
            up, mine, down = (array[at.batch][at.heads, at.tokens] for array in (dout, slope, dq))
            to_k, to_v = (array[at.batch][at.kv_head, at.keys] for array in (dk, dv))
            work(group, up, mine, down, to_k, to_v, biases)


class Biases:
    """The gradients of what is added to the scores, as far as they are asked for."""

    def __init__(self, mask: Array | None, slopes: Array | None, table: Array | None, rank: int) -> None:
        self.mask = mask
        self.slopes = None if slopes is None else slopes.reshape((1,) * (rank - 2 - slopes.ndim) + slopes.shape)
        self.table = None if table is None else table.reshape((1,) * (rank - 1 - table.ndim) + table.shape)

    def add(self, rows: Rows, keys: slice, ds: Array) -> None:
        group = rows.group
        if self.mask is not None:
            add_to_mask(self.mask, group, ds, rows.tokens, keys)
        distance = np.arange(keys.start, keys.stop) - rows.position[:, None]
        if self.slopes is not None:
            np.add.at(self.slopes, self.places(group, self.slopes), -(ds * np.abs(distance)).sum((1, 2)))
        if self.table is not None:
            reach = rows.call.heads.reach
            here, by_distance = np.clip(distance, -reach, reach) + reach, np.zeros((len(ds), 2 * reach + 1))
            for head, sums in enumerate(by_distance):
                sums += np.bincount(here.ravel(), ds[head].ravel(), 2 * reach + 1)
            np.add.at(self.table, self.places(group, self.table), by_distance)

    @staticmethod
    def places(group: Group, of: Array) -> tuple[Any, ...]:
        """Where the heads of a group stand, in an array that may have any axis but once."""
        at = group.place
        lead = tuple(i if n > 1 else 0 for i, n in zip(at.batch, of.shape, strict=False))
        heads = np.arange(at.heads.start, at.heads.stop)
        return (*lead, heads if of.shape[len(at.batch)] > 1 else np.zeros_like(heads))


def work(group: Group, dout: Array, slope: Array, dq: Array, dk: Array, dv: Array, biases: Biases) -> None:
    call, sort = group.call, group.call.accumulates
    assert group.lse is not None
    sum_k, sum_v = np.zeros(dk.shape, sort), np.zeros(dv.shape, sort)
    for start in range(0, group.q.shape[1], TOKENS):
        rows = Rows(group, slice(start, min(start + TOKENS, group.q.shape[1])))
        upward = dout[:, rows.tokens].astype(sort)
        delta = slope[:, rows.tokens].astype(sort)
        sum_q, norm = np.zeros(rows.q.shape, sort), None
        if (group.mask is not None or call.heads.distances) and (
            group.lse[:, rows.tokens] < np.finfo(sort).min / 2**20
        ).any():
            norm = divisors(rows)
        for first in range(*rows.span, KEYS):
            keys = slice(first, min(first + KEYS, rows.span[1]))
            visible = np.broadcast_to(rows.visible(keys), (*rows.q.shape[:2], keys.stop - keys.start))
            p = weights(rows, keys, visible)
            p = p if norm is None else p / norm
            dp = upward @ group.v[keys].astype(sort).T
            kept = p
            if call.dropout:
                keep = rows.keeps(keys) * sort.type(gain(call.dropout))
                dp, kept = np.where(keep == 0, 0, dp * keep), p * keep
            ds = np.where(p == 0, 0, p * (dp - delta[..., None])).astype(sort, copy=False)
            biases.add(rows, keys, ds)
            if call.softcap:
                ds = np.where(p == 0, 0, ds * bend(rows, keys)).astype(sort, copy=False)
            sum_q += mixed(ds, group.k[keys].astype(sort), visible)
            for head, seen in enumerate(visible):
                sum_v[keys] += mixed(kept[head].T, upward[head], seen.T)
                sum_k[keys] += mixed(ds[head].T, rows.q[head], seen.T)
        dq[:, rows.tokens] += (sum_q * sort.type(call.scale)).astype(dq.dtype)
    dk += (sum_k * sort.type(call.scale)).astype(dk.dtype)
    dv += sum_v.astype(dv.dtype)


def weights(rows: Rows, keys: slice, visible: NDArray[np.bool_]) -> Array:
    assert rows.group.lse is not None
    p = np.exp(rows.scores(keys, visible) - rows.group.lse[:, rows.tokens, None])
    return np.asarray(np.where(visible, p, 0).astype(rows.q.dtype, copy=False))


def divisors(rows: Rows) -> Array:
    """What the weights of each row add up to, (heads, tokens, 1): not 1 where an additive mask says numbers so low that
    the log-sum-exp has no trace of how many keys share them.
    """
    total = np.zeros((*rows.q.shape[:2], 1), rows.q.dtype)
    for first in range(*rows.span, KEYS):
        keys = slice(first, min(first + KEYS, rows.span[1]))
        visible = np.broadcast_to(rows.visible(keys), (*rows.q.shape[:2], keys.stop - keys.start))
        total += weights(rows, keys, visible).sum(-1, keepdims=True)
    deep = rows.group.lse[:, rows.tokens, None] < np.finfo(rows.q.dtype).min / 2**20  # type: ignore[index]  # weights asked
    return np.asarray(np.where(deep & (total > 0), total, 1))


def bend(rows: Rows, keys: slice) -> NDArray[np.floating]:
    """The slope of the softcap at the scores before it: 1 − tanh²."""
    call, sort = rows.call, rows.q.dtype.type
    scores = rows.q @ rows.group.k[keys].astype(rows.q.dtype).T * sort(call.scale)
    return np.asarray(1 - np.tanh(scores / sort(call.softcap)) ** 2)


def add_to_mask(dmask: Array, group: Group, ds: Array, tokens: slice, keys: slice) -> None:
    """Add `ds` (heads, tokens, keys) where the mask has its place, summed over the axes it has only once."""
    at = group.place
    batch = tuple(i if n > 1 else 0 for i, n in zip(at.batch, dmask.shape, strict=False))
    target = dmask[batch]
    token0, key0 = at.tokens.start, at.keys.start
    places = (at.heads, slice(token0 + tokens.start, token0 + tokens.stop), slice(key0 + keys.start, key0 + keys.stop))
    once = tuple(axis for axis, n in enumerate(target.shape) if n == 1)
    target[tuple(slice(None) if n == 1 else place for n, place in zip(target.shape, places, strict=True))] += ds.sum(
        once, keepdims=True
    )
