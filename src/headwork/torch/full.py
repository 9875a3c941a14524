"""`attention`: everything the kernel can do, for tensors, with gradients."""

from collections.abc import Sequence
from math import inf
from typing import TypeAlias

import torch
from torch import Tensor

from headwork.engine.arguments import (
    FARTHEST,
    Causal,
    check_placed,
    checked_causal,
    checked_scale,
    checked_softcap,
    reach,
)
from headwork.engine.arrays import CallSizes, Layout, broadcasts, is_swapped, sizes
from headwork.engine.backend import kernel
from headwork.engine.block_mask import BlockMask
from headwork.engine.head_numbers import check_fit, checked_dropout
from headwork.errors import HeadworkError, ShapeError
from headwork.torch.attention import at_once
from headwork.torch.block_mask import checked_blocks, written_out
from headwork.torch.calls import Biases, What, accumulator
from headwork.torch.path import KNOWN, check_numbers, check_place, check_tensors, quiet, where
from headwork.torch.report import count
from headwork.torch.ways import fresh_seed, run

Numbers: TypeAlias = int | Sequence[int] | Tensor


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    blocks: BlockMask | None = None,
    causal: Causal = False,
    offset: Numbers | None = None,
    window: tuple[int, int] | None = None,
    softcap: float | None = None,
    lengths: Numbers | None = None,
    starts: Numbers | None = None,
    sinks: Tensor | None = None,
    alibi: Tensor | None = None,
    relative: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    seed: int | Tensor | None = None,
    layout: Layout = "bhsd",
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """`headwork.attention` for tensors: every option of it, with gradients, under `torch.compile` and `torch.func`.

    query (…, heads, tokens, d_k), key (…, kv_heads, keys, d_k), value (…, kv_heads, keys, d_v) → (…, heads, tokens,
    d_v), of query's type. The options mean what they mean there; mask, sinks, alibi and relative have gradients.
    The table of `blocks` is a tensor; where the kernel cannot read the tensors at once, compiled say, the blocks are
    written out as a mask. `dropout` draws its seed from torch's generator unless one is given. Tensors that the kernel
    cannot read, on a GPU say, are worked in torch's own operations. A token that may read no key gives zeros, and no
    gradient.

    >>> x = torch.eye(2)
    >>> attention(x, x, x, scale=1.0, causal=True)
    tensor([[1.0000, 0.0000],
            [0.2689, 0.7311]])
    """
    more = (blocks, offset, window, softcap, lengths, starts, sinks, alibi, relative, seed)
    nothing_more = return_lse is False and type(dropout) is float and not dropout and all(x is None for x in more)
    nothing_more = nothing_more and (scale is None or (type(scale) is float and -inf < scale < inf))
    bhsd = type(layout) is str and layout == "bhsd"
    if nothing_more and bhsd and isinstance(causal, bool) and kernel is not None and quiet(query, key, value, mask):
        # As in scaled_dot_product_attention: a small call that asks for nothing more should not pay for the questions.
        out = at_once("attention", query, key, value, mask, causal, scale, True)
        if out is not None:
            return out
    check_tensors(query, key, value)
    check_types(query, key, value)
    check_numbers(query, lengths=lengths, starts=starts, offset=offset, seed=seed)
    swapped, causal = is_swapped(layout), checked_causal(causal)
    size: CallSizes = sizes(query, key, value, swapped)  # asks for shapes alone
    if size.single:
        query, key, value = (tensor[None] for tensor in (query, key, value))
        swapped = False
    query, key, value = (spread(tensor, size.batch) for tensor in (query, key, value))
    biases = checked_biases(query, size, mask, sinks, alibi, relative)
    left, right = reach(causal, window)
    placed = window is not None or alibi is not None or relative is not None
    shift = alignment(causal, offset, placed, size, lengths)
    spans, begin = spans_of(size, lengths, starts, shift)
    share, drawn = dropping(dropout, seed)
    cap, factor = checked_softcap(softcap), checked_scale(scale, size.d_k)
    what = What(spans, drawn, swapped, begin, left, right, factor, cap, share)
    known = checked_blocks(blocks, query, size)
    path = where(query, key, value, *biases, None if known is None else known.visible)
    count("attention", path)
    if known is not None and path.way != "kernel":
        biases, known = biases._replace(mask=written_out(known, mask, size)), None
    out, lse = run(path.way, query, key, value, biases, what, return_lse, known)
    if size.single:
        out, lse = out[0], lse[0] if return_lse else lse
    return (out, lse.to(accumulator(query))) if return_lse else out


def check_types(query: Tensor, key: Tensor, value: Tensor) -> None:
    types = {query.dtype, key.dtype, value.dtype}
    if types - set(KNOWN) or (torch.float64 in types and len(types) > 1):
        raise HeadworkError(
            f"query, key, value hold {query.dtype}, {key.dtype}, {value.dtype}. Give float32, float16 or bfloat16, or "
            "float64 for all three."
        )
    if query.is_nested or key.is_nested or value.is_nested:
        raise HeadworkError(
            "nested tensors: give packed ones to headwork.torch.attention_varlen, or padded with lengths."
        )
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_place(name, tensor, query)


def spread(tensor: Tensor, batch: tuple[int, ...]) -> Tensor:
    return tensor if tensor.shape[:-3] == batch else tensor.expand(*batch, *tensor.shape[-3:])


