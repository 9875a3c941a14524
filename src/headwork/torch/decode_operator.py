"""Decoding from a cache as torch's operator `headwork::attention_decode`: for compilers and transforms, no gradient."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwork.engine.backend import kernel
from headwork.torch.calls import accumulator, seen_by_profiler, threads
from headwork.torch.operator import LIBRARY
from headwork.torch.quantize import KINDS
from headwork.torch.report import count_compiled
from headwork.torch.vmap import each


class Given(NamedTuple):
    """What is read besides the queries: a cache, where its sequences lie, and what stands for every head."""

    key: Tensor
    value: Tensor
    key_scales: Tensor | None
    value_scales: Tensor | None
    block_table: Tensor | None
    spans: Tensor
    sinks: Tensor | None
    slopes: Tensor | None
    table: Tensor | None


class How(NamedTuple):
    swapped: bool
    left: int
    right: int
    scale: float
    softcap: float
    lse: bool


LIBRARY.define(
    "attention_decode(Tensor query, Tensor key, Tensor value, Tensor? key_scales, Tensor? value_scales, "
    "Tensor? block_table, Tensor spans, Tensor? sinks, Tensor? slopes, Tensor? table, bool swapped, SymInt left, "
    "SymInt right, float scale, float softcap, bool lse) -> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
operator = torch.ops.headwork.attention_decode.default


def fresh(query: Tensor, given: Given, how: How) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp, empty."""
    batch, heads, tokens, _ = query.shape
    if how.swapped:
        heads, tokens = tokens, heads
    out = query.new_empty((*query.shape[:-1], given.value.shape[-1]))
    return out, query.new_empty((batch, heads, tokens) if how.lse else (0,), dtype=accumulator(query))


def decode(query: Tensor, given: Given, how: How) -> tuple[Tensor, Tensor]:
    assert kernel is not None
    out, lse = fresh(query, given, how)
    key, value, key_scales, value_scales, block_table, spans, sinks, slopes, table = given
    if out.numel() or lse.numel():
        with seen_by_profiler("headwork::decode"):
            kernel.decode(
                query, raw(key), raw(value), key_scales, value_scales, block_table, out, lse if how.lse else None,
                spans, sinks, slopes, table, KINDS.get(key.dtype, 0), KINDS.get(value.dtype, 0), *how[:-1], threads(),
            )  # fmt: skip
    return out, lse


def raw(tensor: Tensor) -> Tensor:
    """8-bit floats as the bytes that hold them."""
    return tensor.view(torch.int8) if tensor.dtype in KINDS else tensor


def on_cpu(query: Tensor, *flat: Any) -> tuple[Tensor, Tensor]:
    count_compiled("headwork::attention_decode")
    return decode(query, Given(*flat[:9]), How(*flat[9:]))


def fake(query: Tensor, *flat: Any) -> tuple[Tensor, Tensor]:
    return fresh(query, Given(*flat[:9]), How(*flat[9:]))


def mapped(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, tuple[int, int]]:
    return each(operator, info, in_dims, args), (0, 0)


LIBRARY.impl("attention_decode", on_cpu, "CPU")
torch.library.register_fake("headwork::attention_decode", fake, lib=LIBRARY)
torch.library.register_vmap("headwork::attention_decode", mapped, lib=LIBRARY)
