"""`attention_varlen`: packed sequences as tensors, with gradients."""

import torch
from torch import Tensor

from headwork.engine.arguments import Causal, checked_causal, checked_scale, checked_softcap, reach
from headwork.engine.varlen import PackedLayout, packed_sizes
from headwork.errors import HeadworkError, ShapeError
from headwork.torch.calls import Biases, What, accumulator
from headwork.torch.formula import worked
from headwork.torch.full import check_types, checked_biases, dropping, whole_numbers
from headwork.torch.path import check_numbers, check_tensors, where
from headwork.torch.report import count
from headwork.torch.ways import run


def attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    offsets_q: Tensor,
    offsets_k: Tensor,
    *,
    causal: Causal = False,
    window: tuple[int, int] | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    alibi: Tensor | None = None,
    relative: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    seed: int | Tensor | None = None,
    layout: PackedLayout = "shd",
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attention within each of several sequences that lie packed one after another, without padding.

    query (tokens, heads, d_k), key (keys, kv_heads, d_k), value (keys, kv_heads, d_v) → (tokens, heads, d_v); with
    layout="hsd" the heads come first. Sequence i has the tokens offsets_q[i]:offsets_q[i+1] and reads the keys
    offsets_k[i]:offsets_k[i+1] alone; both are whole numbers from 0 to the end. The log-sum-exp is (heads, tokens).

    >>> q, v = torch.ones(5, 1, 2), torch.arange(5.0).reshape(5, 1, 1)
    >>> ends = torch.tensor([0, 2, 5])
    >>> attention_varlen(q, q, v, ends, ends)[:, 0, 0]
    tensor([0.5000, 0.5000, 3.0000, 3.0000, 3.0000])
    """
    check_tensors(query, key, value)
    check_types(query, key, value)
    check_numbers(query, offsets_q=offsets_q, offsets_k=offsets_k, seed=seed)
    causal = checked_causal(causal)
    swapped, size = packed_sizes(query, key, value, layout)
    begin_q, tokens = pieces("offsets_q", offsets_q, size.tokens)
    begin_k, keys = pieces("offsets_k", offsets_k, size.keys)
    if tokens.shape != keys.shape:
        raise ShapeError(f"offsets_q has {len(tokens)} sequences and offsets_k {len(keys)}: give the same number.")
    if causal is True and not torch.compiler.is_compiling() and not torch.equal(tokens, keys):
        raise HeadworkError(
            "causal=True, but not every sequence has as many tokens as keys: say causal='top_left' or 'bottom_right'."
        )
    left, right = reach(causal, window)
    none = torch.zeros_like(keys)
    shift = keys - tokens if causal == "bottom_right" else none
    spans = torch.stack((begin_q, tokens, begin_k, keys, shift, none), -1).contiguous()
    biases = checked_biases(query, size, None, sinks, alibi, relative)
    share, drawn = dropping(dropout, seed)
    cap, factor = checked_softcap(softcap), checked_scale(scale, size.d_k)
    what = What(spans, drawn, swapped, 0, left, right, factor, cap, share)
    path = where(query, key, value, *biases)
    count("attention_varlen", path)
    if path.way == "torch":
        out, lse = one_by_one(query, key, value, biases, what)
    else:
        out, lse = run(path.way, query, key, value, biases, what, return_lse)
    return (out, lse.to(accumulator(query))) if return_lse else out


def pieces(name: str, given: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """(starts, lengths) of the sequences between cumulative offsets, which run from 0 to `total`."""
    offsets = whole_numbers(name, given)
    if offsets.dim() != 1 or not offsets.numel():
        raise HeadworkError(
            f"{name} is {offsets.dtype} {tuple(offsets.shape)}. Give whole numbers in one row: 0, and the end of each "
            "sequence."
        )
    offsets = offsets.to("cpu")
    if not torch.compiler.is_compiling():
        ends = offsets.tolist()
        if ends[0] != 0 or ends[-1] != total or ends != sorted(ends):
            raise HeadworkError(
                f"{name} is {ends}. It starts at 0, never falls, and ends at {total}, the end of the tensor."
            )
    return offsets[:-1], offsets.diff()


def one_by_one(query: Tensor, key: Tensor, value: Tensor, biases: Biases, what: What) -> tuple[Tensor, Tensor]:
    """Where the kernel cannot read the tensors: each sequence by itself, in torch's own operations."""
    assert what.spans is not None
    if what.dropout:
        raise HeadworkError("packed sequences on this way have no dropout: give tensors in plain memory on the CPU.")
    axis, outs, lses = 0 if what.swapped else 1, [], []
    for token0, tokens, key0, keys, shift, _ in what.spans.tolist():
        mine = [t.narrow(axis, a, n) for t, a, n in ((query, token0, tokens), (key, key0, keys), (value, key0, keys))]
        out, lse = worked(mine[0], mine[1], mine[2], biases, what._replace(spans=None, offset=shift))
        outs.append(out)
        lses.append(lse)
    if not outs:
        out, lse = worked(query, key, value, biases, what._replace(spans=None))
        return out, lse
    return torch.cat(outs, axis), torch.cat(lses, -1)
