"""`attention`: softmax(q·kᵀ·scale)·v for every head, without storing the scores."""

from typing import Any, Literal, Unpack, overload

from numpy.typing import ArrayLike

from headwork.engine import blocked
from headwork.engine.arguments import Call, Causal, Options, checked
from headwork.engine.arrays import Array, Layout
from headwork.engine.backend import DEFAULT_THREADS, kernel
from headwork.engine.block_mask import BlockMask

No = Literal[False]
Yes = Literal[True]


# fmt: off
@overload
def attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, *,
    return_lse: No = False, return_weights: No = False, **options: Unpack[Options],
) -> Array: ...
@overload
def attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, *,
    return_lse: Yes, return_weights: No = False, **options: Unpack[Options],
) -> tuple[Array, Array]: ...
@overload
def attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, *,
    return_lse: No = False, return_weights: Yes, **options: Unpack[Options],
) -> tuple[Array, Array]: ...
@overload
def attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, *,
    return_lse: Yes, return_weights: Yes, **options: Unpack[Options],
) -> tuple[Array, Array, Array]: ...
@overload
def attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, *,
    return_lse: bool = False, return_weights: bool = False, **options: Unpack[Options],
) -> Array | tuple[Array, ...]: ...
# fmt: on
def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    blocks: BlockMask | None = None,
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
    return_lse: bool = False,
    return_weights: bool = False,
    threads: int | None = None,
    out: Array | None = None,
) -> Array | tuple[Array, ...]:
    """softmax(q·kᵀ·scale)·v for every head, without storing the scores.

    q (…, heads, tokens, d_k), k (…, kv_heads, keys, d_k), v (…, kv_heads, keys, d_v) → (…, heads, tokens,
    d_v), of q's type. Batch axes broadcast; query head h reads key head h // (heads / kv_heads); 2-D arrays
    are one head. float16, bfloat16, float32 or float64, any strides; sums are float32, or float64 for
    float64. A token that may read no key gives zeros.

    mask            what broadcasts to (…, heads, tokens, keys): Boolean, True = may be read; or added to the scores
    blocks          a `BlockMask`, by which whole blocks of tokens may read whole blocks of keys or not; a mask, causal
                    order and all else hold within them
    causal          token i reads keys up to its own position i + offset: True where tokens = keys, otherwise
                    "top_left" (offset 0), "bottom_right" (offset keys − tokens), or True with an explicit offset
    offset          the key position of token 0: a number, or one for every batch item
    window          (left, right): keys from position − left to position + right; −1 = all on that side
    scale           1/√d_k unless given
    softcap         scores become softcap·tanh(scores/softcap), after the scale and before the mask
    lengths         how many keys of each batch item are real; the rest is never read
    starts          the first key of each batch item that is real (left padding); those before it are never read
    sinks           (…, heads): one more score in every row of the head, without a value
    alibi           (…, heads): slope·|key − position| is taken off the scores
    relative        (…, heads, 2·r + 1): added to the scores by key − position, from −r to r; its ends hold beyond
    dropout, seed   the share of weights dropped; which ones depends on the seed and on their place, and on nothing else
    layout          "bshd" for (…, tokens, heads, d) in and out
    return_lse      also the natural log-sum-exp of each row of scores, (…, heads, tokens); −∞ where no key is read
    return_weights  also the weights, (…, heads, tokens, keys): this stores the whole matrix
    threads         how many at most; the result does not depend on it
    out             an array for the result

    >>> import numpy as np
    >>> x = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> attention(x, x, x, scale=1.0).round(3)
    array([[0.731, 0.269],
           [0.269, 0.731]])
    """
    if kernel is not None:
        # Small calls should not pay for the questions that Python asks: the kernel's are short.
        # fmt: off
        result: Array | tuple[Array, ...] | None = kernel.short_call(
            q, k, v, mask, blocks, causal, offset, window, scale, softcap, lengths, starts, sinks, alibi, relative,
            dropout, seed, layout, return_lse, return_weights, threads, out, DEFAULT_THREADS,
        )
        # fmt: on
        if result is not None:
            return result
    call = checked(
        q, k, v, mask=mask, blocks=blocks, causal=causal, offset=offset, window=window, scale=scale, softcap=softcap,
        lengths=lengths, starts=starts, sinks=sinks, alibi=alibi, relative=relative, dropout=dropout, seed=seed,
        layout=layout, return_lse=return_lse, return_weights=return_weights, threads=threads, out=out,
    )  # fmt: skip
    return run(call)


def run(call: Call) -> Array | tuple[Array, ...]:
    """Work a checked call out; (out, lse, weights) as far as asked for."""
    if kernel is None:
        blocked.forward(call)
    elif any(array is not None and array.size for array in (call.out, call.lse, call.weights)):
        arrays = (bits(array) for array in (call.q, call.k, call.v, call.mask, call.out))
        kernel.forward(*arrays, call.lse, call.weights, *described(call), **in_blocks(call))
    asked = (call.out, call.lse, call.weights)
    given = tuple(array for array in asked if array is not None)
    return given if len(given) > 1 else call.out


def described(call: Call) -> tuple[Any, ...]:
    """What the kernel is told besides the arrays of a call, in its order."""
    heads = call.heads
    numbers = (call.swapped, call.offset, call.left, call.right, call.scale, call.softcap, call.dropout, call.seed)
    return (call.spans, heads.sinks, heads.slopes, heads.table, *numbers, call.threads)


def in_blocks(call: Call) -> dict[str, Any]:
    """What the kernel is told of a table of blocks, by name."""
    if call.blocks is None:
        return {}
    return {"blocks": call.blocks, "block_tokens": call.block_tokens, "block_keys": call.block_keys}


def bits(array: Array | None) -> Array | None:
    """bfloat16 as the bits that hold it: it has no code of its own in the buffer protocol."""
    if array is not None and array.dtype.kind == "V":
        return array.view("uint16")
    return array
