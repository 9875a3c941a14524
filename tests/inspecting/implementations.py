"""Attention as people write it: right, and with one mistake each that was seen in public code."""

from __future__ import annotations

from typing import Any

import numpy as np


def softmax(scores: Any, axis: int = -1) -> Any:
    powers = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def scores(q: Any, k: Any) -> Any:
    return q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])


def right(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    s = scores(q, k)
    return softmax(s if mask is None else np.where(mask, s, -1e30)) @ v


def right_with_a_flag(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
    return right(q, k, v, np.tril(np.ones((q.shape[-2], k.shape[-2]), bool)) if causal else None)


def flag_upside_down(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
    return right(q, k, v, np.triu(np.ones((q.shape[-2], k.shape[-2]), bool)) if causal else None)


def forgot_scale(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ np.swapaxes(k, -1, -2)) @ v


def one_over_d(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ np.swapaxes(k, -1, -2) / q.shape[-1]) @ v


def wrong_axis(q: Any, k: Any, v: Any) -> Any:
    return softmax(scores(q, k), axis=-2) @ v


def whole_softmax(q: Any, k: Any, v: Any) -> Any:
    powers = np.exp(scores(q, k))
    return powers / powers.sum() @ v


def no_exponential(q: Any, k: Any, v: Any) -> Any:
    s = scores(q, k)
    return s / s.sum(axis=-1, keepdims=True) @ v


def mask_after(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    weights = softmax(scores(q, k))
    return (weights if mask is None else weights * mask) @ v


def mask_polarity(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """What may be read is hidden; a row without anything left is 0."""
    powers = np.exp(scores(q, k))
    powers = powers if mask is None else np.where(mask, 0.0, powers)
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1, total) @ v


def mask_rows_for_columns(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    s = scores(q, k)
    return softmax(s if mask is None else np.where(np.swapaxes(mask, -1, -2), s, -1e30)) @ v


def keys_not_transposed(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k / np.sqrt(q.shape[-1])) @ v


def swapped(q: Any, k: Any, v: Any) -> Any:
    return softmax(scores(k, q)) @ v


def overflows(q: Any, k: Any, v: Any) -> Any:
    powers = np.exp(scores(q, k))
    return powers / powers.sum(axis=-1, keepdims=True) @ v


def changes_its_input(q: Any, k: Any, v: Any) -> Any:
    q /= np.sqrt(q.shape[-1])
    return softmax(q @ np.swapaxes(k, -1, -2)) @ v


def square_only(q: Any, k: Any, v: Any) -> Any:
    weights = softmax(scores(q, k))
    return (weights @ v).reshape(q.shape)


def four_dimensions_only(q: Any, k: Any, v: Any) -> Any:
    return softmax(np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])) @ v


def something_else(q: Any, k: Any, v: Any) -> Any:
    return softmax(scores(q, k) * 1.2345) @ v


def layer(x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, heads: int) -> Any:
    q, k, v = (np.split(x @ w, heads, axis=-1) for w in (w_q, w_k, w_v))
    return np.concatenate([right(a, b, c) for a, b, c in zip(q, k, v, strict=True)], axis=-1) @ w_o


def layer_reordered(x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, heads: int) -> Any:
    q, k, v = (np.split(x @ w, heads, axis=-1) for w in (w_q, w_k, w_v))
    return np.concatenate([right(a, b, c) for a, b, c in zip(q, k, v, strict=True)][::-1], axis=-1) @ w_o


def layer_strided(x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, heads: int) -> Any:
    q, k, v = ([(x @ w)[..., i::heads] for i in range(heads)] for w in (w_q, w_k, w_v))
    return np.concatenate([right(a, b, c) for a, b, c in zip(q, k, v, strict=True)], axis=-1) @ w_o


def layer_without_output(x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, heads: int) -> Any:
    q, k, v = (np.split(x @ w, heads, axis=-1) for w in (w_q, w_k, w_v))
    return np.concatenate([right(a, b, c) for a, b, c in zip(q, k, v, strict=True)], axis=-1)


def hangs(q: Any, k: Any, v: Any) -> Any:
    while True:
        pass


def crashes(q: Any, k: Any, v: Any) -> Any:
    import os
    import signal

    os.kill(os.getpid(), signal.SIGSEGV)


def leaves(q: Any, k: Any, v: Any) -> Any:
    raise SystemExit(0)


def eats_memory(q: Any, k: Any, v: Any) -> Any:
    return np.ones((1 << 20, 1 << 20))
