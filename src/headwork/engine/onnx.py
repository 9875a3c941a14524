"""ONNX's `Attention` operator, opsets 23 to 25, on the engine: its names, layouts and alignment."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headwork.engine.arrays import Array, accumulator, is_bool
from headwork.engine.attention import attention
from headwork.errors import HeadworkError, ShapeError

DOUBLE = 11  # ONNX's number for float64


class Outputs(NamedTuple):
    """What the operator gives: keys and values with the past before them, and scores where asked for."""

    Y: Array
    present_key: Array
    present_value: Array
    qk_matmul_output: Array | None


def onnx_attention(
    Q: Array,
    K: Array,
    V: Array,
    attn_mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    nonpad_kv_seqlen: NDArray[np.integer[Any]] | None = None,
    *,
    is_causal: int = 0,
    q_num_heads: int | None = None,
    kv_num_heads: int | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    left_window_size: int = -1,
    right_window_size: int = -1,
    qk_matmul_output_mode: int | None = None,
) -> Outputs:
    """softmax(Q·Kᵀ·scale)·V as ONNX defines it.

    Q (batch, heads, tokens, d_k), or (batch, tokens, heads·d_k) with `q_num_heads` and `kv_num_heads`; Y
    alike. Keys and values follow the past ones, (batch, kv_heads, past, d). Token 0 stands after the past;
    with `nonpad_kv_seqlen`, the last token at the last real key. A mask shorter than the keys hides the rest.

    Sums are float32 at least; a `softmax_precision` of float64 works everything out in float64. The matrix of
    scores is returned if `qk_matmul_output_mode` is given: 0 scaled, 1 after the softcap, 2 after the masks,
    3 the weights.

    >>> x = np.eye(2, dtype=np.float32)[None, None]
    >>> onnx_attention(x, x, x, is_causal=1).Y[0, 0].round(2).tolist()
    [[1.0, 0.0], [0.33000001311302185, 0.6700000166893005]]
    """
    joined = Q.ndim == 3
    if joined:
        Q, K, V = split(Q, q_num_heads), split(K, kv_num_heads), split(V, kv_num_heads)
    if (past_key is None) != (past_value is None):
        raise HeadworkError("past_key and past_value come together: give both or neither.")
    if past_key is not None and nonpad_kv_seqlen is not None:
        raise HeadworkError("nonpad_kv_seqlen and past_key are two kinds of cache: give one of them.")
    present = with_past(past_key, K), with_past(past_value, V)
    order: dict[str, Any] = {}
    if is_causal or left_window_size >= 0 or right_window_size >= 0:
        order = {"causal": bool(is_causal), "window": (left_window_size, right_window_size)}
        order["offset"] = 0 if past_key is None else past_key.shape[2]
        if nonpad_kv_seqlen is not None:
            order["offset"] = nonpad_kv_seqlen.reshape(-1) - Q.shape[2]
    if nonpad_kv_seqlen is not None:
        order["lengths"] = nonpad_kv_seqlen.reshape(-1)
    mask = None if attn_mask is None else lengthened(attn_mask, present[0].shape[2])
    sort = np.dtype(np.float64) if softmax_precision == DOUBLE else Q.dtype
    q, k, v = (array.astype(sort, copy=False) for array in (Q, *present))
    options: dict[str, Any] = {"mask": mask, "scale": scale, "softcap": softcap or None, **order}
    mode = -1 if qk_matmul_output_mode is None else qk_matmul_output_mode
    if mode < 3:
        out, scores = attention(q, k, v, **options), None if mode < 0 else stage(mode, q, k, options)
    else:
        out, scores = attention(q, k, v, return_weights=True, **options)
    out = out.astype(Q.dtype, copy=False)
    return Outputs(join(out) if joined else out, *present, None if scores is None else scores.astype(Q.dtype))


def split(array: Array, heads: int | None) -> Array:
    """(batch, tokens, heads·d) → (batch, heads, tokens, d)"""
    if not heads or array.shape[2] % heads:
        raise ShapeError(
            f"a 3-D input is {array.shape}, heads {heads}: give q_num_heads and kv_num_heads that divide the last axis."
        )
    return array.reshape(*array.shape[:2], heads, -1).swapaxes(1, 2)


def join(array: Array) -> Array:
    """(batch, heads, tokens, d) → (batch, tokens, heads·d)"""
    batch, heads, tokens, width = array.shape
    return array.swapaxes(1, 2).reshape(batch, tokens, heads * width)


def with_past(past: Array | None, new: Array) -> Array:
    return new if past is None else np.concatenate((past, new), axis=2)


def lengthened(mask: Array, keys: int) -> Array:
    """A mask for all keys: those it does not speak of are hidden."""
    missing = keys - mask.shape[-1]
    if missing <= 0:
        return mask
    hidden = np.full((*mask.shape[:-1], missing), False if is_bool(mask) else -np.inf, mask.dtype)
    return np.concatenate((mask, hidden), axis=-1)


def stage(mode: int, q: Array, k: Array, options: dict[str, Any]) -> Array:
    """The matrix of scores on its way to the softmax, up to `mode`."""
    sort, (mask, scale, softcap) = accumulator(q), (options[name] for name in ("mask", "scale", "softcap"))
    keys = np.repeat(k.astype(sort), q.shape[1] // k.shape[1], axis=1)
    scores = (q.astype(sort) @ keys.swapaxes(-1, -2)) * sort.type(q.shape[-1] ** -0.5 if scale is None else scale)
    if mode >= 1 and softcap:
        scores = sort.type(softcap) * np.tanh(scores / sort.type(softcap))
    if mode < 2:
        return np.asarray(scores)
    if mask is not None:
        scores = scores + (np.where(mask, 0, -np.inf) if is_bool(mask) else mask).astype(sort)
    return np.asarray(np.where(in_order(scores.shape, options), scores, sort.type(-np.inf)))


def in_order(shape: tuple[int, ...], order: dict[str, Any]) -> NDArray[np.bool_]:
    """Which keys lengths, causal order and window leave to each token."""
    key = np.arange(shape[-1])
    lengths = np.reshape(order.get("lengths", shape[-1]), (-1, 1, 1, 1))
    ahead = key - np.arange(shape[-2])[:, None] - np.reshape(order.get("offset", 0), (-1, 1, 1, 1))
    left, right = order.get("window", (-1, -1))
    seen = key < lengths
    if order.get("causal"):
        seen = seen & (ahead <= 0)
    if left >= 0:
        seen = seen & (-ahead <= left)
    if right >= 0:
        seen = seen & (ahead <= right)
    return np.broadcast_to(seen, shape)
