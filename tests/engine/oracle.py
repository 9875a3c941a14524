"""Attention as the formula has it, row by row and without a thought for speed: what the engine is judged
by.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwork.engine.dropout import gain, keeps

Array = NDArray[Any]


def wider(dtype: Any) -> Any:
    """The type the judge computes in: much finer than the engine's."""
    return np.longdouble if dtype == np.float64 else np.float64


def positions(tokens: int, keys: int, causal: Any, offset: int | None, length: int) -> int:
    if offset is not None:
        return offset
    return length - tokens if causal == "bottom_right" else 0


def visible_row(
    row: int, keys: int, *, causal: Any, window: Any, offset: int, start: int, length: int, mask: Array | None
) -> NDArray[np.bool_]:
    """Which keys one token may read, said as docs/reference/engine.md says it."""
    key, position = np.arange(keys), row + offset
    seen = (key >= start) & (key < length)
    if causal:
        seen &= key <= position
    if window is not None:
        left, right = window
        if left >= 0:
            seen &= key >= position - left
        if right >= 0:
            seen &= key <= position + right
    if mask is not None:
        seen &= mask if mask.dtype == np.bool_ else mask != -np.inf
    return seen


Prepared = tuple[Array, Array, NDArray[np.bool_]]


def prepared(
    q: Array,
    k: Array,
    v: Array,
    *,
    sort: Any,
    mask: Array | None = None,
    causal: Any = False,
    offset: Any = None,
    window: Any = None,
    scale: float | None = None,
    softcap: float | None = None,
    lengths: Any = None,
    starts: Any = None,
    alibi: Any = None,
    relative: Any = None,
    sinks: Any = None,
    dropout: float = 0.0,
    seed: int | None = None,
    layout: str = "bhsd",
) -> Prepared:
    """(scores with the mask added, values, which may be read), heads first and repeated, in the type
    `sort`.
    """
    if layout == "bshd" and q.ndim > 2:
        q, k, v = (a.swapaxes(-2, -3) for a in (q, k, v))
    batch = np.broadcast_shapes(q.shape[:-3], k.shape[:-3], v.shape[:-3])
    heads, tokens, keys = q.shape[-3], q.shape[-2], k.shape[-2]
    group = heads // k.shape[-3] if k.shape[-3] else 1
    q, k, v = (np.broadcast_to(a, batch + a.shape[-3:]).astype(sort) for a in (q, k, v))
    k, v = (np.repeat(a, group, axis=-3) for a in (k, v))
    scale = (q.shape[-1] ** -0.5 if q.shape[-1] else 1.0) if scale is None else scale
    whole = (*batch, heads, tokens, keys)
    allowed = None if mask is None else np.broadcast_to(mask, whole)
    lengths = np.broadcast_to(keys if lengths is None else lengths, batch)
    offsets = None if offset is None else np.broadcast_to(offset, batch)
    starts = np.broadcast_to(0 if starts is None else starts, batch)
    seen, distance = np.zeros(whole, bool), np.zeros(whole, int)
    for at in np.ndindex(*whole[:-1]):
        item = at[: len(batch)]
        length = int(lengths[item])
        place = positions(tokens, keys, causal, None if offsets is None else int(offsets[item]), length)
        here = None if allowed is None else allowed[at]
        read: dict[str, Any] = {"offset": place, "start": int(starts[item]), "length": length, "mask": here}
        seen[at] = visible_row(at[-1], keys, causal=causal, window=window, **read)
        distance[at] = np.arange(keys) - (at[-1] + place)
    scores = (q @ k.swapaxes(-1, -2)) * sort(scale)
    if softcap is not None:
        scores = sort(softcap) * np.tanh(scores / sort(softcap))
    if allowed is not None and allowed.dtype != np.bool_:
        scores = scores + allowed.astype(sort)
    if alibi is not None:
        scores = scores - np.broadcast_to(alibi, whole[:-2]).astype(sort)[..., None, None] * abs(distance)
    if relative is not None:
        reach = relative.shape[-1] // 2
        table = np.broadcast_to(relative, (*whole[:-2], 2 * reach + 1)).astype(sort)
        for at in np.ndindex(*whole[:-1]):
            row = table[at[:-1]][np.clip(distance[at], -reach, reach) + reach]
            seen[at] &= row != -np.inf
            scores[at] += row
    return scores, v, seen


