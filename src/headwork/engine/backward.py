"""`attention_backward`: the gradients of `attention`, worked out again from its log-sum-exp."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headwork.engine import blocked_backward
from headwork.engine.arguments import Call, Causal, checked
from headwork.engine.arrays import Array, Layout, is_bool
from headwork.engine.attention import bits, described, in_blocks
from headwork.engine.backend import kernel
from headwork.engine.block_mask import BlockMask
from headwork.errors import HeadworkError, ShapeError


class Gradients(NamedTuple):
    """Of q, k, v, an additive mask and what was given for the heads; each of the shape and type of what it is the
    gradient of, None where it was not asked for.
    """

    q: Array
    k: Array
    v: Array
    mask: Array | None = None
    sinks: Array | None = None
    alibi: Array | None = None
    relative: Array | None = None


def attention_backward(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    out: ArrayLike,
    lse: ArrayLike,
    dout: ArrayLike,
    *,
    dlse: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    blocks: BlockMask | None = None,
    mask_gradient: bool = False,
    bias_gradient: bool = False,
    causal: Causal = False,
    offset: ArrayLike | None = None,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    lengths: ArrayLike | None = None,
    starts: ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    alibi: ArrayLike | None = None,
    relative: ArrayLike | None = None,
    dropout: float = 0.0,
    seed: int | None = None,
    layout: Layout = "bhsd",
    threads: int | None = None,
) -> Gradients:
    """The gradients of q, k, v (and of what is added to the scores), from `dout`, that of the output.

    With p = exp(scores − lse), dp = dout·vᵀ and δ = Σ dout·out over each row:
    ds = p∘(dp − δ), dq = ds·k·scale, dk = dsᵀ·q·scale, dv = pᵀ·dout. Nothing of the size tokens × keys is stored.
    `out` and `lse` are what `attention(…, return_lse=True)` gave for the same arguments, `dlse` the gradient of `lse`
    where there is one. `mask_gradient` asks for the gradient of an additive mask, `bias_gradient` for those of alibi
    and relative; that of the sinks comes by itself. The gradients of axes that were broadcast, heads that share a key
    head included, are summed.
    What a token may not read gets nothing from it, and a token that reads no key gets zeros.

    >>> from headwork.engine import attention
    >>> x = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> out, lse = attention(x, x, x, return_lse=True)
    >>> attention_backward(x, x, x, out, lse, x).v.round(3)
    array([[0.67, 0.33],
           [0.33, 0.67]])
    """
    call = checked(
        q, k, v, mask=mask, blocks=blocks, causal=causal, offset=offset, window=window, scale=scale, softcap=softcap,
        lengths=lengths, starts=starts, sinks=sinks, alibi=alibi, relative=relative, dropout=dropout, seed=seed,
        layout=layout, threads=threads, return_lse=True, return_weights=False,
    )  # fmt: skip
    result, rows, upward, lse_upward = given_back(call, out, lse, dout, dlse)
    if mask_gradient and (call.mask is None or is_bool(call.mask)):
        raise HeadworkError("mask_gradient=True, but there is no additive mask: a Boolean one has no gradient.")
    if bias_gradient and not call.heads.distances:
        raise HeadworkError("bias_gradient=True, but there is neither alibi nor relative to have one.")
    return run(replace(call, out=result, lse=rows), upward, lse_upward, mask_gradient, bias_gradient)


def given_back(
    call: Call, out: ArrayLike, lse: ArrayLike, dout: ArrayLike, dlse: ArrayLike | None
) -> tuple[Array, Array, Array, Array | None]:
    """What came out of the forward pass, and its gradients. They may be finer: 16-bit outputs float32, lse float64."""
    result, upward = (given(name, x, call.out, call.accumulates) for name, x in (("out", out), ("dout", dout)))
    rows = given("lse", lse, call.lse, np.dtype(np.float64))
    return result, rows, upward, None if dlse is None else given("dlse", dlse, call.lse)


def given(name: str, array: ArrayLike, like: Array | None, finer: np.dtype[Any] | None = None) -> Array:
    """What the forward pass gave, when it is of the shape and a type that it gives."""
    found = np.asarray(array)
    assert like is not None
    if found.shape != like.shape or found.dtype not in (like.dtype, finer or like.dtype):
        raise ShapeError(
            f"{name} is {found.dtype} {found.shape}, but for these q, k and v it is {like.dtype} {like.shape}: give "
            f"what attention(…, return_lse=True) returned, or its gradient."
        )
    return found


def run(call: Call, dout: Array, dlse: Array | None, mask_gradient: bool, bias_gradient: bool) -> Gradients:
    """Work the gradients of a checked call out; its `out` and `lse` are the results."""
    # A key that no batch item counts as real, and a row of no sequence, is in no span and never written.
    fresh = np.empty if call.spans is None and kernel is not None else np.zeros
    batch = call.out.shape[: call.out.ndim - 3] if call.out.ndim > 3 else ()

    def room(array: Array) -> Array:
        shape = batch + array.shape[-3:]
        # What is still to be summed over the batch is not rounded before.
        return fresh(shape, array.dtype if shape == array.shape else call.accumulates)

    dq, dk, dv = room(call.q), room(call.k), room(call.v)
    dmask = np.zeros(call.mask.shape, call.accumulates) if mask_gradient and call.mask is not None else None
    heads = call.heads
    dslopes, dtable = (
        np.zeros(x.shape, call.accumulates) if bias_gradient and x is not None else None
        for x in (heads.slopes, heads.table)
    )
    if kernel is None:
        blocked_backward.backward(call, dout, dlse, dq, dk, dv, dmask, dslopes, dtable)
    else:
        arrays = (bits(array) for array in (call.q, call.k, call.v, call.mask, call.out))
        written = (bits(array) for array in (dq, dk, dv))
        biases = (None if x is None or not x.size else x for x in (dmask, dslopes, dtable))
        kernel.backward(*arrays, call.lse, bits(dout), dlse, *written, *biases, *described(call), **in_blocks(call))
    dq, dk, dv = fold(dq, call.q), fold(dk, call.k), fold(dv, call.v)
    dmask = None if dmask is None or call.mask is None else dmask.astype(call.mask.dtype)
    dsinks = None if heads.sinks is None else sink_gradient(call, heads.sinks, dout, dlse)
    return Gradients(dq, dk, dv, dmask, dsinks, dslopes, dtable)


def sink_gradient(call: Call, sinks: Array, dout: Array, dlse: Array | None) -> Array:
    """−Σ exp(sink − lse)·δ over the rows of each head: a sink has a weight and no value."""
    assert call.lse is not None
    delta = (dout.astype(np.float64) * call.out.astype(np.float64)).sum(-1)
    if call.swapped and call.out.ndim > 2:
        delta = delta.swapaxes(-1, -2)
    delta = delta if dlse is None else delta - dlse
    with np.errstate(invalid="ignore"):
        weight = np.where(sinks[..., None] == -np.inf, 0, np.exp(sinks[..., None].astype(np.float64) - call.lse))
        rows = np.where(weight == 0, 0, -weight * delta).sum(-1)
    return fold(rows, sinks)


def fold(gradient: Array, of: Array) -> Array:
    """The gradient summed over the axes that `of` was broadcast along."""
    if gradient.shape == of.shape:
        return gradient
    lead = gradient.ndim - of.ndim
    axes = tuple(i for i, n in enumerate(gradient.shape) if i < lead or (of.shape[i - lead] == 1 and n != 1))
    return np.asarray(gradient.sum(axes, keepdims=True).reshape(of.shape).astype(of.dtype))