def checked_biases(
    query: Tensor,
    size: CallSizes,
    mask: Tensor | None,
    sinks: Tensor | None,
    alibi: Tensor | None,
    relative: Tensor | None,
) -> Biases:
    lead, dtype = (*size.batch, size.heads), accumulator(query)
    for name, tensor in (("sinks", sinks), ("alibi", alibi), ("relative", relative), ("mask", mask)):
        if tensor is None:
            continue
        check_kind(name, tensor)
        check_place(name, tensor, query)
        shape = tuple(tensor.shape)
        if name == "mask":
            whole_shape = (*lead, size.tokens, size.keys)
            check_fit(name, shape, shape, whole_shape, "what broadcasts to it", "(…, heads, tokens, keys)")
        elif name == "relative":
            if not shape or shape[-1] % 2 == 0:
                raise ShapeError(f"relative is {shape}: its last axis holds what is added at −r … r, an odd number.")
            check_fit(name, shape, shape[:-1], lead, "a row for every head")
        else:
            check_fit(name, shape, shape, lead, "a number for every head")
    numbers = (None if tensor is None else tensor.to(dtype) for tensor in (sinks, alibi, relative))
    return Biases(mask, *numbers)


def check_kind(name: str, given: object) -> None:
    """What is added to the scores is a tensor of floats; a mask may be one of Booleans."""
    if not isinstance(given, Tensor):
        kind = type(given).__name__
    elif given.is_nested:
        kind = "nested tensors"
    elif given.is_floating_point() or (name == "mask" and given.dtype == torch.bool):
        return
    else:
        kind = given.dtype
    raise HeadworkError(f"{name} holds {kind}. Give a tensor of floats{', or of Booleans' if name == 'mask' else ''}.")


def whole(name: str, given: Numbers, batch: tuple[int, ...], low: int, high: int) -> Tensor:
    """One whole number for every batch item. What is compiled or transformed is checked by the kernel's own bounds."""
    numbers = whole_numbers(name, given)
    if not broadcasts(numbers.shape, batch):
        raise ShapeError(
            f"{name} is {tuple(numbers.shape)}, but the batch is {tuple(batch)}: give one number, or one for each item."
        )
    seen = not torch.compiler.is_compiling() and not torch._C._are_functorch_transforms_active()
    if seen and type(numbers) is Tensor and numbers.is_cpu and numbers.numel():
        least, most = int(numbers.min()), int(numbers.max())
        if least < low or most > high:
            raise HeadworkError(f"{name} runs from {least} to {most}: give numbers from {low} to {high}.")
    return numbers


def whole_numbers(name: str, given: Numbers) -> Tensor:
    """As a tensor of 64 bits; what is none is refused."""
    try:
        numbers = given if isinstance(given, Tensor) else torch.as_tensor(given, device="cpu")
    except (TypeError, ValueError, RuntimeError) as error:
        why = "a number has more than 64 bits" if "Overflow" in str(error) else str(error)
        raise HeadworkError(f"{name} is no tensor: {why}. Give whole numbers that a key can have.") from None
    if numbers.dtype not in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8) or numbers.is_nested:
        raise HeadworkError(f"{name} holds {numbers.dtype}. Give whole numbers.")
    return numbers.to(torch.int64)


def alignment(
    causal: Causal, offset: Numbers | None, placed: bool, size: CallSizes, lengths: Numbers | None
) -> int | Tensor:
    """The key position of token 0: one number, or one for every batch item."""
    check_placed(causal, offset, placed, size)
    if offset is not None:
        if isinstance(offset, int) and -FARTHEST <= offset <= FARTHEST:
            return offset
        return whole("offset", offset, size.batch, -FARTHEST, FARTHEST)
    if causal == "bottom_right":
        if lengths is None:
            return size.keys - size.tokens
        return whole("lengths", lengths, size.batch, 0, size.keys) - size.tokens
    return 0


def spans_of(
    size: CallSizes, lengths: Numbers | None, starts: Numbers | None, offset: int | Tensor
) -> tuple[Tensor | None, int]:
    """(a row for every batch item, or None where all are whole; the offset that all share)."""
    if lengths is None and starts is None and isinstance(offset, int):
        return None, offset
    last: int | Tensor = size.keys if lengths is None else whole("lengths", lengths, size.batch, 0, size.keys)
    first: int | Tensor = 0 if starts is None else whole("starts", starts, size.batch, 0, size.keys)
    place = next((x.device for x in (last, offset, first) if isinstance(x, Tensor)), torch.device("cpu"))
    columns = [torch.as_tensor(x, dtype=torch.int64, device=place) for x in (0, size.tokens, 0, last, offset, first)]
    return torch.stack([x.expand(size.batch) for x in columns], -1).reshape(-1, 6), 0


def dropping(dropout: float, seed: int | Tensor | None) -> tuple[float, Tensor | None]:
    if isinstance(seed, Tensor):
        share, _ = checked_dropout(dropout, 0)
        return share, seed.to(torch.int64).reshape(()) if share else None
    share, given = checked_dropout(dropout, 0 if seed is None else seed)
    if not share:
        return 0.0, None
    if seed is None:
        return share, fresh_seed()
    if -(2**63) <= seed < 2**63:
        given = seed  # as it is: where it is a symbol of the compiler, 2**64 has no place
    return share, torch.tensor(given - 2**64 if given >= 2**63 else given, device="cpu")
