"""What a caller may ask of `attention`: every rule, checked once, and the call that passes them."""

from dataclasses import dataclass
from math import inf, prod, sqrt
from numbers import Integral, Real
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwork.engine.arrays import (
    Array,
    CallSizes,
    Layout,
    accumulator,
    checked_mask,
    checked_out,
    floats,
    is_swapped,
    same_precision,
    sizes,
    unmasked,
)
from headwork.engine.backend import DEFAULT_THREADS, MOST_THREADS
from headwork.engine.block_mask import BlockMask, checked_blocks
from headwork.engine.head_numbers import HeadNumbers, checked_dropout, checked_heads
from headwork.errors import HeadworkError, ShapeError

Causal = bool | Literal["top_left", "bottom_right"]
Whole = NDArray[np.int64]
FARTHEST = 2**60  # positions and what is added to them stay within 64 bits


class SharedOptions(TypedDict, total=False):
    """What every kind of call may be told."""

    window: tuple[int, int] | None
    scale: float | None
    softcap: float | None
    sinks: ArrayLike | None
    alibi: ArrayLike | None
    relative: ArrayLike | None
    threads: int | None
    out: Array | None


class Options(SharedOptions, total=False):
    """What `attention` may be told besides what to return, for the type checker; a test holds it to the signature."""

    mask: ArrayLike | None
    blocks: BlockMask | None
    causal: Causal
    offset: ArrayLike | None
    lengths: ArrayLike | None
    starts: ArrayLike | None
    dropout: float
    seed: int | None
    layout: Layout


@dataclass(slots=True)
class Call:
    """A call that can be worked out.

    Arrays have axes (batch…, heads, tokens, d), or (…, tokens, heads, d) if `swapped`. `spans` has a row
    (first token, tokens, first key, keys, offset, first key that may be read) for every batch item, or is None when
    all items are whole and share `offset`. `left` and `right` are −1 where unlimited; `softcap` is 0 for none.
    """

    q: Array
    k: Array
    v: Array
    out: Array
    swapped: bool
    left: int
    right: int
    scale: float
    softcap: float
    threads: int
    heads: HeadNumbers
    mask: Array | None = None
    lse: Array | None = None
    weights: Array | None = None
    spans: Whole | None = None
    offset: int = 0
    dropout: float = 0.0
    seed: int = 0
    blocks: Array | None = None  # a table, and the sizes of a block
    block_tokens: int = 0
    block_keys: int = 0

    @property
    def accumulates(self) -> np.dtype[Any]:
        return accumulator(self.q)


def per_item(name: str, given: ArrayLike, size: CallSizes) -> Whole:
    """One whole number for every batch item."""
    array = unmasked(name, given)
    long = array.dtype.kind == "O" and all(isinstance(number, int) for number in array.flat)  # beyond 64 bits
    if array.dtype.kind not in "iu" and not long:
        raise HeadworkError(f"{name} holds {array.dtype}. Give whole numbers.")
    if array.size and max(-int(array.min()), int(array.max())) > FARTHEST:
        raise HeadworkError(f"{name} runs from {array.min()} to {array.max()}: that is farther than any key can be.")
    try:
        return np.broadcast_to(array, size.batch).astype(np.int64).reshape(-1)
    except ValueError:
        raise ShapeError(
            f"{name} is {array.shape}, but the batch is {size.batch}: give one number, or one for every item."
        ) from None


def checked_places(name: str, given: ArrayLike, size: CallSizes) -> Whole:
    if type(given) is int and 0 <= given <= size.keys:  # the commonest, without NumPy's questions
        return np.full(prod(size.batch), given, np.int64)
    places = per_item(name, given, size)
    if places.size and (places.min() < 0 or places.max() > size.keys):
        raise HeadworkError(
            f"{name} runs from {places.min()} to {places.max()}, but there are {size.keys} keys: "
            f"give numbers from 0 to {size.keys}."
        )
    return places


def checked_causal(causal: Causal) -> Causal:
    """As one of the four; NumPy's True is True."""
    if isinstance(causal, bool | np.bool_):
        return bool(causal)
    if not isinstance(causal, str) or causal not in ("top_left", "bottom_right"):
        raise HeadworkError(f'causal is {causal!r}. Give False, True, "top_left" or "bottom_right".')
    return causal


def reach(causal: Causal, window: tuple[int, int] | None) -> tuple[int, int]:
    """How many keys before and after its own position a token reads, −1 for all of them."""
    causal = checked_causal(causal)
    left, right = (-1, -1) if window is None else checked_window(window)
    return left, 0 if causal else right


def checked_window(window: tuple[int, int]) -> tuple[int, int]:
    try:
        left, right = (window[i] for i in range(len(window)))  # which sets have not
    except (TypeError, ValueError, KeyError):
        left = right = -2
    if not (isinstance(left, Integral) and isinstance(right, Integral) and left >= -1 and right >= -1):
        raise HeadworkError(
            f"window is {window!r}. Give (left, right), how many keys before and after its own a token reads, −1 for "
            "all."
        )
    return min(int(left), 4 * FARTHEST - 1), min(int(right), 4 * FARTHEST - 1)  # beyond every key: all of them


