"""Right and wrong ones as courses have them: masks that must be given, modules without parameters, half precision."""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def _softmax(x: Any) -> Any:
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return powers / np.sum(powers, axis=-1, keepdims=True)


def mask_to_be_added(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return _softmax(q @ k.T / np.sqrt(q.shape[-1]) + mask) @ v


def row_by_row(X: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, H: int) -> Any:
    d = X.shape[-1] // H
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    Z = np.zeros_like(Q)
    for h in range(H):
        own = slice(h * d, (h + 1) * d)
        for i in range(len(X)):
            Z[i, own] = _softmax(K[:, own] @ Q[i, own] / np.sqrt(d)) @ V[:, own]
    return Z @ W_O


class MaskMustBeGiven(nn.Module):
    def __init__(self, d_model: int, h: int) -> None:
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def softmax(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Any:
        b, t, d = q.shape
        pairs = ((self.w_q, q), (self.w_k, k), (self.w_v, v))
        q, k, v = (w(x).view(b, -1, self.h, d // self.h).transpose(1, 2) for w, x in pairs)
        scores = (q @ k.transpose(-2, -1) / math.sqrt(d // self.h)).masked_fill(mask == 0, -1e9)
        return self.w_o((self.softmax(scores) @ v).transpose(1, 2).reshape(b, t, d))


class SoftmaxDownTheColumns(MaskMustBeGiven):
    def softmax(self, scores: Tensor) -> Tensor:
        return scores.softmax(-2)


class OneHeadOfKeys(nn.Module):
    def __init__(self, dim: int, num_heads: int = 4) -> None:
        super().__init__()
        self.h, self.d = num_heads, dim // num_heads
        self.q, self.kv, self.proj = nn.Linear(dim, dim), nn.Linear(dim, 2 * self.d), nn.Linear(dim, dim)

    def softmax(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def forward(self, x: Tensor) -> Any:
        k, v = self.kv(x).chunk(2, -1)
        scores = torch.einsum("bnhd,bmd->bhnm", self.q(x).unflatten(-1, (self.h, self.d)), k) * self.d**-0.5
        return self.proj(torch.einsum("bhnm,bmd->bnhd", self.softmax(scores), v).flatten(2))


class SoftmaxOverHeads(OneHeadOfKeys):
    def softmax(self, scores: Tensor) -> Tensor:
        return scores.softmax(1)


class KeysForValues(OneHeadOfKeys):
    def forward(self, x: Tensor) -> Any:
        k, _ = self.kv(x).chunk(2, -1)
        scores = torch.einsum("bnhd,bmd->bhnm", self.q(x).unflatten(-1, (self.h, self.d)), k) * self.d**-0.5
        return self.proj(torch.einsum("bhnm,bmd->bnhd", self.softmax(scores), k).flatten(2))


class WithoutParameters(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout + 0.5)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None) -> Any:
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
        return torch.bmm(self.dropout(scores.softmax(-1)), values)


def scaled_on_one_side(queries: Any, keys: Any, values: Any) -> Any:
    scores = np.einsum("...qd,...kd->...qk", queries / queries.shape[-1] ** 0.25, keys)
    return _softmax(scores), _softmax(scores) @ values


def no_weight_below_nought(q: Any, k: Any, v: Any) -> Any:
    scores = np.maximum(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), 0)
    return scores / scores.sum(-1, keepdims=True) @ v


def root_as_a_whole_number(q: Any, k: Any, v: Any) -> Any:
    return _softmax(q @ np.swapaxes(k, -1, -2) / int(np.sqrt(q.shape[-1]))) @ v


class AddsWhatCameIn(OneHeadOfKeys):
    def forward(self, x: Tensor) -> Any:
        return x + super().forward(x)


def in_half_precision(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return F.scaled_dot_product_attention(*(x.to(torch.bfloat16) for x in (q, k, v))).to(torch.float32)


class HalfPrecisionInside(nn.Module):
    def __init__(self, dim: int, num_heads: int = 4) -> None:
        super().__init__()
        self.num_heads, self.qkv, self.proj = num_heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Any:
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.num_heads, d // self.num_heads).permute(2, 0, 3, 1, 4).half()
        return self.proj(F.scaled_dot_product_attention(q, k, v).to(x.dtype).transpose(1, 2).reshape(b, n, d))


AGREE = ("mask_to_be_added", "row_by_row", "MaskMustBeGiven", "OneHeadOfKeys", "WithoutParameters")
UNDECIDED = ("in_half_precision", "HalfPrecisionInside")
WRONG = {"SoftmaxDownTheColumns": "softmax-columns", "SoftmaxOverHeads": "", "root_as_a_whole_number": ""}
