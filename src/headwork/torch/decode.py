"""`attention_decode`: a few new tokens read a cache, of 8, 16 or more bits, in one piece or in blocks; no gradient."""

import torch
from torch import Tensor

from headwork.engine.arguments import checked_scale, checked_softcap, reach
from headwork.engine.arrays import CallSizes, Layout, is_swapped
from headwork.engine.decode import cache_sizes, check_axes, check_scales, check_table, checked_switch, one_piece
from headwork.errors import HeadworkError
from headwork.torch.calls import accumulator
from headwork.torch.decode_operator import Given, How, decode, operator
from headwork.torch.full import Numbers, attention, check_kind, checked_biases, whole, whole_numbers
from headwork.torch.path import KNOWN, check_numbers, check_place, check_tensors, needs_gradient, where
from headwork.torch.quantize import KINDS, dequantized
from headwork.torch.report import count, dispatched


def attention_decode(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    lengths: Numbers | None = None,
    block_table: Tensor | None = None,
    k_scales: Tensor | None = None,
    v_scales: Tensor | None = None,
    causal: bool = True,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    starts: Numbers | None = None,
    sinks: Tensor | None = None,
    alibi: Tensor | None = None,
    relative: Tensor | None = None,
    layout: Layout = "bhsd",
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """`headwork.attention_decode` for tensors: the newest tokens of every sequence read the sequence's cache.

    query (batch, heads, tokens, d_k), key and value (batch, kv_heads, keys, d), or with a block_table (batch, blocks of
    a sequence) pools of blocks (blocks, kv_heads, block_size, d). 8-bit ones, torch.int8, torch.float8_e4m3fn or
    torch.float8_e5m2, have scales, as `quantize` gives them. The options mean what they mean there. It compiles, and it
    has no gradient: where one would be recorded it raises an error. Tensors that the kernel cannot read, on a GPU say,
    are gathered and worked in torch's own operations.

    >>> key, value = torch.zeros(3, 1, 2, 4), torch.arange(6.0).reshape(3, 1, 2, 1)
    >>> table = torch.tensor([[2, 0]])
    >>> attention_decode(torch.ones(1, 1, 1, 4), key, value, block_table=table, lengths=[3]).item()
    3.0
    """
    check_tensors(query, key, value)
    swapped = is_swapped(layout)
    check_cache_types(query, key, value)
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_place(name, tensor, query)
    check_axes(query, key, value, swapped)
    check_numbers(query, lengths=lengths, starts=starts, block_table=block_table)
    check_no_gradient(query, key, value, k_scales, v_scales, sinks, alibi, relative)
    scales = checked_scales("k", query, key, k_scales), checked_scales("v", query, value, v_scales)
    table = None if block_table is None else checked_table(block_table, query)
    size = cache_sizes(query, key, value, None if table is None else table.shape[1], swapped)
    if table is not None and lengths is None:
        raise HeadworkError("block_table needs lengths: how many keys each sequence has.")
    left, right = reach(checked_switch(causal), window)
    spans = spans_of(size, lengths, starts)
    biases = checked_biases(query, size, None, sinks, alibi, relative)
    how = How(swapped, left, right, checked_scale(scale, size.d_k), checked_softcap(softcap), return_lse)
    given = Given(key, value, *scales, table, spans, *biases[1:])
    check_blocks(given, key.shape[1 if swapped else 2])
    path = where(query, key, value, *scales, table, *biases)
    count("attention_decode", path)
    if path.way == "torch":
        out, lse = in_one_piece(query, given, how)
    else:
        out, lse = decode(query, given, how) if path.way == "kernel" else dispatched(operator, query, *given, *how)
    return (out, lse) if return_lse else out


def check_cache_types(query: Tensor, key: Tensor, value: Tensor) -> None:
    fine = [tensor.dtype == torch.float64 for tensor in (query, key, value)]
    known = query.dtype in KNOWN and all(t.dtype in KNOWN or t.dtype in KINDS for t in (key, value))
    if not known or any(fine) != all(fine):
        raise HeadworkError(
            f"query, key, value hold {query.dtype}, {key.dtype}, {value.dtype}. Give a query of float32, float16 or "
            f"bfloat16 and keys and values of these or of {', '.join(str(kind) for kind in KINDS)}; or float64 for all."
        )


def check_no_gradient(*tensors: Tensor | None) -> None:
    some = [tensor for tensor in tensors if isinstance(tensor, Tensor)]
    if needs_gradient(some[0], some[1], some[2], *some[3:]):
        raise HeadworkError(
            "attention_decode has no gradient, and a tensor asks for one: call it under torch.no_grad() or "
            "torch.inference_mode(), or use headwork.torch.attention, which has."
        )


def checked_scales(name: str, query: Tensor, tensor: Tensor, given: Tensor | None) -> Tensor | None:
    if given is None:
        if tensor.dtype == torch.int8:
            raise HeadworkError(f"{name} holds int8: give {name}_scales, as quantize returns them.")
        return None
    if tensor.dtype not in KINDS:
        raise HeadworkError(f"{name}_scales are for 8-bit numbers, and {name} holds {tensor.dtype}: leave them out.")
    check_kind(f"{name}_scales", given)
    check_place(f"{name}_scales", given, query)
    check_scales(name, tuple(given.shape), tuple(tensor.shape[:-1]))
    return given.to(torch.float32).reshape((1,) * (3 - given.dim()) + tuple(given.shape))


def checked_table(given: Tensor, query: Tensor) -> Tensor:
    table = whole_numbers("block_table", given)
    check_table(tuple(table.shape), query.shape[0])
    return table.contiguous()


def spans_of(size: CallSizes, lengths: Numbers | None, starts: Numbers | None) -> Tensor:
    last = whole("lengths", size.keys if lengths is None else lengths, size.batch, 0, size.keys)
    first = whole("starts", 0 if starts is None else starts, size.batch, 0, size.keys)
    zero = torch.zeros((), dtype=torch.int64, device=last.device)
    columns = (zero, zero + size.tokens, zero, last, last - size.tokens, first.to(last.device))
    return torch.stack([column.expand(size.batch) for column in columns], -1)


def check_blocks(given: Given, block_size: int) -> None:
    """Every block that a sequence reads is there. What is compiled or transformed is checked by the kernel's bounds."""
    table = given.block_table
    if table is None or torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return
    if not table.is_cpu or not table.numel():
        return
    lengths, blocks = given.spans[:, 3], given.key.shape[0]
    used = torch.arange(table.shape[1], device="cpu") * block_size < lengths[:, None]
    wrong = used & ((table < 0) | (table >= blocks))
    if wrong.any():
        item, place = wrong.nonzero()[0].tolist()
        raise HeadworkError(
            f"block_table[{item}, {place}] is {int(table[item, place])}, but there are {blocks} blocks, and sequence "
            f"{item} with its {int(lengths[item])} keys reads it: give a number from 0 to {blocks - 1}."
        )


def in_one_piece(query: Tensor, given: Given, how: How) -> tuple[Tensor, Tensor]:
    """Where the kernel cannot read the tensors: gathered, and worked in torch's own operations."""
    pairs = (given.key, given.key_scales), (given.value, given.value_scales)
    key, value = (dequantized(*pair) for pair in pairs)
    if given.block_table is not None:
        table = given.block_table.clamp(0, max(key.shape[0] - 1, 0))  # entries past a length may be anything
        key, value = (one_piece(tensor, table, how.swapped) for tensor in (key, value))
    _, _, _, lengths, offset, starts = given.spans.unbind(1)
    found = attention(
        query, key, value, offset=offset, window=(how.left, how.right), softcap=how.softcap or None, lengths=lengths,
        starts=starts, sinks=given.sinks, alibi=given.slopes, relative=given.table, scale=how.scale,
        layout="bshd" if how.swapped else "bhsd", return_lse=True,
    )  # fmt: skip
    assert isinstance(found, tuple)
    return found[0].to(query.dtype), found[1].to(accumulator(query))
