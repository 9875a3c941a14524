"""Attention over the keys a block at a time, for sequences that lie on several machines.

A partial result grows from block to block, and gradients are added up: `headwork.engine.continue_attention` and
`add_gradients` for tensors. Nothing is recorded for autograd.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from headwork.engine.arguments import Whole, checked_window
from headwork.engine.arrays import CallSizes, sizes
from headwork.engine.backend import kernel
from headwork.engine.partial import apart, checked_spans
from headwork.errors import HeadworkError, ShapeError
from headwork.torch.blocks_written_out import BlockPlace, add_written_out, merge_written_out
from headwork.torch.calls import accumulator, seen_by_profiler, threads

ALL = (-1, -1)
UNUSED = (None, None, None)


def forward_block(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    *,
    offset: int = 0,
    window: tuple[int, int] = ALL,
    scale: float,
    softcap: float = 0.0,
    spans: Tensor | None = None,
) -> None:
    """Attention of q over one more block of keys, merged into `out` and `lse`, which start as zeros and −∞.

    q (batch, heads, tokens, d_k), k (batch, kv_heads, keys, d_k), v (batch, kv_heads, keys, d_v); out (batch, heads,
    tokens, d_v) and lse (batch, heads, tokens) are float32, or float64 for float64; lse may be float64 too. Token i
    sits at key position i + offset of the block; causal order is a window of (left, 0). `spans` (first token, tokens,
    first key, keys, offset) are runs of tokens that read a run of keys each, the same in every batch item, in place of
    `offset`; tokens in none stay as they are.

    >>> x = torch.eye(2)[None, None]
    >>> out, lse = torch.zeros(1, 1, 2, 2), torch.full((1, 1, 2), -torch.inf)
    >>> for block in (slice(0, 1), slice(1, 2)):
    ...     forward_block(x, x[:, :, block], x[:, :, block], out, lse, scale=1.0)
    >>> out
    tensor([[[[0.7311, 0.2689],
              [0.2689, 0.7311]]]])
    """
    size = checked_sizes(q, k, v)
    sort = accumulator(q)
    rows = (*size.batch, size.heads, size.tokens)
    check("out", out, (*rows, size.d_v), sort)
    check("lse", lse, rows, sort, torch.float64)
    if not out.numel() or not size.keys:
        return
    runs = None if spans is None else checked_spans(spans.numpy(force=True), size.tokens, size.keys)
    block = BlockPlace(offset, *checked_window(window), scale, softcap, runs)
    if kernel is None or not q.is_cpu:
        merge_written_out(q, k, v, out, lse, block)
        return
    numbers = (False, *block[:5], 0.0, 0, threads())
    with seen_by_profiler("headwork::forward"):
        for query, key, value, result, sums in items((q, k, v, out, lse), runs):
            kernel.forward(query, key, value, None, result, sums, None, runs, *UNUSED, *numbers, merges=True)


def backward_block(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    d_out: Tensor,
    lse: Tensor,
    delta: Tensor,
    d_q: Tensor,
    d_k: Tensor,
    d_v: Tensor,
    *,
    offset: int = 0,
    window: tuple[int, int] = ALL,
    scale: float,
    softcap: float = 0.0,
    spans: Tensor | None = None,
) -> None:
    """Add what one block of keys gives to the gradients: p = exp(scores − lse), ds = p∘(d_out·vᵀ − delta),
    d_q += ds·k·scale, d_k += dsᵀ·q·scale, d_v += pᵀ·d_out.

    `lse` is that of the whole rows, delta = Σ d_out·out over each; the gradients, of the shapes of q, k and v, are
    float32, or float64 for float64. The rest is as `forward_block` has it; spans may share keys.
    """
    size = checked_sizes(q, k, v)
    sort = accumulator(q)
    rows = (*size.batch, size.heads, size.tokens)
    check("d_out", d_out, (*rows, size.d_v), sort, q.dtype)
    check("lse", lse, rows, sort, torch.float64)
    check("delta", delta, rows, sort)
    for name, tensor, like in (("d_q", d_q, q), ("d_k", d_k, k), ("d_v", d_v, v)):
        check(name, tensor, tuple(like.shape), sort)
    if not d_out.numel() or not size.keys:
        return
    runs = None if spans is None else checked_spans(spans.numpy(force=True), size.tokens, size.keys)
    block = BlockPlace(offset, *checked_window(window), scale, softcap, runs)
    every = (q, k, v, d_out, lse, delta, d_q, d_k, d_v)
    if kernel is None or not q.is_cpu:
        add_written_out(*every, block)
        return
    numbers = (False, *block[:5], 0.0, 0, threads())
    with seen_by_profiler("headwork::backward"):
        for query, key, value, dout, sums, slope, *into in items(every, runs):
            given = (query, key, value, None, None, sums, dout, None, *into, *UNUSED)
            for some in [None] if runs is None else apart(runs):
                kernel.backward(*given, some, *UNUSED, *numbers, delta=slope, adds=True)


def items(tensors: tuple[Tensor, ...], spans: Whole | None) -> Iterator[tuple[Tensor, ...]]:
    """All of the batch at once; with spans, which are runs in one item, an item after the other."""
    if spans is None:
        yield tensors
        return
    for item in range(tensors[0].shape[0]):
        yield tuple(tensor[item] for tensor in tensors)


def checked_sizes(q: Tensor, k: Tensor, v: Tensor) -> CallSizes:
    shapes = [tuple(t.shape) for t in (q, k, v)]
    if any(len(shape) != 4 for shape in shapes) or not q.shape[0] == k.shape[0] == v.shape[0]:
        raise ShapeError(f"q, k, v are {shapes}: give (batch, heads, tokens, d) with one batch for all.")
    if not q.dtype == k.dtype == v.dtype:
        raise HeadworkError(f"q, k, v hold {q.dtype}, {k.dtype}, {v.dtype}: give one type.")
    found: CallSizes = sizes(q, k, v, False)  # asks for shapes alone
    return found


def check(name: str, tensor: Tensor, shape: tuple[int, ...], *dtypes: torch.dtype) -> None:
    if tuple(tensor.shape) != shape or tensor.dtype not in dtypes:
        wanted = " or ".join(dict.fromkeys(str(dtype) for dtype in dtypes))
        raise ShapeError(f"{name} is {tensor.dtype} {tuple(tensor.shape)}, but here it is {wanted} {shape}.")
