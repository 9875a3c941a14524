"""`attention_varlen_backward`: the gradients of packed sequences."""

from dataclasses import replace

from numpy.typing import ArrayLike

from headwork.engine.arguments import Causal
from headwork.engine.backward import Gradients, given_back, run
from headwork.engine.varlen import PackedLayout, packed
from headwork.errors import HeadworkError


def attention_varlen_backward(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    out: ArrayLike,
    lse: ArrayLike,
    dout: ArrayLike,
    offsets_q: ArrayLike,
    offsets_k: ArrayLike,
    *,
    dlse: ArrayLike | None = None,
    bias_gradient: bool = False,
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
    threads: int | None = None,
) -> Gradients:
    """The gradients of q, k, v (and of sinks, alibi, relative) from `dout`, for every sequence by itself.

    `out` and `lse` are what `attention_varlen(…, return_lse=True)` gave for the same arguments; the equations are those
    of `attention_backward`. What lies in no sequence has a gradient of zero.

    >>> import numpy as np
    >>> from headwork.engine import attention_varlen
    >>> q, v = np.ones((5, 1, 2)), np.arange(5.0).reshape(5, 1, 1)
    >>> out, lse = attention_varlen(q, q, v, [0, 2, 5], [0, 2, 5], return_lse=True)
    >>> attention_varlen_backward(q, q, v, out, lse, v, [0, 2, 5], [0, 2, 5]).v[:, 0, 0]
    array([0.5, 0.5, 3. , 3. , 3. ])
    """
    call = packed(
        q, k, v, offsets_q, offsets_k, True, causal=causal, window=window, scale=scale, softcap=softcap, sinks=sinks,
        alibi=alibi, relative=relative, dropout=dropout, seed=seed, layout=layout, threads=threads,
    )  # fmt: skip
    if bias_gradient and not call.heads.distances:
        raise HeadworkError("bias_gradient=True, but there is neither alibi nor relative to have one.")
    result, rows, upward, lse_upward = given_back(call, out, lse, dout, dlse)
    return run(replace(call, out=result, lse=rows), upward, lse_upward, False, bias_gradient)
