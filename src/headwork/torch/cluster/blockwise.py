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


def forward(
    query: Tensor, key: Tensor, value: Tensor, into: Partial, calls: tuple[tuple[Span, ...], ...], scores: Scores
) -> None:
    for spans in calls:
        if len(spans) > 1:
            forward_block(query, key, value, *into, spans=torch.tensor(spans), **scores._asdict())
            continue
        token, tokens, first, keys, offset = spans[0]
        mine = [tensor.narrow(2, token, tokens) for tensor in (query, *into)]
        read = [tensor.narrow(2, first, keys) for tensor in (key, value)]
        forward_block(mine[0], *read, *mine[1:], offset=offset, **scores._asdict())


def backward(
    rows: Gradients,
    key: Tensor,
    value: Tensor,
    d_key: Tensor,
    d_value: Tensor,
    calls: tuple[tuple[Span, ...], ...],
    scores: Scores,
) -> None:
    for spans in calls:
        if len(spans) > 1:
            many = (rows.query, key, value, rows.d_out, rows.lse, rows.delta, rows.d_query, d_key, d_value)
            backward_block(*many, spans=torch.tensor(spans), **scores._asdict())
            continue
        token, tokens, first, keys, offset = spans[0]
        query, d_out, lse, delta, d_query = (tensor.narrow(2, token, tokens) for tensor in rows)
        k, v, d_k, d_v = (tensor.narrow(2, first, keys) for tensor in (key, value, d_key, d_value))
        backward_block(query, k, v, d_out, lse, delta, d_query, d_k, d_v, offset=offset, **scores._asdict())
