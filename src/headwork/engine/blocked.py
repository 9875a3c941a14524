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
from headwork.engine.dropout import gain, keeps

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
    item: int
    heads: slice
    kv_head: int
    tokens: slice
    keys: slice


@dataclass(slots=True)
class Group:
    """One key head of one batch item and the query heads that read it: q is (heads, tokens, d_k), k (keys, d_k)."""

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
    first: int
    sinks: Array | None  # (heads,)
    slopes: Array | None
    table: Array | None  # (heads, 2·reach + 1)
    blocks: Array | None  # (heads, blocks of tokens, blocks of keys)


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
    sinks, slopes = (
        None if x is None else np.broadcast_to(x, (*batch, heads)) for x in (call.heads.sinks, call.heads.slopes)
    )
    table = call.heads.table
    table = None if table is None else np.broadcast_to(table, (*batch, heads, table.shape[-1]))
    blocks = call.blocks
    blocks = None if blocks is None else np.broadcast_to(blocks, (*batch, heads, *blocks.shape[-2:]))
    for item, (at, span) in enumerate(items(call, batch, q.shape[-2], keys)):
        token0, tokens, key0, real, offset, first = span
        rows, columns = slice(token0, token0 + tokens), slice(key0, key0 + real)
        if weights is not None:
            weights[at] = 0
        for head in range(kv_heads):
            mine = slice(head * each, (head + 1) * each)
            yield Group(
                call,
                GroupSlices(at, item, mine, head, rows, columns),
                q[at][mine, rows],
                k[at][head, columns],
                v[at][head, columns],
                out[at][mine, rows],
                None if mask is None else mask[at][mine, rows, columns],
                None if lse is None else lse[at][mine, rows],
                None if weights is None else weights[at][mine, rows, columns],
                offset,
                first,
                *(None if x is None else x[at][mine] for x in (sinks, slopes, table, blocks)),
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
            yield at, (0, tokens, 0, keys, call.offset, 0)
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
        self.position = position = np.arange(tokens.start, tokens.stop) + group.offset
        self.first = np.full_like(position, group.first)
        if call.left >= 0:
            self.first = np.maximum(position - call.left, group.first)
        self.last = np.full_like(position, keys)
        if call.right >= 0:
            self.last = np.minimum(position + call.right + 1, keys)
        reads = self.first < self.last
        self.span = (int(self.first[reads].min()), int(self.last[reads].max())) if reads.any() else (0, 0)

    def visible(self, keys: slice) -> NDArray[np.bool_]:
        """(heads or 1, tokens, keys): which of the keys each row may read."""
        key = np.arange(keys.start, keys.stop)
        seen = ((key >= self.first[:, None]) & (key < self.last[:, None]))[None]
        if self.group.table is not None:
            seen = seen & (self.distance_bias(keys) != -np.inf)
        if self.group.blocks is not None:
            rows = np.arange(self.tokens.start, self.tokens.stop) // self.call.block_tokens
            seen = seen & self.group.blocks[:, rows[:, None], key // self.call.block_keys]
        if self.group.mask is None:
            return np.asarray(seen)
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
        if call.heads.distances:
            scores += self.distance_bias(keys)
        return np.asarray(np.where(visible, scores, self.q.dtype.type(-np.inf)))

    def distance_bias(self, keys: slice) -> Array:
        """(heads, tokens, keys): what slopes and the table of relative positions add."""
        group, sort = self.group, self.q.dtype
        distance = np.arange(keys.start, keys.stop) - self.position[:, None]
        total = np.zeros((1, *distance.shape), sort)
        if group.slopes is not None:
            lowest = np.finfo(sort).min
            total = np.maximum(-group.slopes[:, None, None] * np.abs(distance).astype(sort), lowest).astype(sort)
            total = np.where(group.slopes[:, None, None] == 0, sort.type(0), total)
        if group.table is not None:
            reach = self.call.heads.reach
            total = total + group.table[:, np.clip(distance, -reach, reach) + reach]
        return np.asarray(total)

    def keeps(self, keys: slice) -> NDArray[np.bool_]:
        """(heads, tokens, keys): which weights dropout leaves."""
        call, at = self.call, self.group.place
        rows, columns = (np.arange(some.start, some.stop) for some in (self.tokens, keys))
        return keeps(call.dropout, call.seed, at.item, np.arange(at.heads.start, at.heads.stop), rows, columns)


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
        p = np.where(rows.keeps(keys), p, 0) if rows.call.dropout else p
        out = out * factor[..., None] + mixed(p, group.v[keys].astype(sort), visible)
        if group.weights is not None:
            group.weights[:, rows.tokens, keys] = scores
    overflowed = (total == 0) & seen
    if group.sinks is not None:
        sink = np.broadcast_to(group.sinks[:, None], shape)
        raised = np.maximum(top, sink)
        factor = np.where(top == -np.inf, 0, np.exp(top - raised)).astype(sort)
        more = np.where(sink == -np.inf, 0, np.exp(sink - raised))
        joined = (total * factor + more).astype(sort)
        total = np.where(sink == -np.inf, total, joined)
        out = np.where((sink == -np.inf)[..., None], out, out * factor[..., None])
        top = raised
    finish(rows, out, top, total, overflowed)


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


def finish(rows: Rows, out: Array, top: Array, total: Array, overflowed: NDArray[np.bool_]) -> None:
    group, call = rows.group, rows.call
    divisor = np.where(total == 0, 1, total)
    out *= (out.dtype.type(gain(call.dropout)) / divisor)[..., None]
    group.out[:, rows.tokens] = out.astype(group.out.dtype)
    if group.lse is not None:
        group.lse[:, rows.tokens] = top + np.log(total)
    if group.weights is not None:
        keys = slice(*rows.span)
        raw = group.weights[:, rows.tokens, keys]
        base = np.where(top == -np.inf, 0, top)
        weights = np.exp(raw - base[..., None]) / divisor[..., None]
        if call.dropout:
            weights = np.where(rows.keeps(keys), weights * gain(call.dropout), 0)
        group.weights[:, rows.tokens, keys] = weights
    fine = np.isfinite(total) & np.isfinite(out).all(-1) & ~overflowed
    for head, token in np.argwhere(~fine).tolist():
        careful(rows, head, token)


def careful(rows: Rows, head: int, token: int) -> None:
    """One row again in wider arithmetic: scores that overflowed give the limit, a visible NaN comes through."""
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
    if call.heads.distances:
        near = rows.distance_bias(slice(0, group.k.shape[0]))
        scores = scores + near[min(head, len(near) - 1), token, keys].astype(wide)
    sink = wide(-np.inf if group.sinks is None else group.sinks[head])
    everything = np.append(scores, sink) if sink != -np.inf else scores
    top: Any = everything.max() if len(everything) else wide(-np.inf)
    p = np.exp(everything - top)
    if not np.isfinite(top):
        # One score at infinity takes all the weight; several have no limit.
        alone = (everything == top).sum() == 1
        p = (everything == top).astype(wide) if alone else np.full_like(everything, np.nan)
    total = p.sum()
    p = p[: len(keys)]
    read = p != 0
    if call.dropout:
        p = p * np.where(rows.keeps(slice(0, group.k.shape[0]))[head, token, keys], gain(call.dropout), 0)
    out = p[read] @ group.v[keys[read]].astype(wide) / (total or 1)
    group.out[head, at] = out.astype(rows.q.dtype).astype(group.out.dtype)
    if group.lse is not None:
        group.lse[head, at] = top + np.log(total)
    if group.weights is not None:
        group.weights[head, at] = 0
        group.weights[head, at, keys] = p / (total or 1)
