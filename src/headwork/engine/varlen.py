"""`attention_varlen`: sequences of different lengths, packed one after another."""

from typing import Any, Literal, Unpack, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwork.engine.arguments import Call, Causal, SharedOptions, call_of, checked_causal
from headwork.engine.arrays import Array, CallSizes, floats, same_precision, sizes, unmasked
from headwork.engine.attention import run
from headwork.engine.head_numbers import checked_dropout
from headwork.errors import HeadworkError, ShapeError

PackedLayout = Literal["shd", "hsd"]


class PackedOptions(SharedOptions, total=False):
    """What `attention_varlen` may be told, for the type checker; a test holds it to the signature."""

    causal: Causal
    dropout: float
    seed: int | None
    layout: PackedLayout


# fmt: off
@overload
def attention_varlen(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, offsets_q: ArrayLike, offsets_k: ArrayLike, *,
    return_lse: Literal[False] = False, **options: Unpack[PackedOptions],
) -> Array: ...
@overload
def attention_varlen(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, offsets_q: ArrayLike, offsets_k: ArrayLike, *,
    return_lse: Literal[True], **options: Unpack[PackedOptions],
) -> tuple[Array, Array]: ...
@overload
def attention_varlen(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, offsets_q: ArrayLike, offsets_k: ArrayLike, *,
    return_lse: bool = False, **options: Unpack[PackedOptions],
) -> Array | tuple[Array, ...]: ...
# fmt: on
def attention_varlen(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    offsets_q: ArrayLike,
    offsets_k: ArrayLike,
    *,
    causal: Causal = False,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: ArrayLike | None = None,
    alibi: ArrayLike | None = None,
    relative: ArrayLike | None = None,
    dropout: float = 0.0,
    seed: int | None = None,
    layout: PackedLayout = "shd",
    return_lse: bool = False,
    threads: int | None = None,
    out: Array | None = None,
) -> Array | tuple[Array, ...]:
    """Attention within each of several sequences that lie packed one after another, without padding.

    q (tokens, heads, d_k), k (keys, kv_heads, d_k), v (keys, kv_heads, d_v) → (tokens, heads, d_v); with
    layout="hsd" the heads come first, in and out. Sequence i has the tokens offsets_q[i]:offsets_q[i+1] and
    reads the keys offsets_k[i]:offsets_k[i+1] alone. Everything else is as in `attention`, for each sequence
    by itself; `causal=True` needs as many tokens as keys in each. The log-sum-exp is (heads, tokens).

    >>> q = np.ones((5, 1, 2))
    >>> v = np.arange(5.0).reshape(5, 1, 1)
    >>> attention_varlen(q, q, v, [0, 2, 5], [0, 2, 5])[:, 0, 0]
    array([0.5, 0.5, 3. , 3. , 3. ])
    """
    call = packed(
        q, k, v, offsets_q, offsets_k, return_lse, causal=causal, window=window, scale=scale, softcap=softcap,
        sinks=sinks, alibi=alibi, relative=relative, dropout=dropout, seed=seed, layout=layout, threads=threads,
        out=out,
    )  # fmt: skip
    return run(call)


def packed(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    offsets_q: ArrayLike,
    offsets_k: ArrayLike,
    return_lse: bool,
    **options: Unpack[PackedOptions],
) -> Call:
    """The call to work out, or the error that says what to mend."""
    q, k, v = floats("q", q), floats("k", k), floats("v", v)
    same_precision(q, k, v)
    causal = checked_causal(options["causal"])
    swapped, size = packed_sizes(q, k, v, options["layout"])
    starts_q, tokens = pieces("offsets_q", offsets_q, size.tokens)
    starts_k, keys = pieces("offsets_k", offsets_k, size.keys)
    if len(tokens) != len(keys):
        raise ShapeError(f"offsets_q has {len(tokens)} sequences and offsets_k {len(keys)}: give the same number.")
    if causal is True and (tokens != keys).any():
        first = int(np.flatnonzero(tokens != keys)[0])
        raise HeadworkError(
            f"causal=True, but sequence {first} has {tokens[first]} tokens and {keys[first]} keys: say "
            "causal='top_left' or 'bottom_right'."
        )
    call = call_of(q, k, v, size, swapped, causal, None, return_lse, options)
    shift = keys - tokens if causal == "bottom_right" else np.zeros_like(keys)
    call.spans = np.stack([starts_q, tokens, starts_k, keys, shift, np.zeros_like(keys)], axis=1)
    call.dropout, call.seed = checked_dropout(options["dropout"], options["seed"])
    return call


def packed_sizes(q: Any, k: Any, v: Any, layout: PackedLayout) -> tuple[bool, CallSizes]:
    """(do tokens come before heads, the sizes), of arrays or tensors: it asks for shapes alone."""
    if not isinstance(layout, str) or layout not in get_args(PackedLayout):
        raise HeadworkError(f'layout is {layout!r}. Give "shd" for (tokens, heads, d) or "hsd" for (heads, tokens, d).')
    if not q.ndim == k.ndim == v.ndim == 3:
        shapes = ", ".join(str(tuple(x.shape)) for x in (q, k, v))
        raise ShapeError(f"q, k, v have shapes {shapes}: packed sequences have three axes, {layout}.")
    swapped = layout == "shd"
    return swapped, sizes(q, k, v, swapped)


def pieces(name: str, given: ArrayLike, total: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(starts, lengths) of the sequences between cumulative offsets, which run from 0 to `total`."""
    offsets = unmasked(name, given)
    if offsets.ndim != 1 or offsets.size < 1 or offsets.dtype.kind not in "iu":
        raise HeadworkError(
            f"{name} is {offsets.dtype} {offsets.shape}. Give whole numbers in one row: 0, and the end of each "
            "sequence."
        )
    offsets = offsets.astype(np.int64)
    if offsets[0] != 0 or offsets[-1] != total or (np.diff(offsets) < 0).any():
        raise HeadworkError(
            f"{name} is {offsets.tolist()}. It starts at 0, never falls, and ends at {total}, the end of the array."
        )
    return offsets[:-1], np.diff(offsets)
