"""Attention layers that are right, in torch, as tutorials and libraries write them: their names, packings, layouts."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FusedCausal(nn.Module):
    """A small GPT's: a config, one projection for all three, a mask in a buffer."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.attn_dropout, self.resid_dropout = nn.Dropout(config.dropout), nn.Dropout(config.dropout)
        self.n_head, self.n_embd = config.n_head, config.n_embd
        see = torch.tril(torch.ones(config.block_size, config.block_size))
        self.register_buffer("bias", see.view(1, 1, config.block_size, config.block_size))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k, q, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (k, q, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = self.attn_dropout(F.softmax(att, dim=-1)) @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        out: Tensor = self.resid_dropout(self.c_proj(y))
        return out


class ListOfLinears(nn.Module):
    """The four projections in one list; (query, key, value, mask)."""

    def __init__(self, h: int, d_model: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.d_k, self.h = d_model // h, h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])
        self.dropout = nn.Dropout(dropout)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is not None:
            mask = mask.unsqueeze(1)
        n = query.size(0)
        query, key, value = (
            lin(x).view(n, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value), strict=False)
        )
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        x = torch.matmul(self.dropout(scores.softmax(dim=-1)), value)
        out: Tensor = self.linears[-1](x.transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k))
        return out


class ImageModels(nn.Module):
    """A vision library's: qkv, reshape, permute, unbind."""

    def __init__(self, dim: int, num_heads: int = 8, qkv_bias: bool = False, attn_drop: float = 0.0) -> None:
        super().__init__()
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.scale = self.head_dim**-0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.attn_drop = nn.Dropout(attn_drop)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4).unbind(0)
        attn = self.attn_drop(((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1))
        out: Tensor = self.proj((attn @ v).transpose(1, 2).reshape(B, N, C))
        return out


class EncoderSelfAttention(nn.Module):
    """An encoder's, with its names, a config and an added mask; the output projection is in another class."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.num_attention_heads = config.num_attention_heads
        self.size = config.hidden_size // config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def transpose_for_scores(self, x: Tensor) -> Tensor:
        return x.view(*x.size()[:-1], self.num_attention_heads, self.size).permute(0, 2, 1, 3)

    def joined(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        q, k, v = (self.transpose_for_scores(p(hidden_states)) for p in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        if attention_mask is not None:
            scores = scores + attention_mask
        context = torch.matmul(self.dropout(nn.Softmax(dim=-1)(scores)), v).permute(0, 2, 1, 3).contiguous()
        return context.view(*context.size()[:-2], -1)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor]:
        return (self.joined(hidden_states, attention_mask),)


class EncoderAttention(EncoderSelfAttention):
    """The same with its projection."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor]:
        return (self.dense(self.joined(hidden_states, attention_mask)),)


class OneHead(nn.Module):
    def __init__(self, n_embd: int, head_size: int, block_size: int) -> None:
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(n_embd, head_size, bias=False) for _ in range(3))
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x: Tensor) -> Tensor:
        _, T, _ = x.shape
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        out: Tensor = F.softmax(wei, dim=-1) @ self.value(x)
        return out


