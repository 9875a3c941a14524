"""The calls between one rank's tokens and the keys that lie before it, worked block by block."""

from typing import NamedTuple

import torch
from torch import Tensor

from headwork.torch.blocks import backward_block, forward_block
from headwork.torch.cluster.reading import Span


class Scores(NamedTuple):
    """How scores are made: the window in which keys are read, and what their numbers go through."""

    window: tuple[int, int]
    scale: float
    softcap: float


class Partial(NamedTuple):
    """A result that grows with every block of keys: (batch, heads, tokens, d_v) and (batch, heads, tokens)."""

    out: Tensor
    lse: Tensor


class Gradients(NamedTuple):
    """What the backward needs of this rank's tokens, and the gradient of its queries, which grows."""

    query: Tensor
    d_out: Tensor
    lse: Tensor
    delta: Tensor
    d_query: Tensor


class KeyGradients(NamedTuple):
    """Keys and values of one rank, and their gradients, which grow."""

    key: Tensor
    value: Tensor
    d_key: Tensor
    d_value: Tensor


def forward(
    query: Tensor, key: Tensor, value: Tensor, into: Partial, calls: tuple[tuple[Span, ...], ...], scores: Scores
) -> None:
    for spans in calls:
        if len(spans) > 1:
            forward_block(query, key, value, *into, spans=torch.tensor(spans, device="cpu"), **scores._asdict())
            continue
        token, tokens, first, keys, offset = spans[0]
        mine = [tensor.narrow(2, token, tokens) for tensor in (query, *into)]
        read = [tensor.narrow(2, first, keys) for tensor in (key, value)]
        forward_block(mine[0], *read, *mine[1:], offset=offset, **scores._asdict())


def backward(rows: Gradients, keys: KeyGradients, calls: tuple[tuple[Span, ...], ...], scores: Scores) -> None:
    for spans in calls:
        token, tokens, first, count, offset = spans[0]
        mine, read, runs = rows, keys, None
        if len(spans) > 1:
            offset, runs = 0, torch.tensor(spans, device="cpu")
        else:
            mine = Gradients(*(tensor.narrow(2, token, tokens) for tensor in rows))
            read = KeyGradients(*(tensor.narrow(2, first, count) for tensor in keys))
        (query, d_out, lse, delta, d_q), (k, v, d_k, d_v) = mine, read
        backward_block(query, k, v, d_out, lse, delta, d_q, d_k, d_v, offset=offset, spans=runs, **scores._asdict())