def kept(shape: tuple[int, ...], sort: Any, *, dropout: float = 0.0, seed: int | None = None, **_: Any) -> Array:
    """What every weight is multiplied by: 0 where it is dropped. Which ones is a matter of their places."""
    if not dropout:
        return np.ones(shape, sort)
    *batch, heads, tokens, keys = shape
    rows = (np.arange(n) for n in (heads, tokens, keys))
    places = [keeps(dropout, seed or 0, item, *axes) for axes in [tuple(rows)] for item in range(prod(batch))]
    return np.asarray(np.reshape(places, shape).astype(sort) * sort(gain(dropout)))


def attention(q: Array, k: Array, v: Array, **options: Any) -> tuple[Array, Array, Array]:
    """(out, lse, weights) in the wider type; heads first, whatever the layout of the input."""
    if q.ndim == 2:
        out, lse, weights = attention(q[None], k[None], v[None], **options)
        return out[0], lse[0], weights[0]
    with np.errstate(all="ignore"):
        scores, v, seen = prepared(q, k, v, sort=wider(q.dtype), **options)
        sinks, drops = options.get("sinks"), kept(scores.shape, scores.dtype.type, **options)
        sinks = np.broadcast_to(-np.inf if sinks is None else sinks, scores.shape[:-2])
        lse, weights = np.full(scores.shape[:-1], -np.inf, scores.dtype), np.zeros_like(scores)
        out = np.zeros((*scores.shape[:-1], v.shape[-1]), scores.dtype)
        for at in np.ndindex(*lse.shape):
            s = scores[at][seen[at]]
            sink = sinks[at[:-1]].astype(s.dtype)
            count = s.size
            s = s if sink == -np.inf else np.append(s, sink)
            if not s.size:
                continue
            top = s.max()
            p = np.exp(s - top)
            if not np.isfinite(top):
                p = (s == top).astype(s.dtype) if (s == top).sum() == 1 else np.full_like(s, np.nan)
            lse[at] = top + np.log(p.sum())
            p = (p / p.sum())[:count]
            read = p != 0
            p = p * drops[at][seen[at]]
            weights[at][seen[at]] = p
            out[at] = p[read] @ v[at[:-1]][seen[at]][read]
    return out, lse, weights


def plain(q: Array, k: Array, v: Array, **options: Any) -> Array:
    """What anybody would write in NumPy, in the accumulation type: the measure of precision."""
    if q.ndim == 2:
        return np.asarray(plain(q[None], k[None], v[None], **options)[0])
    with np.errstate(all="ignore"):
        sort = np.float64 if q.dtype == np.float64 else np.float32
        scores, v, seen = prepared(q, k, v, sort=sort, **options)
        scores = np.where(seen, scores, sort(-np.inf))
        top = scores.max(-1, keepdims=True, initial=-np.inf)
        p = np.exp(scores - np.where(np.isfinite(top), top, 0))
        total = p.sum(-1, keepdims=True)
        if options.get("sinks") is not None:
            sinks = np.broadcast_to(options["sinks"], scores.shape[:-2]).astype(sort)[..., None, None]
            raised = np.maximum(top, sinks)
            base = np.where(np.isfinite(raised), raised, 0)
            p = np.exp(scores - base)
            total = p.sum(-1, keepdims=True) + np.exp(sinks - base)
        p /= np.where(total == 0, 1, total)
        p *= kept(p.shape, sort, **options)
        return np.asarray(p @ v)
