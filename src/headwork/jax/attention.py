"""`dot_product_attention`: the kernel with the signature of `jax.nn.dot_product_attention`."""

import json
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import ffi
from jax.custom_derivatives import SymbolicZero

from headwork.engine import attention, attention_backward
from headwork.engine.arguments import checked_scale, checked_window
from headwork.engine.arrays import Array
from headwork.errors import HeadworkError, ShapeError
from headwork.jax.foreign import register

FORWARD, BACKWARD = "headwork_attention", "headwork_attention_backward"
Window = int | tuple[int, int] | None


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: Window = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: bool = False,
) -> Any:
    """softmax(query·keyᵀ·scale + bias)·value for every head, without storing the scores; on the CPU.

    query (batch, tokens, heads, d_k), key (batch, keys, kv_heads, d_k), value (batch, keys, kv_heads, d_v) →
    (batch, tokens, heads, d_v); or all without the batch. float16, bfloat16, float32 or float64. Under jit, vmap and
    grad (once, in reverse); the gradient of a bias is worked out where somebody asks for it.

    bias                   added to the scores; what broadcasts to (batch, heads, tokens, keys)
    mask                   Boolean, of the same shape: True = may be read
    is_causal              token i reads keys 0 to i
    query_seq_lengths      how many tokens of each batch item are real; the others give zeros
    key_value_seq_lengths  how many of its keys are; the others are never read
    local_window_size      (left, right), or one number for both: keys from i − left to i + right
    implementation         "xla" and "cudnn" are JAX's own, and are left to `jax.nn`
    return_residual        also the log-sum-exp of each row of scores, (batch, tokens, heads)

    Otherwise than in `jax.nn`: a token that may read no key gives zeros, not the mean of all values; value may have a
    width of its own; float64 is worked in float64.

    >>> x = jnp.eye(2)[:, None, :]
    >>> np.asarray(dot_product_attention(x, x, x, scale=1.0))[:, 0].round(3)
    array([[0.731, 0.269],
           [0.269, 0.731]], dtype=float32)
    """
    if implementation is not None:
        return jax.nn.dot_product_attention(
            query, key, value, bias, mask, scale=scale, is_causal=is_causal, query_seq_lengths=query_seq_lengths,
            key_value_seq_lengths=key_value_seq_lengths, local_window_size=local_window_size,
            implementation=implementation, return_residual=return_residual,
        )  # fmt: skip
    q, k, v = (_of_rank_four(name, a) for name, a in (("query", query), ("key", key), ("value", value)))
    _check(q, k, v)
    if not isinstance(is_causal, bool | np.bool_):
        raise HeadworkError(f"is_causal is {is_causal!r}. Give True or False.")
    window = (local_window_size,) * 2 if isinstance(local_window_size, int) else local_window_size
    options: dict[str, Any] = {"causal": bool(is_causal), "window": None if window is None else checked_window(window)}
    options["scale"] = None if scale is None else checked_scale(scale, 1)
    added = _added(q, k, bias, mask)
    lengths = _lengths("key_value_seq_lengths", key_value_seq_lengths, q)
    out, lse = _attended(json.dumps(options), return_residual, q, k, v, added, lengths)
    real = _lengths("query_seq_lengths", query_seq_lengths, q)
    if real is not None:
        seen = jnp.arange(q.shape[1]) < real[:, None]
        out = jnp.where(seen[:, :, None, None], out, 0)
        lse = None if lse is None else jnp.where(seen[:, None, :], lse, -jnp.inf)
    single = jnp.ndim(query) == 3
    out = out[0] if single else out
    if lse is None:
        return out
    residual = jax.lax.stop_gradient(lse.swapaxes(1, 2).astype(k.dtype))
    return out, residual[0] if single else residual


def _of_rank_four(name: str, given: Any) -> Any:
    array = jnp.asarray(given)
    if array.ndim not in (3, 4):
        raise ShapeError(f"{name} is {array.shape}. Give (batch, tokens, heads, d), or (tokens, heads, d).")
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise HeadworkError(f"{name} holds {array.dtype}. Attention works on float16, bfloat16, float32, float64.")
    return array[None] if array.ndim == 3 else array


def _check(q: Any, k: Any, v: Any) -> None:
    """What the engine would find later, inside a compiled program; types as JAX has them, all of one kind."""
    if not q.dtype == k.dtype == v.dtype:
        raise HeadworkError(f"query, key, value hold {q.dtype}, {k.dtype}, {v.dtype}. Convert all three to one type.")
    heads, kv_heads = q.shape[2], k.shape[2]
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3] or k.shape[:3] != v.shape[:3]:
        raise ShapeError(
            f"query {q.shape}, key {k.shape} and value {v.shape} do not fit: batch and d of query and key must be the "
            "same, and batch, keys and heads of key and value."
        )
    if heads and (kv_heads == 0 or heads % kv_heads):
        raise ShapeError(f"query has {heads} heads and key {kv_heads}: {heads} must be a multiple of {kv_heads}.")


def _added(q: Any, k: Any, bias: Any, mask: Any) -> Any:
    """One mask for the kernel: Boolean, or added, in which a Boolean one beside it is −∞."""
    full = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    bias = None if bias is None else _broadcasts("bias", bias, full)
    mask = None if mask is None else _broadcasts("mask", mask, full)
    if mask is not None and mask.dtype != bool:
        raise HeadworkError(f"mask holds {mask.dtype}. Give a Boolean one, True where a key may be read; add by bias=.")
    if bias is None:
        return mask
    bias = bias.astype(jnp.promote_types(q.dtype, jnp.float32))
    return bias if mask is None else jnp.where(mask, bias, -jnp.inf)


