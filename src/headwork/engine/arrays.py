"""Arrays that a caller hands in: their types, and the sizes they agree on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwork.errors import HeadworkError, ShapeError

Array = NDArray[Any]
Layout = Literal["bhsd", "bshd"]

FLOATS = ("float16", "bfloat16", "float32", "float64")
BATCH_AXES = 8  # as many as the kernel counts

_FLOAT_TYPES = frozenset(np.dtype(name) for name in ("float16", "float32", "float64"))
_DOUBLE, _SINGLE, _BOOL = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.bool_)


@dataclass(slots=True, frozen=True)
class CallSizes:
    """The sizes of a call: `batch` is the shape that the batch axes of q, k and v broadcast to."""

    batch: tuple[int, ...]
    heads: int
    kv_heads: int
    tokens: int
    keys: int
    d_k: int
    d_v: int
    single: bool  # 2-D arrays: one head, without an axis for it

    @property
    def rows(self) -> tuple[int, ...]:
        """The shape of one number for every head and token."""
        return (self.tokens,) if self.single else (*self.batch, self.heads, self.tokens)

    def out(self, swapped: bool) -> tuple[int, ...]:
        if self.single:
            return (self.tokens, self.d_v)
        inner = (self.tokens, self.heads) if swapped else (self.heads, self.tokens)
        return (*self.batch, *inner, self.d_v)


def is_float(dtype: np.dtype[Any]) -> bool:
    """One of the four; bfloat16 is known by its name, so that the package that defines it need not be there."""
    return dtype in _FLOAT_TYPES or (dtype.kind == "V" and dtype.name == "bfloat16")


def is_bool(array: Array) -> bool:
    return array.dtype == _BOOL


def accumulator(q: Array) -> np.dtype[Any]:
    """The type sums are kept in: float32, or float64 for float64."""
    return _DOUBLE if q.dtype == _DOUBLE else _SINGLE


def is_swapped(layout: Layout) -> bool:
    """Does the tokens' axis come before the heads'?"""
    if not isinstance(layout, str) or layout not in get_args(Layout):
        raise HeadworkError(
            f'layout is {layout!r}. Give "bhsd" for (…, heads, tokens, d) or "bshd" for (…, tokens, heads, d).'
        )
    return layout == "bshd"


def unmasked(name: str, given: ArrayLike) -> Array:
    """`given` as an array. What a masked array hides would be read as if it were not hidden: it is refused."""
    if given is None:
        raise HeadworkError(f"{name} is None. Give an array of numbers.")
    if isinstance(given, np.ma.MaskedArray):
        raise HeadworkError(
            f"{name} is a masked array, and its mask would be ignored: give {name}.data, and hide keys by mask= or "
            "lengths=."
        )
    try:
        return np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as error:  # whatever the thing itself says to NumPy
        raise HeadworkError(f"{name} is no array: {error}. Give numbers in rows of one length.") from None


def floats(name: str, given: ArrayLike) -> Array:
    """`given` as an array of one of the four float types."""
    array = unmasked(name, given)
    if is_float(array.dtype):
        return array
    raise HeadworkError(
        f"{name} holds {array.dtype}. Attention works on {', '.join(FLOATS)}: convert it, for example "
        f"{name}.astype(np.float32)."
    )


def same_precision(q: Array, k: Array, v: Array) -> None:
    if (q.dtype == _DOUBLE) == (k.dtype == _DOUBLE) == (v.dtype == _DOUBLE):
        return
    raise HeadworkError(
        f"q, k, v hold {q.dtype}, {k.dtype}, {v.dtype}. float64 does not mix with narrower types: convert all "
        "three to one type (16-bit keys and values with float32 queries do mix)."
    )


def sizes(q: Array, k: Array, v: Array, swapped: bool) -> CallSizes:
    """The sizes of q, k and v, when they fit together."""
    check_ranks(q, k, v, swapped)
    head, row = (-2, -3) if swapped else (-3, -2)
    single = q.ndim == 2
    if single:
        heads = kv_heads = v_heads = 1
        row = -2
    else:
        heads, kv_heads, v_heads = q.shape[head], k.shape[head], v.shape[head]
    d_k, keys = q.shape[-1], k.shape[row]
    if k.shape[-1] != d_k:
        raise ShapeError(
            f"q is {q.shape} but k is {k.shape}: q·kᵀ needs the same last axis. q has {d_k} columns, k {k.shape[-1]}."
        )
    if v.shape[row] != keys or v_heads != kv_heads:
        raise ShapeError(
            f"k is {k.shape} but v is {v.shape}: every key needs one value. k has {kv_heads} heads of {keys} "
            f"keys, v {v_heads} heads of {v.shape[row]}."
        )
    if heads and (kv_heads == 0 or heads % kv_heads):
        raise ShapeError(
            f"q has {heads} heads and k {kv_heads}. Every key head serves the same number of query heads: "
            f"{heads} must be a multiple of {kv_heads}."
        )
    return CallSizes(batch(q, k, v), heads, kv_heads, q.shape[row], keys, d_k, v.shape[-1], single)


def check_ranks(q: Array, k: Array, v: Array, swapped: bool) -> None:
    ranks = (q.ndim, k.ndim, v.ndim)
    if min(ranks) < 2 or (min(ranks) == 2 and max(ranks) > 2):
        raise ShapeError(
            f"q, k, v have shapes {q.shape}, {k.shape}, {v.shape}. Give all three as (tokens, d) for one head, "
            f"or all three as {'(…, tokens, heads, d)' if swapped else '(…, heads, tokens, d)'}."
        )
    if max(ranks) > 3 + BATCH_AXES:
        raise ShapeError(
            f"q, k, v have {ranks} axes, but at most {BATCH_AXES} batch axes are counted: reshape them into fewer."
        )


def batch(q: Array, k: Array, v: Array) -> tuple[int, ...]:
    """The batch axes of all three together."""
    shapes = q.shape[:-3], k.shape[:-3], v.shape[:-3]
    if shapes[0] == shapes[1] == shapes[2]:
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(
            f"the batch axes of q, k, v are {shapes[0]}, {shapes[1]}, {shapes[2]} and do not broadcast: make "
            "them equal, or 1."
        ) from None


def broadcasts(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether a shape stretches to another, counted from the last axis.

    Each size by `==`: to torch's compiler, which has symbols for sizes, `n in (1, m)` asks for the same object.
    """
    sides = zip(shape[::-1], wanted[::-1], strict=False)
    return len(shape) <= len(wanted) and all(n == 1 or n == m for n, m in sides)


