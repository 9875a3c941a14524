"""Multi-head attention as torch modules: one right, the others with one mistake each that was seen in public code."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Right(nn.Module):
    """The usual layer; the others change one method each."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(d_model, d_model) for _ in range(3))
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        weights = self.attend(self.scale(q, k, x), mask)
        return self.finish(self.merge(weights @ v))

    def split(self, wide: Tensor) -> Tensor:
        batch, tokens, d = wide.shape
        return wide.view(batch, tokens, self.num_heads, d // self.num_heads).transpose(1, 2)

    def scale(self, q: Tensor, k: Tensor, x: Tensor) -> Tensor:
        return q @ k.transpose(-1, -2) / float(q.shape[-1]) ** 0.5

    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return (scores if mask is None else scores.masked_fill(mask == 0, -1e9)).softmax(-1)

    def merge(self, heads: Tensor) -> Tensor:
        batch, h, tokens, d = heads.shape
        return heads.transpose(1, 2).reshape(batch, tokens, h * d)

    def finish(self, joined: Tensor) -> Tensor:
        output: Tensor = self.out_proj(joined)
        return output


class RootOfWrongDimension(Right):
    def scale(self, q: Tensor, k: Tensor, x: Tensor) -> Tensor:
        return q @ k.transpose(-1, -2) / float(x.shape[-1]) ** 0.5


class MergedUntransposed(Right):
    def merge(self, heads: Tensor) -> Tensor:
        batch, h, tokens, d = heads.shape
        return heads.reshape(batch, tokens, h * d)


class OutputUnused(Right):
    def finish(self, joined: Tensor) -> Tensor:
        return joined


class OutputMissing(Right):
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__(d_model, num_heads)
        del self.out_proj

    def finish(self, joined: Tensor) -> Tensor:
        return joined


class SoftmaxOverQueries(Right):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return scores.softmax(-2)


class MaskedTooLate(Right):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return scores.softmax(-1) if mask is None else scores.softmax(-1) * mask


class Causal(Right):
    """Not a mistake: a mask of its own."""

    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return super().attend(scores, torch.ones(scores.shape[-2:]).tril())


class CausalUpsideDown(Right):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return super().attend(scores, torch.ones(scores.shape[-2:]).triu())


class SplitBeforeProjection(nn.Module):
    """One small projection for all heads, on each head's part of the embedding."""

    def __init__(self, embed_size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        width = embed_size // heads
        self.queries, self.keys, self.values = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, d = x.shape
        parts = x.reshape(batch, tokens, self.heads, d // self.heads)
        q, k, v = (p(parts).transpose(1, 2) for p in (self.queries, self.keys, self.values))
        weights = (q @ k.transpose(-1, -2) / float(q.shape[-1]) ** 0.5).softmax(-1)
        joined: Tensor = self.fc_out((weights @ v).transpose(1, 2).reshape(batch, tokens, d))
        return joined


class EmbeddingTimesHeads(nn.Module):
    """Every head as wide as the whole embedding."""

    def __init__(self, emb: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.toqueries, self.tokeys, self.tovalues = (nn.Linear(emb, emb * heads, bias=False) for _ in range(3))
        self.unifyheads = nn.Linear(emb * heads, emb)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, emb = x.shape
        wide = (project(x) for project in (self.toqueries, self.tokeys, self.tovalues))
        q, k, v = (w.view(batch, tokens, self.heads, emb).transpose(1, 2) for w in wide)
        weights = (q @ k.transpose(-1, -2) / float(emb) ** 0.5).softmax(-1)
        joined: Tensor = self.unifyheads((weights @ v).transpose(1, 2).reshape(batch, tokens, self.heads * emb))
        return joined


def factory(d_model: int, heads: int) -> Any:
    return Right(d_model, heads)


def single_precision(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Not a mistake: a constant of its own in float32."""
    unit = torch.eye(q.shape[-1])
    return (q @ unit @ k.transpose(-1, -2) / float(q.shape[-1]) ** 0.5).softmax(-1) @ v
