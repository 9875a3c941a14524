"""Kinds of call over several ranks, and what each is when one process works it out in float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

METHODS = ("exchange", "ulysses", "gather")
SPLITS = ("contiguous", "zigzag", "intervals")


@dataclass(frozen=True)
class Case:
    """Sizes, and the options that `ring_attention` is given."""

    name: str
    options: Mapping[str, Any] = field(
        default_factory=dict, hash=False
    )  # those of one name differ in their sizes alone
    tokens: int = 64
    heads: int = 4
    kv_heads: int = 4
    d_v: int = 8
    batch: int = 1


PACKED = {"offsets": [0, 7, 7, 30, 64]}
CASES = [
    Case("dense"),
    Case("d_v other than d_k", d_v=5),
    Case("causal", {"causal": True}),
    Case("97 tokens", {"causal": True}, tokens=97),
    Case("5 tokens", {"causal": True}, tokens=5),
    Case("5 tokens, dense", tokens=5),
    Case("window (10, 0)", {"window": (10, 0)}),
    Case("window (10, 5)", {"window": (10, 5)}),
    Case("window (0, 0)", {"window": (0, 0)}),
    Case("window (40, −1)", {"window": (40, -1)}),
    Case("grouped 8/2", {"causal": True}, heads=8, kv_heads=2),
    Case("grouped 6/1", heads=6, kv_heads=1),
    Case("grouped 6/2, 97 tokens", {"causal": True, "window": (20, 0)}, heads=6, kv_heads=2, tokens=97),
    Case("softcap", {"softcap": 5.0, "causal": True}),
    Case("scale", {"scale": 0.3}),
    Case("packed", PACKED),
    Case("packed causal", {**PACKED, "causal": True}),
    Case(
        "packed causal grouped window, batch of 2",
        {"offsets": [0, 20, 31, 97], "causal": True, "window": (10, 0)},
        tokens=97,
        heads=8,
        kv_heads=2,
        batch=2,
    ),
]


class Worked(NamedTuple):
    """Inputs, what comes from above, and what is right: the output and three gradients, float64."""

    inputs: list[Tensor]
    above: Tensor
    right: list[Tensor]


def readable(tokens: int, options: Mapping[str, Any]) -> Tensor:
    left, right = options.get("window") or (-1, -1)
    right = 0 if options.get("causal") else right
    apart = torch.arange(tokens) - torch.arange(tokens)[:, None]
    allowed = (apart >= -left if left >= 0 else apart == apart) & (apart <= right if right >= 0 else apart == apart)
    if "offsets" in options:
        document = torch.searchsorted(torch.tensor(options["offsets"][1:]), torch.arange(tokens), right=True)
        allowed &= document == document[:, None]
    return allowed


def by_hand(query: Tensor, key: Tensor, value: Tensor, options: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """(output, log-sum-exp), every score written out."""
    group = query.shape[-3] // key.shape[-3]
    key, value = (x.repeat_interleave(group, -3) for x in (key, value))
    scores = query @ key.transpose(-1, -2) * (options.get("scale") or query.shape[-1] ** -0.5)
    if options.get("softcap"):
        scores = options["softcap"] * torch.tanh(scores / options["softcap"])
    scores = scores.masked_fill(~readable(query.shape[-2], options), -torch.inf)
    return torch.softmax(scores, -1) @ value, torch.logsumexp(scores, -1)


@lru_cache
def worked(case: Case, dtype: torch.dtype = torch.float64) -> Worked:
    """The same tensors every time: they are not to be written."""
    torch.manual_seed(0)
    shapes = ((case.heads, 8), (case.kv_heads, 8), (case.kv_heads, case.d_v), (case.heads, case.d_v))
    drawn = [torch.randn(case.batch, heads, case.tokens, d, dtype=torch.float64).to(dtype) for heads, d in shapes]
    exact = [x.double().clone().requires_grad_() for x in drawn[:3]]
    out, _ = by_hand(exact[0], exact[1], exact[2], case.options)
    gradients = torch.autograd.grad(out, exact, drawn[3].double())
    return Worked(drawn[:3], drawn[3], [out.detach(), *gradients])


def split_named(name: str, tokens: int, world: int) -> Any:
    """A split; "intervals" are uneven, out of order, and leave the last of several ranks with next to nothing."""
    if name != "intervals":
        return name
    if world == 1:
        return [[(tokens // 2, tokens), (0, tokens // 2)]]
    few = min(2, tokens)
    middle = (tokens - few) // 2
    mine: list[list[tuple[int, int]]] = [[] for _ in range(world)]
    mine[-1] = [(tokens - few, tokens)]
    mine[0] = [(middle, middle + (tokens - few - middle) // 2), (0, middle // 2)]
    mine[-2] += [(middle // 2, middle), (middle + (tokens - few - middle) // 2, tokens - few)]
    return mine


def ways() -> Iterator[tuple[str, str]]:
    for split in SPLITS:
        for method in METHODS:
            yield split, method
