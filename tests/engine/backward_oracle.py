"""The gradients of attention as the formula has them, in a type of choice: what the engine's are judged by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.engine import oracle

Array = NDArray[Any]


def folded(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Summed over the axes that an array of this shape was broadcast along."""
    lead = gradient.ndim - len(shape)
    axes = tuple(i for i, n in enumerate(gradient.shape) if i < lead or (shape[i - lead] == 1 and n > 1))
    return np.asarray(gradient.sum(axes, keepdims=True).reshape(shape))


def gradients(
    q: Array, k: Array, v: Array, out: Array, dout: Array, *, sort: Any, dlse: Array | None = None, **options: Any
) -> tuple[Any, ...]:
    """(dq, dk, dv, dmask, dsinks, dalibi, drelative) for given `out`, in the layout of the input; `sort` is the type of
    every step.
    """
    if q.ndim == 2:
        inner = None if dlse is None else dlse[None]
        arrays = (a[None] for a in (q, k, v, out, dout))
        dq, dk, dv, *biases = gradients(*arrays, sort=sort, dlse=inner, **options)
        return dq[0], dk[0], dv[0], *biases
    swap = options.get("layout") == "bshd"
    with np.errstate(all="ignore"):
        scores, values, seen = oracle.prepared(q, k, v, sort=sort, **options)
        if swap:
            q, k, v, out, dout = (a.swapaxes(-2, -3) for a in (q, k, v, out, dout))
        batch, group = scores.shape[:-3], q.shape[-3] // k.shape[-3]
        keys = np.repeat(np.broadcast_to(k, batch + k.shape[-3:]).astype(sort), group, axis=-3)
        queries = np.broadcast_to(q, batch + q.shape[-3:]).astype(sort)
        scores = np.where(seen, scores, -np.inf)
        top = scores.max(-1, keepdims=True)
        sinks = options.get("sinks")
        sink = np.broadcast_to(-np.inf if sinks is None else sinks, scores.shape[:-2]).astype(sort)[..., None, None]
        top = np.maximum(top, sink)
        base = np.where(np.isfinite(top), top, 0)
        p, sunk = np.where(seen, np.exp(scores - base), 0), np.exp(sink - base)
        total = p.sum(-1, keepdims=True) + sunk
        total = np.where(total == 0, 1, total)
        p, sunk, drops = p / total, sunk / total, oracle.kept(scores.shape, sort, **options)
        upward = dout.astype(sort)
        delta = (upward * out.astype(sort)).sum(-1, keepdims=True)
        delta = delta if dlse is None else delta - dlse.astype(sort)[..., None]
        ds = np.where(seen, p * (drops * (upward @ values.swapaxes(-1, -2)) - delta), 0).astype(sort)
        heads = of_heads(ds, -(sunk * delta)[..., 0], **options)
        p = p * drops
        mask, bent = options.get("mask"), ds
        scale = sort(q.shape[-1] ** -0.5 if options.get("scale") is None else options["scale"])
        if options.get("softcap") is not None:
            raw = queries @ keys.swapaxes(-1, -2) * scale
            bent = np.where(seen, ds * (1 - np.tanh(raw / sort(options["softcap"])) ** 2), 0)
        dq = bent @ keys * scale
        dk, dv = bent.swapaxes(-1, -2) @ queries * scale, p.swapaxes(-1, -2) @ upward
        dk, dv = (
            a.reshape(*batch, k.shape[-3], group, *a.shape[-2:]).sum(-3) for a in (dk, dv)
        )  # heads that share a key head
        dq, dk, dv = (folded(a, b.shape) for a, b in ((dq, q), (dk, k), (dv, v)))
    if swap:
        dq, dk, dv = (a.swapaxes(-2, -3) for a in (dq, dk, dv))
    additive = mask is not None and mask.dtype != np.bool_
    return dq, dk, dv, folded(ds, mask.shape) if additive and mask is not None else None, *heads


def of_heads(ds: Array, dsinks: Array, **options: Any) -> tuple[Array | None, Array | None, Array | None]:
    """Of the sinks, the slopes and the table of relative positions."""
    batch, tokens, keys = ds.shape[:-3], ds.shape[-2], ds.shape[-1]
    sinks, alibi, relative = (options.get(name) for name in ("sinks", "alibi", "relative"))
    lengths = np.broadcast_to(keys if options.get("lengths") is None else options["lengths"], batch)
    offsets = None if options.get("offset") is None else np.broadcast_to(options["offset"], batch)
    dslopes, reach = np.zeros(ds.shape[:-2], ds.dtype), 0 if relative is None else relative.shape[-1] // 2
    dtable = np.zeros((*ds.shape[:-2], 2 * reach + 1), ds.dtype)
    for at in np.ndindex(*ds.shape[:-1]):
        item = at[: len(batch)]
        given = None if offsets is None else int(offsets[item])
        place = oracle.positions(tokens, keys, options.get("causal"), given, int(lengths[item]))
        distance = np.arange(keys) - (at[-1] + place)
        dslopes[at[:-1]] -= (ds[at] * abs(distance)).sum()
        np.add.at(dtable[at[:-1]], np.clip(distance, -reach, reach) + reach, ds[at])
    return (
        None if sinks is None else folded(dsinks.sum(-1), sinks.shape),
        None if alibi is None else folded(dslopes, alibi.shape),
        None if relative is None else folded(dtable, relative.shape),
    )
