"""The gradients in NumPy, a block of tokens and a block of keys at a time: where no kernel was compiled."""

import numpy as np
from numpy.typing import NDArray

from headwork.engine.arguments import Call
from headwork.engine.arrays import Array
from headwork.engine.blocked import KEYS, TOKENS, Group, Rows, groups, heads_first, mixed


def backward(call: Call, dout: Array, dlse: Array | None, dq: Array, dk: Array, dv: Array, dmask: Array | None) -> None:
    """Fill dq, dk, dv, and `dmask` where it is asked for; all have the batch axes of the result."""
    dout, dq, dk, dv = (heads_first(array, call.swapped) for array in (dout, dq, dk, dv))
    dq[...] = 0
    dk[...] = 0
    dv[...] = 0
    if dmask is not None:
        dmask = dmask.reshape((1,) * (dq.ndim - dmask.ndim) + dmask.shape)
    dlse = np.zeros(dq.shape[:-1]) if dlse is None else dlse.reshape(dq.shape[:-1])
    with np.errstate(all="ignore"):
        for group in groups(call):
            at = group.place
            up, lse_up, down = (array[at.batch][at.heads, at.tokens] for array in (dout, dlse, dq))
            to_k, to_v = (array[at.batch][at.kv_head, at.keys] for array in (dk, dv))
            work(group, up, lse_up, down, to_k, to_v, dmask)


def work(group: Group, dout: Array, dlse: Array, dq: Array, dk: Array, dv: Array, dmask: Array | None) -> None:
    call, sort = group.call, group.call.accumulates
    assert group.lse is not None
    sum_k, sum_v = np.zeros(dk.shape, sort), np.zeros(dv.shape, sort)
    for start in range(0, group.q.shape[1], TOKENS):
        rows = Rows(group, slice(start, min(start + TOKENS, group.q.shape[1])))
        upward = dout[:, rows.tokens].astype(sort)
        delta = (upward * group.out[:, rows.tokens].astype(sort)).sum(-1) - dlse[:, rows.tokens].astype(sort)
        sum_q, norm = np.zeros(rows.q.shape, sort), None
        if group.mask is not None and (group.lse[:, rows.tokens] < np.finfo(sort).min / 2**20).any():
            norm = divisors(rows)
        for first in range(*rows.span, KEYS):
            keys = slice(first, min(first + KEYS, rows.span[1]))
            visible = np.broadcast_to(rows.visible(keys), (*rows.q.shape[:2], keys.stop - keys.start))
            p = weights(rows, keys, visible)
            p = p if norm is None else p / norm
            ds = p * (upward @ group.v[keys].astype(sort).T - delta[..., None])
            ds = np.where(p == 0, 0, ds).astype(sort, copy=False)
            if dmask is not None:
                add_to_mask(dmask, group, ds, rows.tokens, keys)
            if call.softcap:
                ds = np.where(p == 0, 0, ds * bend(rows, keys)).astype(sort, copy=False)
            sum_q += mixed(ds, group.k[keys].astype(sort), visible)
            for head, seen in enumerate(visible):
                sum_v[keys] += mixed(p[head].T, upward[head], seen.T)
                sum_k[keys] += mixed(ds[head].T, rows.q[head], seen.T)
        dq[:, rows.tokens] = (sum_q * sort.type(call.scale)).astype(dq.dtype)
    dk[...] = (sum_k * sort.type(call.scale)).astype(dk.dtype)
    dv[...] = sum_v.astype(dv.dtype)


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
    places = (
        at.heads,
        slice(token0 + tokens.start, token0 + tokens.stop),
        slice(key0 + keys.start, key0 + keys.stop),
    )
    once = tuple(axis for axis, n in enumerate(target.shape) if n == 1)
    target[tuple(slice(None) if n == 1 else place for n, place in zip(target.shape, places, strict=True))] += ds.sum(
        once, keepdims=True
    )