def check_placed(causal: Causal, offset: object, placed: bool, size: CallSizes) -> None:
    """Whether somebody says where the tokens stand among the keys, where that matters, and only one of them."""
    if offset is not None and not causal and not placed:
        raise HeadworkError(
            "offset places the tokens among the keys for causal order, a window, alibi or relative: give one of them "
            "too."
        )
    if offset is not None and isinstance(causal, str):
        raise HeadworkError(
            f"causal={causal!r} and offset both place the tokens: give causal=True with an offset, or no offset."
        )
    if offset is None and causal is True and size.tokens != size.keys:
        raise HeadworkError(
            f"causal=True with {size.tokens} tokens and {size.keys} keys is ambiguous: say causal='top_left' (token 0 "
            "reads key 0) or 'bottom_right' (the last token reads the last key), or give the offset of token 0."
        )


def alignment(
    causal: Causal, offset: ArrayLike | None, placed: bool, size: CallSizes, lengths: Whole | None
) -> int | Whole:
    """The key position of token 0: one number, or one for every batch item."""
    check_placed(causal, offset, placed, size)
    if offset is not None:
        if isinstance(offset, Integral) and -FARTHEST <= int(offset) <= FARTHEST:
            return int(offset)
        return per_item("offset", offset, size)
    if causal == "bottom_right":
        return size.keys - size.tokens if lengths is None else lengths - size.tokens
    return 0


def spans(
    size: CallSizes, lengths: Whole | None, starts: Whole | None, offset: int | Whole
) -> tuple[Whole | None, int]:
    if lengths is None and starts is None and isinstance(offset, int):
        return None, offset
    rows = np.zeros((prod(size.batch), 6), np.int64)
    rows[:, 1] = size.tokens
    rows[:, 3] = size.keys if lengths is None else lengths
    rows[:, 4] = offset
    rows[:, 5] = 0 if starts is None else starts
    return rows, 0


def real_number(given: object) -> float | None:
    """As a float; None where it is no real number, or beyond all floats."""
    try:
        return float(given) if isinstance(given, Real) else None
    except OverflowError:
        return None


def shown(given: object) -> str:
    text = repr(given)
    return text if len(text) < 60 else f"{text[:50]}…"


def checked_scale(scale: float | None, d_k: int) -> float:
    if scale is None:
        return 1 / sqrt(d_k) if d_k else 1.0
    factor = real_number(scale)
    if factor is None or not -inf < factor < inf:  # not isfinite: torch's compiler has no symbol for it
        raise HeadworkError(f"scale is {shown(scale)}. Give a finite number, or None for 1/√d_k.")
    return factor


def checked_softcap(softcap: float | None) -> float:
    if softcap is None:
        return 0.0
    cap = real_number(softcap)
    if cap is None or not 0 < cap < float("inf"):
        raise HeadworkError(f"softcap is {shown(softcap)}. Give a positive number, or None for no cap.")
    return cap


def checked_threads(threads: int | None) -> int:
    if threads is None:
        return DEFAULT_THREADS
    if not isinstance(threads, Integral) or threads < 1:
        raise HeadworkError(f"threads is {threads!r}. Give a whole number from 1 up, or None for the default.")
    return min(int(threads), MOST_THREADS)


def call_of(
    q: Array,
    k: Array,
    v: Array,
    size: CallSizes,
    swapped: bool,
    causal: Causal,
    mask: Array | None,
    lse: bool,
    told: SharedOptions,
) -> Call:
    """A call with what every kind of call may be told. It reads all keys until its spans say otherwise."""
    left, right = reach(causal, told.get("window"))
    return Call(
        q=q,
        k=k,
        v=v,
        mask=mask,
        heads=checked_heads(q, size, told.get("sinks"), told.get("alibi"), told.get("relative")),
        out=checked_out(told.get("out"), size.out(swapped), q.dtype, q=q, k=k, v=v, mask=mask),
        lse=np.empty(size.rows, accumulator(q)) if lse else None,
        swapped=swapped,
        left=left,
        right=right,
        scale=checked_scale(told.get("scale"), size.d_k),
        softcap=checked_softcap(told.get("softcap")),
        threads=checked_threads(told.get("threads")),
    )


def checked(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, *, return_lse: bool, return_weights: bool, **options: Unpack[Options]
) -> Call:
    """The call to work out, or the error that says what to mend: nothing is computed before all is checked."""
    q, k, v = floats("q", q), floats("k", k), floats("v", v)
    same_precision(q, k, v)
    swapped, causal = is_swapped(options["layout"]), checked_causal(options["causal"])
    size = sizes(q, k, v, swapped)
    mask = None if (given := options.get("mask")) is None else checked_mask(given, size)
    lengths = None if (given := options.get("lengths")) is None else checked_places("lengths", given, size)
    starts = None if (given := options.get("starts")) is None else checked_places("starts", given, size)
    call = call_of(q, k, v, size, swapped, causal, mask, return_lse, options)
    placed = options.get("window") is not None or call.heads.distances
    shift = alignment(causal, options.get("offset"), placed, size, lengths)
    call.spans, call.offset = spans(size, lengths, starts, shift)
    call.dropout, call.seed = checked_dropout(options.get("dropout", 0.0), options.get("seed"))
    if return_weights:
        call.weights = np.empty((*size.rows, size.keys), accumulator(q))
    if (blocks := options.get("blocks")) is not None:
        call.blocks, call.block_tokens, call.block_keys = checked_blocks(blocks, size), blocks.tokens, blocks.keys
    return call
