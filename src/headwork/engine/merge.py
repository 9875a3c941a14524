"""`merge`: partial results over parts of the keys, put together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwork.engine.arrays import Layout, accumulator, floats, is_swapped
from headwork.errors import HeadworkError, ShapeError


def merge(
    outs: Sequence[ArrayLike], lses: Sequence[ArrayLike], *, layout: Layout = "bhsd"
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Attention over all keys from attention over parts of them: Σ exp(lse_i − lse)·out_i, lse = log Σ
    exp(lse_i).

    outs: (…, heads, tokens, d_v) each, or (…, tokens, heads, d_v) with layout="bshd"; lses: (…, heads,
    tokens) each → (out, lse) of the same shapes. A part that had no key to read, lse = −∞, adds nothing.

    >>> from headwork.engine import attention
    >>> q, k, v = np.random.default_rng(0).standard_normal((3, 4, 8))
    >>> parts = [attention(q, k[s], v[s], return_lse=True) for s in (slice(0, 3), slice(3, 4))]
    >>> out, lse = merge(*zip(*parts))
    >>> np.allclose(out, attention(q, k, v))
    True
    """
    results, sums = [floats("outs", out) for out in outs], [floats("lses", lse) for lse in lses]
    swapped = is_swapped(layout)
    check(results, sums, swapped)
    sort = accumulator(results[0])
    stacked = np.stack([lse.astype(sort) for lse in sums])
    top = stacked.max(axis=0)
    base = np.where(np.isfinite(top), top, 0)  # a row without any key: exp(−∞ − 0) = 0 for each part
    shares = np.exp(stacked - base)
    total = shares.sum(axis=0)
    with np.errstate(divide="ignore"):
        lse = base + np.log(total)
    shares /= np.where(total == 0, 1, total)
    merged = np.zeros(results[0].shape, sort)
    for share, out in zip(shares, results, strict=True):
        weight = by_row(share, swapped)
        np.add(merged, weight * out.astype(sort), out=merged, where=weight != 0)
    return merged.astype(results[0].dtype), lse


def by_row(share: NDArray[Any], swapped: bool) -> NDArray[Any]:
    """(…, heads, tokens) → one number for every row of an output."""
    return (share.swapaxes(-1, -2) if swapped and share.ndim > 1 else share)[..., None]


def check(outs: list[NDArray[Any]], lses: list[NDArray[Any]], swapped: bool) -> None:
    if not outs or len(outs) != len(lses):
        raise HeadworkError(
            f"merge got {len(outs)} outs and {len(lses)} lses: give one part at least, and an lse for every out."
        )
    for out, lse in zip(outs, lses, strict=True):
        if out.shape != outs[0].shape or out.dtype != outs[0].dtype:
            raise ShapeError(
                f"outs are {outs[0].dtype} {outs[0].shape} and {out.dtype} {out.shape}: all parts have one shape and "
                "type."
            )
        if out.ndim < 2 or by_row(lse, swapped).shape[:-1] != out.shape[:-1]:
            raise ShapeError(f"out is {out.shape} but its lse is {lse.shape}: one number for every head and token.")
