"""Attention over the keys a block at a time, for keys that arrive in pieces or lie on several machines:
`continue_attention` adds a block to a partial result, `add_gradients` what it gives to the gradients.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headwork.engine import blocked, blocked_backward
from headwork.engine.arguments import Call, Causal, Options, Whole, checked
from headwork.engine.arrays import Array, Layout, unmasked
from headwork.engine.attention import bits, described
from headwork.engine.backend import kernel
from headwork.engine.merge import join, written
from headwork.errors import HeadworkError, ShapeError


def continue_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    out: Array,
    lse: Array,
    *,
    causal: Causal = False,
    offset: ArrayLike | None = None,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    lengths: ArrayLike | None = None,
    starts: ArrayLike | None = None,
    spans: ArrayLike | None = None,
    layout: Layout = "bhsd",
    threads: int | None = None,
) -> None:
    """Attention of q over one more block of keys, merged in place: with o, l its result and its log-sum-exp,
    lse ← log(exp(lse) + exp(l)) and out ← out·exp(old lse − lse) + o·exp(l − lse).

    q, k, v and the options are as `attention` has them; `offset` is the position of token 0 counted from this block's
    first key, so it may be negative or beyond it. `out` (…, heads, tokens, d_v) and `lse` (…, heads, tokens) are
    float32, or float64 for float64, whatever q is: 16-bit partial results would lose digits block by block; `lse` may
    be float64 too. They start as zeros and −∞.
    `spans`, for arrays without batch axes: rows of (first token, tokens, first key, keys, offset), each a run of tokens
    that reads one run of keys, in the order of the tokens. They may share keys. Tokens in no span stay as they are.

    >>> q, k, v = np.random.default_rng(0).standard_normal((3, 1, 4, 8))
    >>> out, lse = np.zeros((1, 4, 8)), np.full((1, 4), -np.inf)
    >>> for first in (0, 2):
    ...     block = slice(first, first + 2)
    ...     continue_attention(q, k[:, block], v[:, block], out, lse, causal=True, offset=-first)
    >>> from headwork.engine import attention
    >>> np.allclose(out, attention(q, k, v, causal=True))
    True
    """
    asked: Options = {"causal": causal, "offset": offset, "window": window, "scale": scale, "softcap": softcap}
    asked |= {"lengths": lengths, "starts": starts, "layout": layout, "threads": threads}
    call = block_call(q, k, v, spans, asked)
    check_written({"out": (out, call.out.shape), "lse": (lse, rows_of(call))}, call)
    if kernel is None:
        fresh = replace(call, out=np.zeros_like(out), lse=np.full_like(lse, -np.inf))
        blocked.forward(fresh)
        assert fresh.lse is not None
        join(out, lse, fresh.out, fresh.lse, call.swapped, call.threads)
    elif out.size or lse.size:
        arrays = (bits(array) for array in (call.q, call.k, call.v))
        kernel.forward(*arrays, None, out, lse, None, *described(call), merges=True)


def add_gradients(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    dout: ArrayLike,
    lse: ArrayLike,
    delta: ArrayLike,
    dq: Array,
    dk: Array,
    dv: Array,
    *,
    causal: Causal = False,
    offset: ArrayLike | None = None,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    lengths: ArrayLike | None = None,
    starts: ArrayLike | None = None,
    spans: ArrayLike | None = None,
    layout: Layout = "bhsd",
    threads: int | None = None,
) -> None:
    """Add what one block of keys gives to the gradients: with p = exp(scores − lse) and ds = p∘(dout·vᵀ − delta),
    dq += ds·k·scale, dk += dsᵀ·q·scale, dv += pᵀ·dout.

    `lse` and delta = Σ dout·out, both (…, heads, tokens), are those of the whole rows, over all blocks; lse in float32
    or float64. dq, dk and dv have the shapes of q, k and v, which have the same batch axes, and are float32, or float64
    for float64. The rest is as `continue_attention` has it.

    >>> q, k, v = np.random.default_rng(0).standard_normal((3, 1, 4, 8))
    >>> from headwork.engine import attention, attention_backward
    >>> out, lse = attention(q, k, v, return_lse=True)
    >>> dq, dk, dv = np.zeros((3, 1, 4, 8))
    >>> for block in (slice(0, 2), slice(2, 4)):
    ...     into = dq, dk[:, block], dv[:, block]
    ...     add_gradients(q, k[:, block], v[:, block], out, lse, (out * out).sum(-1), *into)
    >>> np.allclose(dq, attention_backward(q, k, v, out, lse, out).q)
    True
    """
    asked: Options = {"causal": causal, "offset": offset, "window": window, "scale": scale, "softcap": softcap}
    asked |= {"lengths": lengths, "starts": starts, "layout": layout, "threads": threads}
    call = block_call(q, k, v, spans, asked)
    if not call.q.shape[:-3] == call.k.shape[:-3] == call.v.shape[:-3]:
        shapes = f"{call.q.shape}, {call.k.shape}, {call.v.shape}"
        raise ShapeError(f"q, k, v are {shapes}: what gradients are added to is broadcast along no batch axis.")
    rows, fine = rows_of(call), (call.accumulates, np.dtype(np.float64))
    upward = read("dout", dout, call.out.shape, (call.q.dtype, call.accumulates))
    sums, slope = read("lse", lse, rows, fine), read("delta", delta, rows, (call.accumulates,))
    into = {"dq": (dq, call.q.shape), "dk": (dk, call.k.shape), "dv": (dv, call.v.shape)}
    check_written(into, call, dout=upward, lse=sums, delta=slope)
    call = replace(call, out=upward, lse=sums)
    if kernel is None:
        blocked_backward.backward(call, upward, None, dq, dk, dv, delta=slope)
        return
    arrays = [bits(array) for array in (call.q, call.k, call.v)]
    given = (*arrays, None, None, sums, bits(upward), None, dq, dk, dv, None, None, None)
    for some in [call.spans] if spans is None or call.spans is None else apart(call.spans):
        kernel.backward(*given, *described(replace(call, spans=some)), delta=slope, adds=True)


def block_call(q: ArrayLike, k: ArrayLike, v: ArrayLike, spans: ArrayLike | None, asked: Options) -> Call:
    """The call for one block; its out and lse are shapes alone."""
    if spans is not None:
        told = [name for name in ("offset", "lengths", "starts") if asked[name] is not None]
        if told:
            raise HeadworkError(f"spans say where every run lies: leave {' and '.join(told)} out.")
        asked["offset"] = 0 if asked["causal"] or asked["window"] is not None else None
    call = checked(q, k, v, **asked, return_lse=True, return_weights=False)
    if spans is None:
        return call
    if call.out.ndim != 3 or not call.q.ndim == call.k.ndim == call.v.ndim:
        raise ShapeError(f"spans are runs in arrays of three axes, and the result is {call.out.shape}: one batch item.")
    row = -3 if call.swapped else -2
    return replace(call, spans=checked_spans(spans, call.q.shape[row], call.k.shape[row]))


def rows_of(call: Call) -> tuple[int, ...]:
    assert call.lse is not None
    return call.lse.shape


def read(name: str, given: ArrayLike, shape: tuple[int, ...], types: tuple[np.dtype[Any], ...]) -> Array:
    array = unmasked(name, given)
    if array.shape != shape or array.dtype not in types:
        wanted = " or ".join(dict.fromkeys(str(dtype) for dtype in types))
        raise ShapeError(f"{name} is {array.dtype} {array.shape}, but for these q, k and v it is {wanted} {shape}.")
    return array


def check_written(into: dict[str, tuple[Array, tuple[int, ...]]], call: Call, **others: Array) -> None:
    """What is added to can be written, is of the type of the sums, and is not read or written twice."""
    known: dict[str, Array] = {"q": call.q, "k": call.k, "v": call.v, **others}
    for name, (array, shape) in into.items():
        written(name, array)
        fine = (call.accumulates, np.dtype(np.float64)) if name == "lse" else (call.accumulates,)
        read(name, array, shape, fine)
        for other, memory in known.items():
            if np.may_share_memory(array, memory) and np.shares_memory(array, memory):
                raise HeadworkError(f"{name} shares memory with {other}: give an array of its own.")
        known[name] = array


def checked_spans(given: ArrayLike, tokens: int, keys: int) -> Whole:
    spans = unmasked("spans", given)
    if spans.ndim != 2 or spans.shape[1] != 5 or spans.dtype.kind not in "iu":
        raise HeadworkError(
            f"spans are {spans.dtype} {spans.shape}. Give rows of whole numbers: first token, tokens, first key, keys, "
            "offset."
        )
    table = np.zeros((len(spans), 6), np.int64)
    table[:, :5] = spans
    for what, first, count, limit in (("tokens", *table[:, :2].T, tokens), ("keys", *table[:, 2:4].T, keys)):
        if (first < 0).any() or (count < 0).any() or (first + count > limit).any():
            raise HeadworkError(f"spans lead out of the {limit} {what}: {spans.tolist()}.")
    if (table[1:, 0] < table[:-1, 0] + table[:-1, 1]).any():
        raise HeadworkError(f"spans are in the order of their tokens and share none: {spans.tolist()}.")
    return table


def apart(spans: Whole) -> list[Whole]:
    """The spans in as few goes as can be, in none of which two share keys: sums that meet would depend on chance."""
    goes: list[list[int]] = []
    ends: list[int] = []
    for i in np.argsort(spans[:, 2], kind="stable").tolist():
        first, count = int(spans[i, 2]), int(spans[i, 3])
        go = next((g for g, end in enumerate(ends) if end <= first), len(goes))
        if go == len(goes):
            goes.append([])
            ends.append(0)
        goes[go].append(i)
        ends[go] = first + count
    return [np.ascontiguousarray(spans[sorted(go)]) for go in goes]