def _broadcasts(name: str, given: Any, full: tuple[int, ...]) -> Any:
    array = jnp.asarray(given)
    array = array.reshape((1,) * (4 - array.ndim) + array.shape)
    if array.ndim != 4 or any(n not in (1, m) for n, m in zip(array.shape, full, strict=True)):
        raise ShapeError(
            f"{name} is {jnp.shape(given)} and does not broadcast to (batch, heads, tokens, keys) = {full}."
        )
    return array


def _lengths(name: str, given: Any, q: Any) -> Any:
    if given is None:
        return None
    array = jnp.asarray(given)
    if array.shape != q.shape[:1] or not jnp.issubdtype(array.dtype, jnp.integer):
        raise ShapeError(f"{name} is {array.dtype} {array.shape}. Give {q.shape[0]} whole numbers, one for every item.")
    return array.astype(jnp.int32)


# What a compiled program calls. Arrays that vmap adds axes to come with axes of length 1 where they have none.


def _called(options: str, with_lse: bool, q: Any, k: Any, v: Any, added: Any, lengths: Any) -> Any:
    batch, tokens, heads, _ = q.shape
    results = [jax.ShapeDtypeStruct((batch, tokens, heads, v.shape[3]), q.dtype)]
    if with_lse:
        kind = jnp.promote_types(q.dtype, jnp.float32)
        results.append(jax.ShapeDtypeStruct((batch, heads, tokens), kind))
    found = _foreign(FORWARD, results, options, [q, k, v], added, lengths)
    return found if with_lse else (found[0], None)


def _foreign(name: str, results: list[Any], options: str, arrays: list[Any], added: Any, lengths: Any) -> Any:
    """A call with the optional arrays last; the options say which of them are there."""
    given = {"mask": added, "lengths": lengths}
    there = [kind for kind, array in given.items() if array is not None]
    text = json.dumps({**json.loads(options), "there": there})
    call = ffi.ffi_call(name, results, vmap_method="expand_dims")
    return call(*arrays, *(given[kind] for kind in there), options=text)


def _forward_rule(options: str, with_lse: bool, *primals: Any) -> Any:
    q, k, v, added, lengths = (p if p is None else p.value for p in primals)
    out, lse = _called(options, True, q, k, v, added, lengths)
    biased = added is not None and primals[3].perturbed and added.dtype != bool
    # What is kept must be arrays; that the bias wants a gradient is told by its place, which may be empty.
    return (out, lse if with_lse else None), (q, k, v, added, lengths, out, lse, (None,) if biased else ())


def _backward_rule(options: str, with_lse: bool, kept: Any, upward: Any) -> Any:
    q, k, v, added, lengths, out, lse, biased = kept
    dout = jnp.zeros_like(out) if isinstance(upward[0], SymbolicZero) else upward[0]
    results = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in ((q, k, v, added) if biased else (q, k, v))]
    dq, dk, dv, *dbias = _foreign(BACKWARD, results, options, [q, k, v, out, lse, dout], added, lengths)
    return dq, dk, dv, dbias[0] if biased else None, None


_attended = jax.custom_vjp(_called, nondiff_argnums=(0, 1))
_attended.defvjp(_forward_rule, _backward_rule, symbolic_zeros=True)


# What the program runs: NumPy arrays, and the engine.


def _forward(inputs: list[Array], results: list[Array], options: dict[str, Any]) -> None:
    asked = _asked(inputs[3:], options)
    batch = results[0].shape[:-3]
    q, k, v = (_spread(a, batch, 3) for a in inputs[:3])
    if len(results) == 1:
        attention(q, k, v, out=results[0], **asked)
    else:
        _, results[1][...] = attention(q, k, v, out=results[0], return_lse=True, **asked)


def _backward(inputs: list[Array], results: list[Array], options: dict[str, Any]) -> None:
    asked = _asked(inputs[6:], options)
    biased = len(results) == 4
    batch = results[0].shape[:-3]
    q, k, v, out, dout = (_spread(inputs[i], batch, 3) for i in (0, 1, 2, 3, 5))
    if biased:  # of every vmapped item its own; over axes that broadcast within an item it is summed
        asked["mask"] = np.broadcast_to(asked["mask"], (*batch[:-1], *asked["mask"].shape[-4:]))
    gradients = attention_backward(q, k, v, out, _spread(inputs[4], batch, 2), dout, mask_gradient=biased, **asked)
    for result, gradient in zip(results, gradients, strict=False):
        result[...] = gradient


def _spread(array: Array, batch: tuple[int, ...], inner: int) -> Array:
    """An array that a vmap did not touch, seen once for every item."""
    return array if array.shape[:-inner] == batch else np.broadcast_to(array, batch + array.shape[-inner:])


def _asked(rest: list[Array], options: dict[str, Any]) -> dict[str, Any]:
    asked: dict[str, Any] = dict(zip(options["there"], rest, strict=True))
    asked |= {"causal": "top_left" if options["causal"] else False, "window": options["window"]}
    return asked | {"scale": options["scale"], "layout": "bshd"}


register(FORWARD, _forward)
register(BACKWARD, _backward)