def checked_mask(given: ArrayLike, size: CallSizes) -> Array:
    mask = unmasked("mask", given)
    if not is_bool(mask) and not is_float(mask.dtype):
        raise HeadworkError(
            f"mask holds {mask.dtype}. A Boolean mask is True where a key may be read, a float mask is added to "
            "the scores: choose with mask.astype(bool) or mask.astype(np.float32)."
        )
    target = (*size.rows, size.keys)
    if not broadcasts(mask.shape, target):
        raise ShapeError(
            f"mask is {mask.shape} and does not broadcast to (…, heads, tokens, keys) = {target}: give every "
            "axis its full size, or 1."
        )
    return mask


def checked_out(out: Array | None, shape: tuple[int, ...], dtype: np.dtype[Any], **inputs: Array | None) -> Array:
    """A fresh array of `dtype` for the result, or the caller's own when it can hold it: float32 for 16 bits too."""
    if out is None:
        return np.empty(shape, dtype)
    finer = _SINGLE if dtype.itemsize == 2 else dtype
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype not in (dtype, finer):
        given = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise ShapeError(f"out is {given}, but the result is {dtype} {shape}: give np.empty({shape}, {str(dtype)!r}).")
    if not out.flags.writeable:
        raise HeadworkError("out is read-only: give an array that can be written.")
    for name, array in inputs.items():
        if array is not None and np.may_share_memory(out, array) and np.shares_memory(out, array):
            raise HeadworkError(f"out shares memory with {name}, which is still being read: give an array of its own.")
    return out
