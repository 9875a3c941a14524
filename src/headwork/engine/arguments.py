"""What a caller may hand to `attention`: every rule, checked once, and the call that passes them."""

from dataclasses import dataclass
from math import isfinite, prod, sqrt
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwork.engine.backend import DEFAULT_THREADS
from headwork.errors import HeadworkError, ShapeError

Array = NDArray[Any]
Layout = Literal["bhsd", "bshd"]
Causal = bool | Literal["top_left", "bottom_right"]

FLOATS = ("float16", "bfloat16", "float32", "float64")
BATCH_AXES = 8  # as many as the kernel counts


@dataclass(slots=True)
class Call:
    """A call that can be worked out. Arrays have axes (batch…, heads, tokens, d), or (…, tokens, heads, d) if `swapped`.

    `spans` has a row (first token, tokens, first key, keys, offset) for every batch item, or is None when all items
    are whole and share `offset`. `left` and `right` are −1 where unlimited; `softcap` is 0 for none.
    """

    q: Array
    k: Array
    v: Array
    mask: Array | None
    out: Array
    lse: Array | None
    weights: Array | None
    spans: NDArray[np.int64] | None
    swapped: bool
    offset: int
    left: int
    right: int
    scale: float
    softcap: float
    threads: int

    @property
    def accumulates(self) -> np.dtype[Any]:
        return accumulator(self.q)


@dataclass(slots=True, frozen=True)
class Sizes:
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


def accumulator(q: Array) -> np.dtype[Any]:
    """The type sums are kept in: float32, or float64 for float64."""
    return np.dtype(np.float64 if q.dtype == np.float64 else np.float32)


def floats(name: str, given: ArrayLike) -> Array:
    """`given` as an array of one of the four float types."""
    array = np.asarray(given)
    if array.dtype.name in FLOATS and array.dtype.isnative:
        return array
    raise HeadworkError(
        f"{name} holds {array.dtype}. Attention works on {', '.join(FLOATS)}: convert it, for example "
        f"{name}.astype(np.float32)."
    )


def same_precision(q: Array, k: Array, v: Array) -> None:
    doubles = [a.dtype == np.float64 for a in (q, k, v)]
    if any(doubles) and not all(doubles):
        raise HeadworkError(
            f"q, k, v hold {q.dtype}, {k.dtype}, {v.dtype}. float64 does not mix with narrower types: convert all three "
            "to one type (16-bit keys and values with float32 queries do mix)."
        )


def sizes(q: Array, k: Array, v: Array, swapped: bool) -> Sizes:
    """The sizes of q, k and v, when they fit together."""
    ranks = (q.ndim, k.ndim, v.ndim)
    if min(ranks) < 2 or (min(ranks) == 2 and max(ranks) > 2):
        raise ShapeError(
            f"q, k, v have shapes {q.shape}, {k.shape}, {v.shape}. Give all three as (tokens, d) for one head, or all "
            f"three as {'(…, tokens, heads, d)' if swapped else '(…, heads, tokens, d)'}."
        )
    if max(ranks) > 3 + BATCH_AXES:
        raise ShapeError(f"q, k, v have {ranks} axes. At most {BATCH_AXES} batch axes are counted: reshape them into fewer.")
    single = ranks[0] == 2
    head, row = (-2, -3) if swapped else (-3, -2)
    if single:
        heads = kv_heads = v_heads = 1
        row = -2
    else:
        heads, kv_heads, v_heads = q.shape[head], k.shape[head], v.shape[head]
    found = Sizes(
        batch(q, k, v), heads, kv_heads, q.shape[row], k.shape[row], q.shape[-1], v.shape[-1], single
    )
    if k.shape[-1] != found.d_k:
        raise ShapeError(
            f"q is {q.shape} but k is {k.shape}: q·kᵀ needs the same last axis. q has {found.d_k} columns, k {k.shape[-1]}."
        )
    if v.shape[row] != found.keys or v_heads != kv_heads:
        raise ShapeError(
            f"k is {k.shape} but v is {v.shape}: every key needs one value. k has {kv_heads} heads of {found.keys} keys, "
            f"v {v_heads} heads of {v.shape[row]}."
        )
    if heads and (kv_heads == 0 or heads % kv_heads):
        raise ShapeError(
            f"q has {heads} heads and k {kv_heads}. Every key head serves the same number of query heads: "
            f"{heads} must be a multiple of {kv_heads}."
        )
    return found


