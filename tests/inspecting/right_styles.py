"""Right ones in the styles of courses and libraries: lazy linears, tables of modules, heads of any width, one loop."""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LazyLinears(nn.Module):
    """Widths from the first call, heads folded into the batch, lengths that may be left out."""

    def __init__(self, num_hiddens: int, num_heads: int, dropout: float, bias: bool = False) -> None:
        super().__init__()
        self.num_heads, self.dropout = num_heads, nn.Dropout(dropout)
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.LazyLinear(num_hiddens, bias=bias) for _ in range(4))

    def split(self, x: Tensor) -> Tensor:
        x = x.reshape(x.shape[0], x.shape[1], self.num_heads, -1).permute(0, 2, 1, 3)
        return x.reshape(-1, x.shape[2], x.shape[3])

    def merge(self, x: Tensor) -> Tensor:
        x = x.reshape(-1, self.num_heads, x.shape[1], x.shape[2]).permute(0, 2, 1, 3)
        return x.reshape(x.shape[0], x.shape[1], -1)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None) -> Tensor:
        q, k, v = self.split(self.W_q(queries)), self.split(self.W_k(keys)), self.split(self.W_v(values))
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        out: Tensor = self.W_o(self.merge(torch.bmm(self.dropout(F.softmax(scores, dim=-1)), v)))
        return out


