"""Layers that are no mistake, and not the formula either: nothing is to be held against them."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.inspecting.right_torch import GroupedHeads


class RotaryPositions(GroupedHeads):
    """Not the formula, and no mistake: queries and keys are turned by where they stand."""

    def turned(self, x: Tensor) -> Tensor:
        d = x.shape[-1]
        angle = torch.outer(torch.arange(x.shape[-2]), 10.0 ** -torch.arange(0, d, 2)).to(x)
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1).flatten(-2)


class WithResidualAndNorm(nn.Module):
    """A sublayer and all: the formula has no place for its norm."""

    def __init__(self, n_head: int, d_model: int, d_k: int, d_v: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.n_head, self.d_k, self.d_v = n_head, d_k, d_v
        self.w_qs, self.w_ks = (nn.Linear(d_model, n_head * d_k, bias=False) for _ in range(2))
        self.w_vs, self.fc = nn.Linear(d_model, n_head * d_v, bias=False), nn.Linear(n_head * d_v, d_model, bias=False)
        self.dropout, self.layer_norm = nn.Dropout(dropout), nn.LayerNorm(d_model)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        b, t, residual = q.size(0), q.size(1), q
        q, k, v = (
            w(x).view(b, t, self.n_head, -1).transpose(1, 2)
            for w, x in zip((self.w_qs, self.w_ks, self.w_vs), (q, k, v), strict=True)
        )
        attn = F.softmax(torch.matmul(q / self.d_k**0.5, k.transpose(2, 3)), dim=-1)
        out = self.dropout(self.fc(torch.matmul(attn, v).transpose(1, 2).reshape(b, t, -1))) + residual
        return self.layer_norm(out), attn


class RelativePositions(nn.Module):
    """A learned number for every distance, and a constructor that says so."""

    def __init__(self, d_model: int, num_heads: int, num_buckets: int = 16) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.relative_attention_bias = nn.Embedding(num_buckets, num_heads)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = (w(x).view(b, t, self.num_heads, -1).transpose(1, 2) for w in (self.q, self.k, self.v))
        distance = (torch.arange(t)[:, None] - torch.arange(t)).abs()
        scores = q @ k.transpose(-1, -2) + self.relative_attention_bias(distance).permute(2, 0, 1)
        out: Tensor = self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
        return out


class AsksForMore(nn.Module):
    """Positions that nobody hands over."""

    def __init__(self, num_hiddens: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(num_hiddens, num_hiddens) for _ in range(4))

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
        raise NotImplementedError


AGREE = ()
UNDECIDED = ("RotaryPositions", "WithResidualAndNorm", "RelativePositions", "AsksForMore")