def batch(q: Array, k: Array, v: Array) -> tuple[int, ...]:
    shapes = q.shape[:-3], k.shape[:-3], v.shape[:-3]
    if shapes[0] == shapes[1] == shapes[2]:
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(
            f"the batch axes of q, k, v are {shapes[0]}, {shapes[1]}, {shapes[2]} and do not broadcast: make them equal, or 1."
        ) from None


def checked_mask(given: ArrayLike, size: Sizes) -> Array:
    mask = np.asarray(given)
    if mask.dtype != np.bool_ and mask.dtype.name not in FLOATS:
        raise HeadworkError(
            f"mask holds {mask.dtype}. A Boolean mask is True where a key may be read, a float mask is added to the "
            "scores: choose with mask.astype(bool) or mask.astype(np.float32)."
        )
    target = (*size.rows, size.keys)
    fits = mask.ndim <= len(target) and all(
        m in (1, t) for m, t in zip(mask.shape[::-1], target[::-1], strict=False)
    )
    if not fits:
        raise ShapeError(
            f"mask is {mask.shape} and does not broadcast to (…, heads, tokens, keys) = {target}: give every axis its "
            "full size, or 1."
        )
    return mask


def per_item(name: str, given: ArrayLike, size: Sizes) -> NDArray[np.int64]:
    """One whole number for every batch item."""
    array = np.asarray(given)
    if array.dtype.kind not in "iu":
        raise HeadworkError(f"{name} holds {array.dtype}. Give whole numbers.")
    try:
        return np.broadcast_to(array, size.batch).astype(np.int64).reshape(-1)
    except ValueError:
        raise ShapeError(
            f"{name} is {array.shape}, but the batch is {size.batch}: give one number, or one for every batch item."
        ) from None


def checked_lengths(given: ArrayLike, size: Sizes) -> NDArray[np.int64]:
    lengths = per_item("lengths", given, size)
    if lengths.size and (lengths.min() < 0 or lengths.max() > size.keys):
        raise HeadworkError(
            f"lengths runs from {lengths.min()} to {lengths.max()}, but there are {size.keys} keys: "
            f"give numbers from 0 to {size.keys}."
        )
    return lengths


def reach(causal: Causal, window: tuple[int, int] | None) -> tuple[int, int]:
    """How many keys before and after its own position a token reads, −1 for all of them."""
    if causal not in (False, True, "top_left", "bottom_right"):
        raise HeadworkError(f'causal is {causal!r}. Give False, True, "top_left" or "bottom_right".')
    left, right = -1, -1
    if window is not None:
        try:
            left, right = (int(side) if isinstance(side, Integral) else -2 for side in window)
        except (TypeError, ValueError):
            left = -2
        if min(left, right) < -1:
            raise HeadworkError(
                f"window is {window!r}. Give (left, right), how many keys before and after its own a token reads, −1 for all."
            )
    return left, 0 if causal else right


def alignment(
    causal: Causal, offset: ArrayLike | None, windowed: bool, size: Sizes, lengths: NDArray[np.int64] | None
) -> int | NDArray[np.int64]:
    """The key position of token 0: one number, or one for every batch item."""
    if offset is not None:
        if not causal and not windowed:
            raise HeadworkError("offset places the tokens among the keys for causal order or a window: give one of them too.")
        if isinstance(causal, str):
            raise HeadworkError(f"causal={causal!r} and offset both place the tokens: give causal=True with an offset, or no offset.")
        return int(offset) if isinstance(offset, Integral) else per_item("offset", offset, size)
    if causal == "bottom_right":
        return size.keys - size.tokens if lengths is None else lengths - size.tokens
    if causal is True and size.tokens != size.keys:
        raise HeadworkError(
            f"causal=True with {size.tokens} tokens and {size.keys} keys is ambiguous: say causal=\"top_left\" (token 0 "
            'reads key 0) or "bottom_right" (the last token reads the last key), or give the offset of token 0.'
        )
    return 0


