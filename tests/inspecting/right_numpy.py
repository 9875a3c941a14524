"""Attention that is right, in NumPy, as tutorials and libraries write it: every layout, every way of calling."""

from typing import Any

import numpy as np


def softmax(scores: Any, axis: int = -1) -> Any:
    powers = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def textbook(Q: Any, K: Any, V: Any) -> Any:
    """softmax(Q·Kᵀ/√d_k)·V, on matrices alone."""
    if Q.ndim != 2:
        raise ValueError("matrices, please")
    return softmax(Q @ K.T / np.sqrt(K.shape[1])) @ V


def head_first(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
    """(batch, heads, tokens, d), with a mask that is True where a key may be read; the weights come too."""
    scores = np.einsum("bhqd,bhkd->bhqk", query, key) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    weights = softmax(scores)
    return np.einsum("bhqk,bhkd->bhqd", weights, value), weights


def tokens_before_heads(q: Any, k: Any, v: Any) -> Any:
    """(batch, tokens, heads, d), as JAX's libraries have it."""
    weights = softmax(np.einsum("bqhd,bkhd->bhqk", q * q.shape[-1] ** -0.5, k))
    return np.einsum("bhqk,bkhd->bqhd", weights, v)


def sequence_first(q: Any, k: Any, v: Any) -> Any:
    """(tokens, batch, d), as older recurrent code has it."""
    weights = softmax(np.einsum("ibd,jbd->bij", q, k) / np.sqrt(q.shape[2]))
    return np.einsum("bij,jbd->ibd", weights, v)


def sequence_first_with_heads(q: Any, k: Any, v: Any) -> Any:
    """(tokens, batch, heads, d)."""
    weights = softmax(np.einsum("ibnd,jbnd->ijbn", q, k) / np.sqrt(q.shape[3]), axis=1)
    return np.einsum("ijbn,jbnd->ibnd", weights, v)


def channels_first(q: Any, k: Any, v: Any) -> Any:
    """(batch, channels, places), as in images."""
    weights = softmax(np.einsum("bci,bcj->bij", q, k) / np.sqrt(q.shape[1]))
    return np.einsum("bij,bcj->bci", weights, v)


def heads_inside(q: Any, k: Any, v: Any, num_heads: int) -> Any:
    """(batch, tokens, heads·d) in and out: the heads are its own business."""

    def split(x: Any) -> Any:
        return x.reshape(x.shape[0], x.shape[1], num_heads, -1).transpose(0, 2, 1, 3)

    q, k, v = split(q), split(k), split(v)
    out = softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])) @ v
    return out.transpose(0, 2, 1, 3).reshape(out.shape[0], out.shape[2], -1)


def merged_on_return(q: Any, k: Any, v: Any) -> Any:
    """(batch, heads, tokens, d) in, (batch, tokens, heads·d) out."""
    out = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1])) @ v
    batch, heads, tokens, d = out.shape
    return out.transpose(0, 2, 1, 3).reshape(batch, tokens, heads * d)