class WidthOfAHead(nn.Module):
    """All heads together are as wide as they like."""

    def __init__(self, dim: int, heads: int = 8, dim_head: int = 64, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.attend, self.to_qkv = nn.Softmax(dim=-1), nn.Linear(dim, heads * dim_head * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, k, v = (t.reshape(b, n, self.heads, -1).transpose(1, 2) for t in self.to_qkv(x).chunk(3, dim=-1))
        weights = self.attend(q @ k.transpose(-1, -2) * self.scale)
        out: Tensor = self.to_out((weights @ v).transpose(1, 2).reshape(b, n, -1))
        return out


class TableOfLinears(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.n = num_heads
        self.proj = nn.ModuleDict({name: nn.Linear(embed_dim, embed_dim) for name in ("query", "key", "value", "out")})

    def heads(self, x: Tensor) -> list[Tensor]:
        return [self.proj[name](x).unflatten(-1, (self.n, -1)).transpose(1, 2) for name in ("query", "key", "value")]

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.proj["out"](F.scaled_dot_product_attention(*self.heads(x)).transpose(1, 2).flatten(2))
        return out


class FewerKeysFromArguments(nn.Module):
    """Sizes from `args`, with heads of keys that may be as many as there are heads."""

    def __init__(self, args: Any) -> None:
        super().__init__()
        self.n, self.kv, self.d = args.n_heads, args.n_kv_heads or args.n_heads, args.dim // args.n_heads
        self.wq, self.wo = (nn.Linear(args.dim, args.dim, bias=False) for _ in range(2))
        self.wk, self.wv = (nn.Linear(args.dim, self.kv * self.d, bias=False) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        b, t, _ = x.shape
        q = self.wq(x).view(b, t, self.n, self.d).transpose(1, 2)
        k, v = (w(x).view(b, t, self.kv, self.d).transpose(1, 2) for w in (self.wk, self.wv))
        k, v = (each.repeat_interleave(self.n // self.kv, dim=1) for each in (k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(self.d)
        weights = F.softmax(scores if mask is None else scores + mask, dim=-1)
        out: Tensor = self.wo((weights @ v).transpose(1, 2).reshape(b, t, -1))
        return out


class HeadsOfAnyWidth(nn.Module):
    """One projection for all three, heads of a width of their own, the output in a sequence of modules."""

    def __init__(self, dim: int, heads: int = 4, dim_head: int = 8) -> None:
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(0.0))

    def parts(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.to_qkv(x).chunk(3, dim=-1)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor) -> Any:
        q, k, v = map(self.split, self.parts(x))
        weights = torch.einsum("bhid,bhjd->bhij", q, k).mul(self.scale).softmax(dim=-1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(2))


class KeysBeforeQueries(HeadsOfAnyWidth):
    def parts(self, x: Tensor) -> tuple[Tensor, ...]:
        k, q, v = super().parts(x)
        return q, k, v


class EveryHeadThColumn(HeadsOfAnyWidth):
    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.heads)).movedim(-1, 1)


def by_name_alone(*, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.softmax(query @ key.mT * key.shape[-1] ** -0.5, -1) @ value


def by_logarithms(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) / k.size(-1) ** 0.5
    return torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True)) @ v


def by_batches_of_matrices(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    b, h, t, d = q.shape
    start = torch.zeros(b * h, t, k.shape[2], dtype=q.dtype)
    scores = torch.baddbmm(start, q.reshape(b * h, t, d), k.flatten(0, 1).mT, beta=0, alpha=d**-0.5)
    return torch.bmm(scores.softmax(-1), v.flatten(0, 1)).view(b, h, t, -1)


class _Called:
    def __call__(self, q: Any, k: Any, v: Any) -> Any:
        scores = np.einsum("...id,...jd->...ij", q, k) / np.sqrt(q.shape[-1])
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.einsum("...ij,...jd->...id", powers / powers.sum(axis=-1, keepdims=True), v)


an_instance = _Called()


def one_head_after_the_other(x: Any, W_q: Any, W_k: Any, W_v: Any, W_o: Any, h: int) -> Any:
    d, heads = W_q.shape[1] // h, []
    for i in range(h):
        q, k, v = (x @ w[:, i * d : (i + 1) * d] for w in (W_q, W_k, W_v))
        powers = np.exp(q @ np.swapaxes(k, -1, -2) / np.sqrt(d))
        heads.append(powers / powers.sum(-1, keepdims=True) @ v)
    return np.concatenate(heads, -1) @ W_o


def dropout_that_never_stops(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.dropout(torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), -1), 0.1) @ v


def matrices_alone(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Right as it is meant; with a batch in front axis 1 is another one."""
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=1) @ v


def packed_as_pytorch_has_it(
    x: Tensor,
    in_proj_weight: Tensor,
    in_proj_bias: Tensor,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor,
    num_heads: int,
) -> Tensor:
    q, k, v = F.linear(x, in_proj_weight, in_proj_bias).chunk(3, dim=-1)
    q, k, v = (each.unflatten(-1, (num_heads, -1)).transpose(1, 2) for each in (q, k, v))
    joined = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    return F.linear(joined, out_proj_weight, out_proj_bias)


class _Dense:
    """A kernel and a bias."""

    def __init__(self, units: int, generator: np.random.Generator) -> None:
        self.kernel, self.bias = generator.normal(size=(units, units)) / units**0.5, generator.normal(size=units)

    def __call__(self, x: Any) -> Any:
        return x @ self.kernel + self.bias


class KernelsAndBiases:
    def __init__(self, d_model: int, num_heads: int) -> None:
        generator = np.random.default_rng(1)
        self.num_heads = num_heads
        self.wq, self.wk, self.wv, self.dense = (_Dense(d_model, generator) for _ in range(4))

    def call(self, query: Any, value: Any, key: Any) -> Any:
        q, k, v = (
            each.reshape(*each.shape[:2], self.num_heads, -1).swapaxes(1, 2)
            for each in (self.wq(query), self.wk(key), self.wv(value))
        )
        powers = np.exp(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5)
        joined = (powers / powers.sum(-1, keepdims=True) @ v).swapaxes(1, 2)
        return self.dense(joined.reshape(query.shape))


def filled_up(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
    """True hides a key from everybody."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if key_padding_mask is not None:
        scores = scores.masked_fill(key_padding_mask[:, None, None, :], float("-inf"))
    return scores.softmax(-1) @ value


class MasksOfBothKinds(nn.Module):
    """One for every token and one for the keys, beside an order that is built in where it is asked for."""

    causal = False

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def hidden(self, scores: Tensor, pad_mask: Tensor) -> Tensor:
        return scores.masked_fill(pad_mask[:, None, None, :] == 0, float("-inf"))

    def forward(self, x: Tensor, attn_mask: Tensor | None = None, pad_mask: Tensor | None = None) -> Tensor:
        q, k, v = (w(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for w in (self.q, self.k, self.v))
        scores = q @ k.mT / math.sqrt(q.size(-1))
        if self.causal:
            later = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        if attn_mask is not None:
            scores = scores.masked_fill(attn_mask, float("-inf"))
        if pad_mask is not None:
            scores = self.hidden(scores, pad_mask)
        out: Tensor = self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return out


class FilledUpAndCausal(MasksOfBothKinds):
    causal = True


AGREE = (
    *("LazyLinears", "WidthOfAHead", "TableOfLinears", "FewerKeysFromArguments", "by_name_alone", "by_logarithms"),
    *("by_batches_of_matrices", "an_instance", "one_head_after_the_other"),
    *("HeadsOfAnyWidth", "KeysBeforeQueries", "EveryHeadThColumn"),
    *("packed_as_pytorch_has_it", "KernelsAndBiases", "filled_up", "MasksOfBothKinds", "FilledUpAndCausal"),
)
UNDECIDED = ("dropout_that_never_stops", "matrices_alone")
