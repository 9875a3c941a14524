"""Attention as the formula has it, row by row and without a thought for speed: what the engine is judged
by.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def wider(dtype: Any) -> Any:
    """The type the judge computes in: much finer than the engine's."""
    return np.longdouble if dtype == np.float64 else np.float64


def positions(tokens: int, keys: int, causal: Any, offset: int | None, length: int) -> int:
    if offset is not None:
        return offset
    return length - tokens if causal == "bottom_right" else 0


def visible_row(
    row: int, keys: int, *, causal: Any, window: Any, offset: int, length: int, mask: Array | None
) -> NDArray[np.bool_]:
    """Which keys one token may read, said as docs/reference/engine.md says it."""
    key, position = np.arange(keys), row + offset
    seen = key < length
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
    seen = np.zeros(whole, bool)
    for at in np.ndindex(*whole[:-1]):
        item = at[: len(batch)]
        length = int(lengths[item])
        start = positions(tokens, keys, causal, None if offsets is None else int(offsets[item]), length)
        here = None if allowed is None else allowed[at]
        seen[at] = visible_row(at[-1], keys, causal=causal, window=window, offset=start, length=length, mask=here)
    scores = (q @ k.swapaxes(-1, -2)) * sort(scale)
    if softcap is not None:
        scores = sort(softcap) * np.tanh(scores / sort(softcap))
    if allowed is not None and allowed.dtype != np.bool_:
        scores = scores + allowed.astype(sort)
    return scores, v, seen


def attention(q: Array, k: Array, v: Array, **options: Any) -> tuple[Array, Array, Array]:
    """(out, lse, weights) in the wider type; heads first, whatever the layout of the input."""
    if q.ndim == 2:
        out, lse, weights = attention(q[None], k[None], v[None], **options)
        return out[0], lse[0], weights[0]
    with np.errstate(all="ignore"):
        scores, v, seen = prepared(q, k, v, sort=wider(q.dtype), **options)
        lse, weights = np.full(scores.shape[:-1], -np.inf, scores.dtype), np.zeros_like(scores)
        out = np.zeros((*scores.shape[:-1], v.shape[-1]), scores.dtype)
        for at in np.ndindex(*lse.shape):
            s = scores[at][seen[at]]
            if not s.size:
                continue
            top = s.max()
            p = np.exp(s - top)
            if not np.isfinite(top):
                p = (s == top).astype(s.dtype) if (s == top).sum() == 1 else np.full_like(s, np.nan)
            weights[at][seen[at]] = p / p.sum()
            lse[at] = top + np.log(p.sum())
            read = p != 0
            out[at] = (p / p.sum())[read] @ v[at[:-1]][seen[at]][read]
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
        p /= np.where(total == 0, 1, total)
        return np.asarray(p @ v)
