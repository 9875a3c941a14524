"""Attention with one mistake each, in NumPy. WRONG says which: a tag of the catalogue, or "" where it has no name."""

from typing import Any

import numpy as np

from tests.inspecting.right_numpy import softmax


def root_of_tokens(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-2])) @ v


def root_of_length(Q: Any, K: Any, V: Any) -> Any:
    """len(K) is the number of keys."""
    if Q.ndim != 2:
        raise ValueError("matrices, please")
    return softmax(Q @ K.T / np.sqrt(len(K))) @ V


def root_of_d_v(query: Any, key: Any, value: Any) -> Any:
    return softmax(np.einsum("bhqd,bhkd->bhqk", query, key) / np.sqrt(value.shape[-1])) @ value


def no_scale(q: Any, k: Any, v: Any) -> Any:
    weights = softmax(np.einsum("bqhd,bkhd->bhqk", q, k))
    return np.einsum("bhqk,bkhd->bqhd", weights, v)


def times_the_root(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) * np.sqrt(q.shape[-1])) @ v


def maximum_of_columns(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    powers = np.exp(scores - scores.max(axis=-2, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) @ v


def axis_not_kept(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, n_heads: int) -> Any:
    """The maxima of the rows are taken off the columns."""
    heads = []
    for q, k, v in zip(*(np.split(x @ w, n_heads, axis=-1) for w in (wq, wk, wv)), strict=True):
        scores = q @ k.T / np.sqrt(q.shape[-1])
        powers = np.exp(scores - scores.max(axis=-1))
        heads.append(powers / powers.sum(axis=-1, keepdims=True) @ v)
    return np.concatenate(heads, axis=-1) @ wo


def axis_of_another_layout(q: Any, k: Any, v: Any) -> Any:
    """axis=1 is the keys of (tokens, keys), but the queries of (batch, tokens, keys)."""
    return softmax(np.einsum("bid,bjd->bij", q, k) / np.sqrt(q.shape[-1]), axis=1) @ v


def tiny_instead_of_large(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(scores if mask is None else np.where(mask == 0, 1e-9, scores)) @ v


def mask_multiplied(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(scores if mask is None else scores * mask) @ v


def _causal(q: Any, k: Any, v: Any, see: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(np.where(see, scores, -1e9)) @ v


def one_ahead(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
    see = np.tri(q.shape[-2], k.shape[-2], 1) if causal else 1
    return _causal(q, k, v, see)


def not_itself(q: Any, k: Any, v: Any, is_causal: bool = False) -> Any:
    see = np.tri(q.shape[-2], k.shape[-2], -1) if is_causal else 1
    return _causal(q, k, v, see)


def the_future_only(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
    see = np.triu(np.ones((q.shape[-2], k.shape[-2]))) if causal else 1
    return _causal(q, k, v, see)


def merged_as_they_lie(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, n_heads: int) -> Any:
    tokens, d = x.shape
    q, k, v = ((x @ w).reshape(tokens, n_heads, -1).transpose(1, 0, 2) for w in (wq, wk, wv))
    out = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(d // n_heads)) @ v
    return out.reshape(tokens, d) @ wo


def split_as_they_lie(q: Any, k: Any, v: Any, num_heads: int) -> Any:
    """reshape to (batch, heads, tokens, d) without a transpose."""

    def split(x: Any) -> Any:
        return x.reshape(x.shape[0], num_heads, x.shape[1], -1)

    q, k, v = split(q), split(k), split(v)
    out = softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])) @ v
    return out.transpose(0, 2, 1, 3).reshape(out.shape[0], out.shape[2], -1)


def hides_what_may_be_read(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(scores if mask is None else np.where(mask, -1e9, scores)) @ v


WRONG = {
    "root_of_tokens": "scaled-by-sqrt-tokens",
    "root_of_length": "scaled-by-sqrt-tokens",
    "root_of_d_v": "scaled-by-sqrt-d_v",
    "no_scale": "forgot-scale",
    "times_the_root": "",
    "maximum_of_columns": "maximum-of-wrong-axis",
    "axis_not_kept": "maximum-of-wrong-axis",
    "axis_of_another_layout": "softmax-columns",
    "tiny_instead_of_large": "mask-too-weak",
    "mask_multiplied": "mask-too-weak",
    "one_ahead": "mask-off-by-one",
    "not_itself": "mask-off-by-one",
    "the_future_only": "mask-flipped",
    "merged_as_they_lie": "merged-untransposed",
    "split_as_they_lie": "split-untransposed",
    "hides_what_may_be_read": "mask-inverted",
}
