"""The same attention in NumPy, a block of tokens and a block of keys at a time: where no kernel was compiled.

For every row it keeps `top`, the largest score so far, Σ exp(s − top) and Σ exp(s − top)·v, and scales the
sums down when `top` rises: the whole matrix of scores is never stored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwork.engine.arguments import Call
from headwork.engine.arrays import Array

TOKENS = 128  # in a block
KEYS = 512


def forward(call: Call) -> None:
    """Work out `call.out`, and `call.lse` and `call.weights` where they are asked for."""
    with np.errstate(all="ignore"):
        for group in groups(call):
            for start in range(0, group.q.shape[1], TOKENS):
                work(Rows(group, slice(start, min(start + TOKENS, group.q.shape[1]))))


@dataclass(slots=True, frozen=True)
class GroupSlices:
    """Where a group lies in the arrays of a call: axes (batch…, heads, tokens, d)."""

    batch: tuple[int, ...]
    heads: slice
    kv_head: int
    tokens: slice
    keys: slice


@dataclass(slots=True)
class Group:
    """One key head of one batch item and the query heads that read it: q is (heads, tokens, d_k), k (keys,
    d_k).
    """

    call: Call
    place: GroupSlices
    q: Array
    k: Array
    v: Array
    out: Array
    mask: Array | None
    lse: Array | None
    weights: Array | None
    offset: int


def groups(call: Call) -> Iterator[Group]:
    q, k, v, out = (heads_first(array, call.swapped) for array in (call.q, call.k, call.v, call.out))
    heads, kv_heads, keys = q.shape[-3], k.shape[-3], k.shape[-2]
    if not heads:
        return
    batch = out.shape[:-3]
    whole = (*batch, heads, q.shape[-2])
    q, k, v = (np.broadcast_to(array, batch + array.shape[-3:]) for array in (q, k, v))
    mask = None if call.mask is None else np.broadcast_to(call.mask, (*whole, keys))
    lse = None if call.lse is None else call.lse.reshape(whole)
    weights = None if call.weights is None else call.weights.reshape(*whole, keys)
    each = heads // kv_heads
    for at, (token0, tokens, key0, real, offset) in items(call, batch, q.shape[-2], keys):
        rows, columns = slice(token0, token0 + tokens), slice(key0, key0 + real)
        if weights is not None:
            weights[at] = 0
        for head in range(kv_heads):
            mine = slice(head * each, (head + 1) * each)
            yield Group(
                call,
                GroupSlices(at, mine, head, rows, columns),
                q[at][mine, rows],
                k[at][head, columns],
                v[at][head, columns],
                out[at][mine, rows],
                None if mask is None else mask[at][mine, rows, columns],
                None if lse is None else lse[at][mine, rows],
                None if weights is None else weights[at][mine, rows, columns],
                offset,
            )


def heads_first(array: Array, swapped: bool) -> Array:
    if array.ndim == 2:
        return array[None]
    return array.swapaxes(-2, -3) if swapped else array


def items(
    call: Call, batch: tuple[int, ...], tokens: int, keys: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(batch index, span) for every batch item; packed sequences share the one item there is."""
    if call.spans is None:
        for at in np.ndindex(*batch):
            yield at, (0, tokens, 0, keys, call.offset)
        return
    indices = list(np.ndindex(*batch)) if batch else [()] * len(call.spans)
    for at, span in zip(indices, call.spans.tolist(), strict=True):
        yield at, tuple(span)


class Rows:
    """Some tokens of a group: which keys each may read, and its scores."""

    def __init__(self, group: Group, tokens: slice) -> None:
        call, keys = group.call, group.k.shape[0]
        self.group, self.tokens, self.call = group, tokens, call
        self.q = group.q[:, tokens].astype(call.accumulates)
        position = np.arange(tokens.start, tokens.stop) + group.offset
        self.first = np.maximum(position - call.left, 0) if call.left >= 0 else np.zeros_like(position)
        self.last = np.full_like(position, keys)
        if call.right >= 0:
            self.last = np.minimum(position + call.right + 1, keys)
        reads = self.first < self.last
        self.span = (int(self.first[reads].min()), int(self.last[reads].max())) if reads.any() else (0, 0)

    def visible(self, keys: slice) -> NDArray[np.bool_]:
        """(heads or 1, tokens, keys): which of the keys each row may read."""
        key = np.arange(keys.start, keys.stop)
        seen = ((key >= self.first[:, None]) & (key < self.last[:, None]))[None]
        if self.group.mask is None:
            return seen
        mask = self.group.mask[:, self.tokens, keys]
        return seen & (mask if mask.dtype == np.bool_ else mask != -np.inf)

    def scores(self, keys: slice, visible: NDArray[np.bool_]) -> Array:
        call = self.call
        scores = self.q @ self.group.k[keys].astype(self.q.dtype).T
        scores *= self.q.dtype.type(call.scale)
        if call.softcap:
            # A score that is not finite becomes NaN, not ±softcap: the row is then worked again in wider arithmetic.
            held = np.where(np.isfinite(scores), np.tanh(scores.astype(np.float64) / call.softcap), np.nan)
            scores = (call.softcap * held).astype(self.q.dtype)
        if self.group.mask is not None and self.group.mask.dtype != np.bool_:
            scores += added(self.group.mask[:, self.tokens, keys], self.q.dtype)
        return np.asarray(np.where(visible, scores, self.q.dtype.type(-np.inf)))


