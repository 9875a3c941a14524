"""Attention layers with one mistake each, in torch. WRONG says which: a tag, or "" where the catalogue has no name."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Layer(nn.Module):
    """The usual layer, in the usual places to go wrong."""

    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.q_linear, self.k_linear, self.v_linear = (nn.Linear(d_model, d_model, bias=bias) for _ in range(3))
        self.out = nn.Linear(d_model, d_model, bias=bias)

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), self.num_heads, self.d_k).transpose(1, 2)

    def merge(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).reshape(x.size(0), x.size(2), -1)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.q_linear(x), self.k_linear(x), self.v_linear(x)

    def scores(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q @ k.transpose(-2, -1) / math.sqrt(self.d_k)

    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return F.softmax(scores if mask is None else scores.masked_fill(mask == 0, -1e9), dim=-1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(part) for part in self.project(x))
        out: Tensor = self.out(self.merge(self.attend(self.scores(q, k, v), mask) @ v))
        return out


class ViewedAsHeads(Layer):
    def split(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), self.num_heads, x.size(1), self.d_k)


class ViewedAsHeadsAndBack(ViewedAsHeads):
    """Two mistakes that look like one another's remedy."""

    def merge(self, x: Tensor) -> Tensor:
        return x.reshape(x.size(0), x.size(2), -1)


class HeadsAmongThemselves(Layer):
    """No transpose: every token's heads attend to one another."""

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), self.num_heads, self.d_k)

    def merge(self, x: Tensor) -> Tensor:
        return x.flatten(2)


