"""Right ones in still other styles: heads folded into the batch, the scale on both sides, sizes from the module."""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ScaleOnBothSides(nn.Module):
    """Queries and keys each divided by the fourth root; heads folded into the batch."""

    def __init__(self, emb: int, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.tokeys, self.toqueries, self.tovalues = (nn.Linear(emb, emb, bias=False) for _ in range(3))
        self.unifyheads = nn.Linear(emb, emb)

    def forward(self, x: Tensor) -> Any:
        b, t, e = x.size()
        s = e // self.heads
        k, q, v = (
            to(x).view(b, t, self.heads, s).transpose(1, 2).contiguous().view(b * self.heads, t, s)
            for to in (self.tokeys, self.toqueries, self.tovalues)
        )
        weights = F.softmax(torch.bmm(q / s**0.25, (k / s**0.25).transpose(1, 2)), dim=2)
        out = torch.bmm(weights, v).view(b, self.heads, t, s)
        return self.unifyheads(out.transpose(1, 2).contiguous().view(b, t, e))


class SpeechModel(nn.Module):
    """Keys without a bias, another text to read from where one is given, the scores returned beside."""

    def __init__(self, n_state: int, n_head: int) -> None:
        super().__init__()
        self.n_head = n_head
        self.query, self.value, self.out = (nn.Linear(n_state, n_state) for _ in range(3))
        self.key = nn.Linear(n_state, n_state, bias=False)

    def forward(self, x: Tensor, xa: Tensor | None = None, mask: Tensor | None = None) -> Any:
        source = x if xa is None else xa
        q, k, v = self.query(x), self.key(source), self.value(source)
        scale = (q.shape[-1] // self.n_head) ** -0.25
        q = q.view(*q.shape[:2], self.n_head, -1).permute(0, 2, 1, 3) * scale
        k = k.view(*k.shape[:2], self.n_head, -1).permute(0, 2, 3, 1) * scale
        v = v.view(*v.shape[:2], self.n_head, -1).permute(0, 2, 1, 3)
        scores = q @ k if mask is None else q @ k + mask
        return self.out((F.softmax(scores, dim=-1) @ v).permute(0, 2, 1, 3).flatten(start_dim=2)), scores.detach()


class SizesOfAllThree(nn.Module):
    """key_size is the width of the keys that come in, and not of a head."""

    def __init__(
        self, key_size: int, query_size: int, value_size: int, num_hiddens: int, num_heads: int, dropout: float
    ) -> None:
        super().__init__()
        self.num_heads, self.dropout = num_heads, nn.Dropout(dropout)
        self.W_q = nn.Linear(query_size, num_hiddens, bias=False)
        self.W_k = nn.Linear(key_size, num_hiddens, bias=False)
        self.W_v = nn.Linear(value_size, num_hiddens, bias=False)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=False)

    def folded(self, x: Tensor) -> Tensor:
        x = x.reshape(x.shape[0], x.shape[1], self.num_heads, -1).permute(0, 2, 1, 3)
        return x.reshape(-1, x.shape[2], x.shape[3])

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None) -> Any:
        q, k, v = self.folded(self.W_q(queries)), self.folded(self.W_k(keys)), self.folded(self.W_v(values))
        weights = F.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1]), dim=-1)
        out = torch.bmm(self.dropout(weights), v)
        out = out.reshape(-1, self.num_heads, out.shape[1], out.shape[2]).permute(0, 2, 1, 3)
        return self.W_o(out.reshape(out.shape[0], out.shape[1], -1))


class Affine(nn.Module):
    """x·W + b with W stored as it is written."""

    def __init__(self, wide: int, narrow: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(narrow, wide) * 0.3), nn.Parameter(torch.zeros(wide))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class PackedAffine(nn.Module):
    """A config, one packed projection, a causal mask in a buffer, hidden scores at the lowest number."""

    bias: Tensor

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.n_head, self.width, length = config.n_head, config.n_embd, config.block_size
        self.c_attn, self.c_proj = Affine(3 * self.width, self.width), Affine(self.width, self.width)
        self.register_buffer("bias", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, hidden_states: Tensor) -> Any:
        b, t, c = hidden_states.shape
        packed = self.c_attn(hidden_states).split(self.width, dim=2)
        q, k, v = (z.view(b, t, self.n_head, c // self.n_head).permute(0, 2, 1, 3) for z in packed)
        scores = q @ k.transpose(-1, -2) / v.size(-1) ** 0.5
        scores = torch.where(self.bias[:, :, :t, :t].bool(), scores, torch.finfo(scores.dtype).min)
        return self.c_proj((F.softmax(scores, dim=-1) @ v).permute(0, 2, 1, 3).contiguous().view(b, t, c))


class HiddenTwice(nn.Module):
    """Scores filled with the lowest number, and the weights filled with zeros once more; the weights kept."""

    def __init__(self, n_head: int, n_feat: int, dropout_rate: float) -> None:
        super().__init__()
        self.h, self.d_k, self.dropout = n_head, n_feat // n_head, nn.Dropout(dropout_rate)
        self.linear_q, self.linear_k, self.linear_v, self.linear_out = (nn.Linear(n_feat, n_feat) for _ in range(4))
        self.attn: Tensor | None = None

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
        n = query.size(0)
        ins = zip((self.linear_q, self.linear_k, self.linear_v), (query, key, value), strict=True)
        q, k, v = (linear(x).view(n, -1, self.h, self.d_k).transpose(1, 2) for linear, x in ins)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is None:
            self.attn = torch.softmax(scores, dim=-1)
        else:
            hidden = mask.unsqueeze(1).eq(0)
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
            self.attn = torch.softmax(scores, dim=-1).masked_fill(hidden, 0.0)
        out = torch.matmul(self.dropout(self.attn), v).transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k)
        return self.linear_out(out)


WIDTH, LENGTH = 24, 32


class SizesFromTheModule(nn.Module):
    """One head of a model whose width stands above it."""

    tril: Tensor

    def __init__(self, head_size: int) -> None:
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(WIDTH, head_size, bias=False) for _ in range(3))
        self.register_buffer("tril", torch.tril(torch.ones(LENGTH, LENGTH)))

    def forward(self, x: Tensor) -> Any:
        k, t = self.key(x), x.shape[1]
        scores = self.query(x) @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        return F.softmax(scores.masked_fill(self.tril[:t, :t] == 0, float("-inf")), dim=-1) @ self.value(x)


def entry_by_entry(Q: Any, K: Any, V: Any) -> Any:
    out = np.zeros((Q.shape[0], V.shape[1]))
    for i in range(Q.shape[0]):
        scores = np.array([np.dot(Q[i], key) / np.sqrt(Q.shape[1]) for key in K])
        weights = np.exp(scores - scores.max())
        for weight, value in zip(weights / weights.sum(), V, strict=True):
            out[i] += weight * value
    return out


def in_a_dictionary(q: Tensor, k: Tensor, v: Tensor) -> dict[str, Tensor]:
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).softmax(-1)
    return {"output": weights @ v, "weights": weights}


def by_einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(dim=-1), v)


AGREE = (
    *("ScaleOnBothSides", "SpeechModel", "SizesOfAllThree", "PackedAffine", "HiddenTwice", "SizesFromTheModule"),
    *("entry_by_entry", "in_a_dictionary", "by_einsum"),
)
UNDECIDED: tuple[str, ...] = ()