def spans(
    size: Sizes, lengths: NDArray[np.int64] | None, offset: int | NDArray[np.int64]
) -> tuple[NDArray[np.int64] | None, int]:
    if lengths is None and isinstance(offset, int):
        return None, offset
    rows = np.zeros((prod(size.batch), 5), np.int64)
    rows[:, 1] = size.tokens
    rows[:, 3] = size.keys if lengths is None else lengths
    rows[:, 4] = offset
    return rows, 0


def checked_scale(scale: float | None, d_k: int) -> float:
    if scale is None:
        return 1 / sqrt(d_k) if d_k else 1.0
    if not isinstance(scale, Real) or not isfinite(scale):
        raise HeadworkError(f"scale is {scale!r}. Give a finite number, or None for 1/√d_k.")
    return float(scale)


def checked_softcap(softcap: float | None) -> float:
    if softcap is None:
        return 0.0
    if not isinstance(softcap, Real) or not 0 < softcap < float("inf"):
        raise HeadworkError(f"softcap is {softcap!r}. Give a positive number, or None for no cap.")
    return float(softcap)


def checked_threads(threads: int | None) -> int:
    if threads is None:
        return DEFAULT_THREADS
    if not isinstance(threads, Integral) or threads < 1:
        raise HeadworkError(f"threads is {threads!r}. Give a whole number, 1 or more, or None for the default.")
    return int(threads)


def checked_out(out: Array | None, shape: tuple[int, ...], inputs: tuple[Array | None, ...]) -> Array:
    """A fresh array for the result, or the caller's own, when it can hold it."""
    q = inputs[0]
    assert q is not None
    if out is None:
        return np.empty(shape, q.dtype)
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != q.dtype:
        given = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise ShapeError(f"out is {given}, but the result is {q.dtype} {shape}: give np.empty({shape}, {q.dtype}).")
    if not out.flags.writeable:
        raise HeadworkError("out is read-only: give an array that can be written.")
    for name, array in zip(("q", "k", "v", "mask"), inputs, strict=True):
        if array is not None and np.may_share_memory(out, array) and np.shares_memory(out, array):
            raise HeadworkError(f"out shares memory with {name}, which is still being read: give an array of its own.")
    return out


def is_swapped(layout: Layout) -> bool:
    if layout not in get_args(Layout):
        raise HeadworkError(f'layout is {layout!r}. Give "bhsd" for (…, heads, tokens, d) or "bshd" for (…, tokens, heads, d).')
    return layout == "bshd"


def checked(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    mask: ArrayLike | None,
    causal: Causal,
    offset: ArrayLike | None,
    window: tuple[int, int] | None,
    scale: float | None,
    softcap: float | None,
    lengths: ArrayLike | None,
    layout: Layout,
    return_lse: bool,
    return_weights: bool,
    threads: int | None,
    out: Array | None,
) -> Call:
    """The call to work out, or the error that says what to mend; nothing is computed before all is checked."""
    q, k, v = floats("q", q), floats("k", k), floats("v", v)
    same_precision(q, k, v)
    swapped = is_swapped(layout)
    size = sizes(q, k, v, swapped)
    allowed = None if mask is None else checked_mask(mask, size)
    left, right = reach(causal, window)
    real = None if lengths is None else checked_lengths(lengths, size)
    rows, shift = spans(size, real, alignment(causal, offset, window is not None, size, real))
    return Call(
        q=q,
        k=k,
        v=v,
        mask=allowed,
        out=checked_out(out, size.out(swapped), (q, k, v, allowed)),
        lse=np.empty(size.rows, accumulator(q)) if return_lse else None,
        weights=np.empty((*size.rows, size.keys), accumulator(q)) if return_weights else None,
        spans=rows,
        swapped=swapped,
        offset=shift,
        left=left,
        right=right,
        scale=checked_scale(scale, size.d_k),
        softcap=checked_softcap(softcap),
        threads=checked_threads(threads),
    )