def added(mask: Array, sort: np.dtype[Any]) -> Array:
    """An additive mask in the type of the sums; no number but −∞ becomes −∞."""
    if mask.dtype == np.float64 and sort != np.float64:
        mask = np.maximum(mask, np.where(mask == -np.inf, mask, np.finfo(sort).min))
    return mask.astype(sort)


def work(rows: Rows) -> None:
    group = rows.group
    shape, sort = rows.q.shape[:2], rows.q.dtype
    top, total, seen = np.full(shape, -np.inf, sort), np.zeros(shape, sort), np.zeros(shape, bool)
    out = np.zeros((*shape, group.v.shape[1]), sort)
    for start in range(*rows.span, KEYS):
        keys = slice(start, min(start + KEYS, rows.span[1]))
        visible = rows.visible(keys)
        seen |= visible.any(-1)
        scores = rows.scores(keys, visible)
        raised = np.maximum(top, scores.max(-1))
        base = np.where(raised == -np.inf, 0, raised)
        factor, p = np.exp(top - base), np.exp(scores - base[..., None])
        top, total = raised, total * factor + p.sum(-1)
        out = out * factor[..., None] + mixed(p, group.v[keys].astype(sort), visible)
        if group.weights is not None:
            group.weights[:, rows.tokens, keys] = scores
    finish(rows, out, top, total, seen)


def mixed(p: Array, v: Array, visible: NDArray[np.bool_]) -> Array:
    """p·v, where a value that is not finite reaches only the rows that may read it: 0·NaN is not 0."""
    odd: NDArray[np.bool_] = np.asarray(~np.isfinite(v).all(-1))
    if not odd.any() or visible.all():
        return np.asarray(p @ v)
    out = p @ np.where(odd[:, None], 0, v)
    for key in np.flatnonzero(odd):
        reads = np.broadcast_to(visible[..., key, None], out.shape)
        np.add(out, p[..., key, None] * v[key], out=out, where=reads)
    return np.asarray(out)


def finish(rows: Rows, out: Array, top: Array, total: Array, seen: NDArray[np.bool_]) -> None:
    group = rows.group
    divisor = np.where(total == 0, 1, total)
    out /= divisor[..., None]
    group.out[:, rows.tokens] = out.astype(group.out.dtype)
    if group.lse is not None:
        group.lse[:, rows.tokens] = top + np.log(total)
    if group.weights is not None:
        keys = slice(*rows.span)
        raw = group.weights[:, rows.tokens, keys]
        base = np.where(top == -np.inf, 0, top)
        group.weights[:, rows.tokens, keys] = np.exp(raw - base[..., None]) / divisor[..., None]
    fine = np.isfinite(total) & np.isfinite(out).all(-1) & ((total > 0) | ~seen)
    for head, token in np.argwhere(~fine).tolist():
        careful(rows, head, token)


def careful(rows: Rows, head: int, token: int) -> None:
    """One row again in wider arithmetic: scores that overflowed give the limit, a visible NaN comes
    through.
    """
    group, call = rows.group, rows.call
    wide = np.longdouble if rows.q.dtype == np.float64 else np.float64
    visible = rows.visible(slice(0, group.k.shape[0]))
    keys = np.flatnonzero(visible[min(head, len(visible) - 1), token])
    scores = (group.k[keys].astype(wide) @ rows.q[head, token].astype(wide)) * wide(call.scale)
    if call.softcap:
        scores = wide(call.softcap) * np.tanh(scores / wide(call.softcap))
    at = rows.tokens.start + token
    if group.mask is not None and group.mask.dtype != np.bool_:
        scores = scores + group.mask[head, at, keys].astype(wide)
    top: Any = scores.max() if len(keys) else wide(-np.inf)
    p = np.exp(scores - top)
    if not np.isfinite(top):
        # One score at infinity takes all the weight; several have no limit.
        p = (scores == top).astype(wide) if (scores == top).sum() == 1 else np.full_like(scores, np.nan)
    total = p.sum()
    read = p != 0
    out = p[read] @ group.v[keys[read]].astype(wide) / (total or 1)
    group.out[head, at] = out.astype(rows.q.dtype).astype(group.out.dtype)
    if group.lse is not None:
        group.lse[head, at] = top + np.log(total)
    if group.weights is not None:
        group.weights[head, at] = 0
        group.weights[head, at, keys] = p / (total or 1)