class RootOfTheWhole(Layer):
    def scores(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q @ k.transpose(-2, -1) / math.sqrt(self.d_k * self.num_heads)


class NoRoot(Layer):
    def scores(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q @ k.transpose(-2, -1) / self.d_k


class RootOfTheLength(Layer):
    def scores(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q @ k.transpose(-2, -1) * k.size(2) ** -0.5


class SoftmaxOverHeads(Layer):
    """dim=1 is the heads of (batch, heads, tokens, keys)."""

    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return F.softmax(scores, dim=1)


class MaskedAfterwards(Layer):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        weights = F.softmax(scores, dim=-1)
        return weights if mask is None else weights.masked_fill(mask == 0, 0.0)


class MaskForgotten(Layer):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            scores.masked_fill(mask == 0, -1e9)  # not in place, and not kept
        return F.softmax(scores, dim=-1)


class BiasLeftOut(Layer):
    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.q_linear(x), self.k_linear(x), F.linear(x, self.v_linear.weight)


class ValuesForKeys(Layer):
    def scores(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().scores(q, v, v)


class WeightsTurned(Layer):
    """Every key's weights over the queries, normalised over the keys."""

    def scores(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().scores(k, q, v)


class FusedAndAhead(nn.Module):
    """A small GPT's whose mask begins one diagonal too high."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        see = torch.ones(config.block_size, config.block_size).tril(diagonal=1)
        self.register_buffer("see", see)

    def merge(self, y: Tensor) -> Tensor:
        return y.transpose(1, 2).reshape(y.size(0), y.size(2), -1)

    def finish(self, y: Tensor) -> Tensor:
        out: Tensor = self.c_proj(y)
        return out

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.size()
        parts = self.c_attn(x).split(C, dim=2)
        q, k, v = (part.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for part in parts)
        att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.see[:T, :T] == 0, float("-inf"))
        return self.finish(self.merge(F.softmax(att, dim=-1) @ v))


class FusedAndUntransposed(FusedAndAhead):
    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.see = torch.ones(config.block_size, config.block_size).tril()

    def merge(self, y: Tensor) -> Tensor:
        return y.reshape(y.size(0), y.size(2), -1)


class FusedAndUnprojected(FusedAndAhead):
    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.see = torch.ones(config.block_size, config.block_size).tril()

    def finish(self, y: Tensor) -> Tensor:
        return y


class HeadsReversed(nn.Module):
    """A list of heads, the last first."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.ModuleList([nn.Linear(dim, dim // heads) for _ in range(heads)]) for _ in range(3))
        self.num_heads, self.to_out = heads, nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        each: list[Tensor] = []
        for to_q, to_k, to_v in zip(self.q, self.k, self.v, strict=True):
            q, k = to_q(x), to_k(x)
            each.insert(0, F.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1) @ to_v(x))
        out: Tensor = self.to_out(torch.cat(each, dim=-1))
        return out


class HeadsGroupedInTurn(nn.Module):
    """repeat for repeat_interleave: query head i reads key head i mod 2 instead of i // 2."""

    def __init__(self, args: Any) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = args.n_heads, args.n_kv_heads, args.dim // args.n_heads
        self.wq, self.wo = (nn.Linear(args.dim, args.dim, bias=False) for _ in range(2))
        self.wk, self.wv = (nn.Linear(args.dim, self.n_kv_heads * self.head_dim, bias=False) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, -1, self.head_dim).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        k, v = (y.repeat(1, self.n_heads // self.n_kv_heads, 1, 1) for y in (k, v))
        out: Tensor = self.wo(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, -1))
        return out


class ScaledTwice(Layer):
    """Once when the queries are made, and once more."""

    def scores(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().scores(q * self.d_k**-0.5, k, v)


class KeysViewed(Layer):
    """The sizes of a transpose without its order."""

    def scores(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q @ k.reshape(*k.shape[:2], k.shape[3], k.shape[2]) / math.sqrt(self.d_k)


class HiddenAtZero(Layer):
    """A hidden score of 0 still counts."""

    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return F.softmax(scores if mask is None else scores.masked_fill(mask == 0, 0.0), dim=-1)


class ScaleForgotten(Layer):
    def scores(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q @ k.transpose(-2, -1)


class OverEverything(Layer):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        scores = scores if mask is None else scores.masked_fill(mask == 0, -1e9)
        return F.softmax(scores.flatten(-2), dim=-1).view(scores.shape)


class Columns(Layer):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return F.softmax(scores if mask is None else scores.masked_fill(mask == 0, -1e9), dim=-2)


def largest_only(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """All weight on the largest score."""
    return F.one_hot((q @ k.mT).argmax(-1), k.shape[-2]).to(v.dtype) @ v


def one_more_below(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A one in the denominator that nobody asked for."""
    weights = (q @ k.mT / math.sqrt(q.size(-1))).exp()
    return weights / (1 + weights.sum(-1, keepdim=True)) @ v


def two_for_e(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Powers of two."""
    return F.softmax(q @ k.mT / math.sqrt(q.size(-1)) * math.log(2), -1) @ v


WRONG = {
    "ViewedAsHeads": "split-untransposed",
    "ViewedAsHeadsAndBack": "split-untransposed+merged-untransposed",
    "HeadsAmongThemselves": "split-untransposed",
    "RootOfTheWhole": "scaled-by-sqrt-d_model",
    "NoRoot": "scaled-by-d_k",
    "RootOfTheLength": "scaled-by-sqrt-tokens",
    "SoftmaxOverHeads": "",
    "MaskedAfterwards": "mask-after-softmax",
    "MaskForgotten": "forgot-mask",
    "BiasLeftOut": "forgot-bias",
    "ValuesForKeys": "",
    "WeightsTurned": "q-k-swapped",
    "FusedAndAhead": "mask-off-by-one",
    "FusedAndUntransposed": "merged-untransposed",
    "FusedAndUnprojected": "forgot-output-projection",
    "HeadsReversed": "heads-reordered",
    "HeadsGroupedInTurn": "",
    "ScaledTwice": "scaled-by-d_k",
    "KeysViewed": "k-not-transposed",
    "HiddenAtZero": "mask-too-weak",
    "Columns": "softmax-columns",
    "ScaleForgotten": "forgot-scale",
    "OverEverything": "softmax-everything",
    "largest_only": "",
    "one_more_below": "",
    "two_for_e": "",
}