def block_by_block(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
    """The softmax over blocks of keys, with a running maximum and a running sum."""
    tokens, d = q.shape
    out = np.zeros((tokens, v.shape[1]))
    for i in range(tokens):
        top, total, row = -np.inf, 0.0, np.zeros(v.shape[1])
        last = min(i + 1, len(k)) if causal else len(k)
        for start in range(0, last, 2):
            scores = k[start : min(start + 2, last)] @ q[i] / np.sqrt(d)
            new = max(top, scores.max())
            powers, shrink = np.exp(scores - new), np.exp(top - new)
            total = total * shrink + powers.sum()
            row = row * shrink + powers @ v[start : min(start + 2, last)]
            top = new
        out[i] = row / total
    return out


def values_first(values: Any, keys: Any, queries: Any) -> Any:
    return softmax(queries @ keys.swapaxes(-1, -2) / np.sqrt(keys.shape[-1])) @ values


def ones_hide(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """A mask that holds 1 where a key is hidden, times a large negative number. Needed, but may be None."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + mask * -1e9
    return softmax(scores) @ v, softmax(scores)


def added_mask(q: Any, k: Any, v: Any, attn_bias: Any = None) -> Any:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(scores if attn_bias is None else scores + attn_bias) @ v


def functional_layer(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, n_heads: int) -> Any:
    tokens, d = x.shape
    q, k, v = (np.swapaxes((x @ w).reshape(tokens, n_heads, d // n_heads), 0, 1) for w in (wq, wk, wv))
    out = softmax(q @ np.swapaxes(k, 1, 2) / np.sqrt(d // n_heads)) @ v
    return np.swapaxes(out, 0, 1).reshape(tokens, d) @ wo


def fused_layer(x: Any, c_attn: Any, c_proj: Any, n_head: int) -> Any:
    """One wide projection for all three, and a causal mask, in few lines."""
    parts = np.split(x @ c_attn, 3, axis=-1)
    q, k, v = (np.split(part, n_head, axis=-1) for part in parts)
    hidden = (1 - np.tri(x.shape[0])) * -1e10
    heads = [softmax(a @ b.T / np.sqrt(a.shape[-1]) + hidden) @ c for a, b, c in zip(q, k, v, strict=True)]
    return np.hstack(heads) @ c_proj


def matrix_for_every_head(x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any) -> Any:
    """Projections head by head, (heads, d_model, d_k) and (heads, d_k, d_model)."""
    q, k, v = (np.einsum("td,hdk->htk", x, w) for w in (w_q, w_k, w_v))
    weights = softmax(np.einsum("hqk,hsk->hqs", q, k) / np.sqrt(q.shape[-1]))
    return np.einsum("hqs,hsk,hkd->qd", weights, v, w_o)


def linear_layers(x: Any, q_weight: Any, k_weight: Any, v_weight: Any, out_weight: Any, num_heads: int) -> Any:
    """Projections as linear layers hold them: outputs by inputs."""
    batch, tokens, d = x.shape
    q, k, v = ((x @ w.T).reshape(batch, tokens, num_heads, -1) for w in (q_weight, k_weight, v_weight))
    weights = softmax(np.einsum("bqhd,bkhd->bhqk", q, k) * (d // num_heads) ** -0.5)
    return np.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, tokens, d) @ out_weight.T


class FromScratch:
    """A layer without a framework."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        scale = d_model**-0.5
        self.num_heads, self.d_head = num_heads, d_model // num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (np.random.randn(d_model, d_model) * scale for _ in range(4))
        self.b_o = np.random.randn(d_model)

    def forward(self, x: Any) -> Any:
        batch, tokens, d = x.shape
        q, k, v = (
            (x @ w).reshape(batch, tokens, self.num_heads, self.d_head).transpose(0, 2, 1, 3)
            for w in (self.W_q, self.W_k, self.W_v)
        )
        out = softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(self.d_head)) @ v
        return out.transpose(0, 2, 1, 3).reshape(batch, tokens, d) @ self.W_o + self.b_o


class TableOfParameters:
    def __init__(self, d_model: int, n_heads: int) -> None:
        rng = np.random.default_rng(0)
        self.n_heads = n_heads
        self.params: dict[str, Any] = {
            name: rng.normal(size=(d_model, d_model)) / 5 for name in ("wq", "wk", "wv", "wo")
        }

    def __call__(self, x: Any) -> Any:
        return np.stack([functional_layer(item, **self.params, n_heads=self.n_heads) for item in x])


AGREE = (
    *("textbook", "head_first", "tokens_before_heads", "sequence_first", "sequence_first_with_heads", "channels_first"),
    *("heads_inside", "merged_on_return", "block_by_block", "values_first", "added_mask", "functional_layer"),
    *("fused_layer", "matrix_for_every_head", "linear_layers", "FromScratch", "TableOfParameters"),
)
UNDECIDED = ("ones_hide",)  # what its mask means cannot be told
