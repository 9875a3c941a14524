"""`merge` and `merge_into`: partial results over parts of the keys, put together."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from headwork.engine.arguments import checked_threads
from headwork.engine.arrays import Array, Layout, accumulator, floats, is_swapped
from headwork.engine.attention import bits
from headwork.engine.backend import kernel
from headwork.errors import HeadworkError, ShapeError


def merge(
    outs: Sequence[ArrayLike], lses: Sequence[ArrayLike], *, layout: Layout = "bhsd", threads: int | None = None
) -> tuple[Array, Array]:
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
    if not results or len(results) != len(sums):
        raise HeadworkError(
            f"merge got {len(results)} outs and {len(sums)} lses: give one part at least, and an lse for every out."
        )
    swapped = is_swapped(layout)
    for out, lse in zip(results, sums, strict=True):
        if out.dtype != results[0].dtype:
            raise ShapeError(f"outs are {results[0].dtype} and {out.dtype}: all parts have one shape and type.")
        check(results[0], sums[0], out, lse, swapped)
    sort = accumulator(results[0])
    merged, total = np.zeros(results[0].shape, sort), np.full(sums[0].shape, -np.inf, sort)
    for out, lse in zip(results, sums, strict=True):
        join(merged, total, out, lse.astype(sort, copy=False), swapped, checked_threads(threads))
    return merged.astype(results[0].dtype, copy=False), total


def merge_into(
    out: Array,
    lse: Array,
    added: ArrayLike,
    added_lse: ArrayLike,
    *,
    layout: Layout = "bhsd",
    threads: int | None = None,
) -> None:
    """One more part of the keys, in place: out ← (1 − w)·out + w·added with w = exp(added_lse − lse) of the new
    lse = log(exp(lse) + exp(added_lse)).

    Shapes as `merge` has them. `out` may be finer than `added`: float32 keeps what 16-bit parts would round away part
    after part. A row with lse −∞ has read nothing yet, and what stands in `out` there is not looked at; where neither
    has read a key, zeros and −∞ stay.

    >>> out, lse = np.zeros((1, 2)), np.array([-np.inf])
    >>> merge_into(out, lse, [[4.0, 8.0]], [0.0])
    >>> merge_into(out, lse, [[0.0, 0.0]], [np.log(3)])
    >>> out, lse.round(4)
    (array([[1., 2.]]), array([1.3863]))
    """
    more, sums = floats("added", added), floats("added_lse", added_lse)
    swapped = is_swapped(layout)
    written("out", out)
    written("lse", lse)
    check(out, lse, more, sums, swapped)
    for name, array in (("out", out), ("added", more)):
        if (array.dtype == np.float64) != (out.dtype == np.float64):
            raise HeadworkError(f"out holds {out.dtype} and {name} {array.dtype}. float64 does not mix with others.")
    if lse.dtype not in (accumulator(out), np.float64):
        raise HeadworkError(f"lse holds {lse.dtype}: of {out.dtype} results it is {accumulator(out)} or float64.")
    join(out, lse, more, sums.astype(lse.dtype, copy=False), swapped, checked_threads(threads))


def written(name: str, array: object) -> None:
    """What is written in place is an array of the caller's own."""
    if not isinstance(array, np.ndarray):
        raise HeadworkError(f"{name} is a {type(array).__name__}: give a NumPy array, which is written in place.")
    floats(name, array)
    if not array.flags.writeable:
        raise HeadworkError(f"{name} is read-only: give an array that can be written.")


def check(out: Array, lse: Array, added: Array, added_lse: Array, swapped: bool) -> None:
    if added.shape != out.shape:
        raise ShapeError(f"outs are {out.shape} and {added.shape}: all parts have one shape and type.")
    for result, sums in ((out, lse), (added, added_lse)):
        if result.ndim < 2 or by_row(sums, swapped).shape[:-1] != result.shape[:-1]:
            raise ShapeError(f"out is {result.shape} but its lse is {sums.shape}: one number for every head and token.")


def join(out: Array, lse: Array, added: Array, added_lse: Array, swapped: bool, threads: int) -> None:
    """The merging itself, of what was checked; both lses are of one type."""
    if kernel is None:
        join_in_numpy(out, lse, added, added_lse, swapped)
    elif out.size or lse.size:
        kernel.merge(bits(out), lse, bits(added), added_lse, swapped, threads)


def join_in_numpy(out: Array, lse: Array, added: Array, added_lse: Array, swapped: bool) -> None:
    with np.errstate(all="ignore"):
        apart = lse - added_lse
        lesser = np.exp(-np.abs(apart))
        kept = np.where(apart < 0, lesser, 1) / (1 + lesser)
        total = np.where(apart < 0, added_lse, lse) + np.log1p(lesser)
        first, nothing = lse == -np.inf, added_lse == -np.inf
        sort = accumulator(out)
        old, new = (by_row(share.astype(sort), swapped) for share in (kept, 1 - kept))
        both = out.astype(sort) * old + added.astype(sort) * new
        both = np.where(by_row(first, swapped), np.where(by_row(nothing, swapped), 0, added.astype(sort)), both)
        np.copyto(out, both.astype(out.dtype), where=by_row(first | ~nothing, swapped))
        lse[...] = np.where(first, added_lse, np.where(nothing, lse, total))


def by_row(share: Array, swapped: bool) -> Array:
    """(…, heads, tokens) → one number for every row of an output."""
    return (share.swapaxes(-1, -2) if swapped and share.ndim > 1 else share)[..., None]