class ListOfHeads(nn.Module):
    """A lecture's: heads in a list, joined, projected."""

    def __init__(self, n_embd: int, num_heads: int, block_size: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList([OneHead(n_embd, n_embd // num_heads, block_size) for _ in range(num_heads)])
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.proj(torch.cat([h(x) for h in self.heads], dim=-1))
        return out


class FromABook(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.d_out, self.num_heads, self.head_dim = d_out, num_heads, d_out // num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x: Tensor) -> Tensor:
        b, tokens, _ = x.shape
        keys, queries, values = (
            w(x).view(b, tokens, self.num_heads, self.head_dim).transpose(1, 2)
            for w in (self.W_key, self.W_query, self.W_value)
        )
        scores = queries @ keys.transpose(2, 3)
        scores.masked_fill_(self.mask.bool()[:tokens, :tokens], -torch.inf)
        weights = self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))
        out: Tensor = self.out_proj((weights @ values).transpose(1, 2).contiguous().view(b, tokens, self.d_out))
        return out


class BareParameters(nn.Module):
    """One head, x @ W, before linear layers were introduced."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        keys, queries, values = x @ self.W_key, x @ self.W_query, x @ self.W_value
        return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


class KeysAndValuesTogether(nn.Module):
    """to_q and to_kv; a context that is x itself by default; heads of a width of their own."""

    def __init__(self, dim: int, heads: int = 8, dim_head: int = 64, dropout: float = 0.0) -> None:
        super().__init__()
        inner = dim_head * heads
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_q, self.to_kv = nn.Linear(dim, inner, bias=False), nn.Linear(dim, inner * 2, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        context = x if context is None else context
        q, (k, v) = self.to_q(x), self.to_kv(context).chunk(2, dim=-1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
        sim = torch.einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        if mask is not None:
            sim.masked_fill_(~mask, -torch.finfo(sim.dtype).max)
        out = torch.einsum("b h i j, b h j d -> b h i d", sim.softmax(dim=-1), v)
        joined: Tensor = self.to_out(out.transpose(1, 2).flatten(2))
        return joined


class WidthBeforeHeads(nn.Module):
    """One wide projection whose outputs are (d, part, head), as a rearrange may have them."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.to_qkv, self.W_0 = nn.Linear(dim, dim * 3, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = self.to_qkv(x).view(b, t, self.head_dim, 3, self.heads).permute(3, 0, 4, 1, 2)
        attention = torch.softmax(torch.einsum("b h i d, b h j d -> b h i j", q, k) * self.head_dim**-0.5, dim=-1)
        out: Tensor = self.W_0((attention @ v).transpose(1, 2).reshape(b, t, -1))
        return out


class HeadByHeadPacking(nn.Module):
    """One wide projection whose outputs are (head, part, d)."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.num_heads, self.size = config.num_attention_heads, config.hidden_size // config.num_attention_heads
        self.query_key_value = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        b, t, _ = hidden_states.shape
        qkv = self.query_key_value(hidden_states).view(b, t, self.num_heads, 3 * self.size).transpose(1, 2)
        q, k, v = qkv.chunk(3, dim=-1)
        out: Tensor = self.dense(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, -1))
        return out


class SequenceFirst(nn.Module):
    """(tokens, batch, d): scaled queries, batched products of (batch·heads, tokens, d)."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def forward(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None) -> Any:
        t, b, _ = query.shape
        d = self.embed_dim // self.num_heads
        q = self.q_proj(query) * d**-0.5
        q, k, v = (
            x.contiguous().view(-1, b * self.num_heads, d).transpose(0, 1)
            for x in (q, self.k_proj(key), self.v_proj(value))
        )
        scores = torch.bmm(q, k.transpose(1, 2))
        if attn_mask is not None:
            scores = scores + attn_mask.unsqueeze(0)
        attn = torch.bmm(F.softmax(scores, dim=-1), v)
        return self.out_proj(attn.transpose(0, 1).contiguous().view(t, b, self.embed_dim)), None


class GroupedHeads(nn.Module):
    """Fewer key heads than query heads, repeated; no biases, a config."""

    def __init__(self, args: Any) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = args.n_heads, args.n_kv_heads, args.dim // args.n_heads
        self.wq = nn.Linear(args.dim, self.n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(args.dim, self.n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(args.dim, self.n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(self.n_heads * self.head_dim, args.dim, bias=False)

    def turned(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, -1, self.head_dim).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = self.turned(q), self.turned(k)
        k, v = (y.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1) for y in (k, v))
        weights = F.softmax((q @ k.transpose(2, 3) / math.sqrt(self.head_dim)).float(), dim=-1).type_as(q)
        out: Tensor = self.wo((weights @ v).transpose(1, 2).reshape(b, t, -1))
        return out


class MatrixForEveryHead(nn.Module):
    """Parameters head by head, (heads, d_model, d_k), biases too."""

    def __init__(self, cfg: Any) -> None:
        super().__init__()
        heads, d, k = cfg.n_heads, cfg.d_model, cfg.d_head
        self.W_Q, self.W_K, self.W_V = (nn.Parameter(torch.randn(heads, d, k) * 0.2) for _ in range(3))
        self.b_Q, self.b_K, self.b_V = (nn.Parameter(torch.randn(heads, k)) for _ in range(3))
        self.W_O, self.b_O = nn.Parameter(torch.randn(heads, k, d) * 0.2), nn.Parameter(torch.randn(d))

    def forward(self, x: Tensor) -> Tensor:
        pairs = ((self.W_Q, self.b_Q), (self.W_K, self.b_K), (self.W_V, self.b_V))
        q, k, v = (torch.einsum("bpd,hdk->bphk", x, w) + b for w, b in pairs)
        pattern = (torch.einsum("bqhk,bphk->bhqp", q, k) / q.shape[-1] ** 0.5).softmax(-1)
        return torch.einsum("bphk,bhqp,hkd->bqd", v, pattern, self.W_O) + self.b_O


def with_softmax_and_mask(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    logits = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size()[-1])
    if mask is not None:
        logits = logits.masked_fill(mask == 0, -9e15)
    attention = F.softmax(logits, dim=-1)
    return torch.matmul(attention, v), attention


def eager(query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None, dropout: float = 0.0) -> Any:
    """(batch, heads, tokens, d) in, (batch, tokens, heads, d) out, an added mask."""
    weights = torch.matmul(query, key.transpose(2, 3)) * query.shape[-1] ** -0.5
    weights = weights if attention_mask is None else weights + attention_mask
    weights = F.dropout(F.softmax(weights, dim=-1, dtype=torch.float32).to(query.dtype), p=dropout)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights


instance = nn.MultiheadAttention(24, 3)  # (tokens, batch, d), as it is by default

AGREE = (
    *("FusedCausal", "ListOfLinears", "ImageModels", "EncoderAttention", "ListOfHeads", "FromABook", "BareParameters"),
    *(
        "KeysAndValuesTogether",
        "WidthBeforeHeads",
        "HeadByHeadPacking",
        "SequenceFirst",
        "GroupedHeads",
        "MatrixForEveryHead",
    ),
    *("with_softmax_and_mask", "eager", "instance"),
)
UNDECIDED = ("EncoderSelfAttention",)  # the projection that it lacks may stand elsewhere
