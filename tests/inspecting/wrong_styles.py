"""Wrong ones in the styles of courses and libraries, one bug each."""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.inspecting.right_styles import LazyLinears, MasksOfBothKinds, TableOfLinears, WidthOfAHead


class LazyAndUntransposed(LazyLinears):
    def merge(self, x: Tensor) -> Tensor:
        return x.reshape(-1, x.shape[1], x.shape[2] * self.num_heads)


class RootOfTheWidth(WidthOfAHead):
    def __init__(self, dim: int, heads: int = 8, dim_head: int = 64, dropout: float = 0.0) -> None:
        super().__init__(dim, heads, dim_head, dropout)
        self.scale = dim**-0.5


class TimesTheRoot(WidthOfAHead):
    def __init__(self, dim: int, heads: int = 8, dim_head: int = 64, dropout: float = 0.0) -> None:
        super().__init__(dim, heads, dim_head, dropout)
        self.scale = dim_head**0.5


class LeftWithoutTheLast(TableOfLinears):
    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(*self.heads(x)).transpose(1, 2).flatten(2)


class QueriesForKeys(TableOfLinears):
    def heads(self, x: Tensor) -> list[Tensor]:
        q, _, v = super().heads(x)
        return [q, q, v]


class SplitAsTheyLie(TableOfLinears):
    def heads(self, x: Tensor) -> list[Tensor]:
        batch, tokens, _ = x.shape
        return [self.proj[name](x).view(batch, self.n, tokens, -1) for name in ("query", "key", "value")]


def almost_nothing(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return F.softmax(scores if mask is None else scores.masked_fill(mask == 0, 1e-9), -1) @ v


def axis_left_open(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """torch chooses the heads where there are some."""
    return F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))) @ v


def softmax_twice(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.softmax(F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), -1), -1) @ v


def each_for_itself(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.sigmoid(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))) @ v


def rounded_down(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.softmax((q @ k.transpose(-2, -1)) // math.sqrt(q.size(-1)), -1) @ v


def root_of_all_heads(x: Any, W_q: Any, W_k: Any, W_v: Any, W_o: Any, h: int) -> Any:
    d, heads = W_q.shape[1] // h, []
    for i in range(h):
        q, k, v = (x @ w[:, i * d : (i + 1) * d] for w in (W_q, W_k, W_v))
        powers = np.exp(q @ np.swapaxes(k, -1, -2) / np.sqrt(W_q.shape[1]))
        heads.append(powers / powers.sum(-1, keepdims=True) @ v)
    return np.concatenate(heads, -1) @ W_o


class FilledUpWithAlmostNothing(MasksOfBothKinds):
    def hidden(self, scores: Tensor, pad_mask: Tensor) -> Tensor:
        return scores.masked_fill(pad_mask[:, None, None, :] == 0, 1e-9)


class FilledUpAndForgotten(MasksOfBothKinds):
    def hidden(self, scores: Tensor, pad_mask: Tensor) -> Tensor:
        return scores


def filled_up_too_late(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
    weights = torch.softmax(query @ key.transpose(-2, -1) / math.sqrt(query.size(-1)), -1)
    if key_padding_mask is not None:
        weights = weights.masked_fill(key_padding_mask[:, None, None, :], 0.0)
    return weights @ value


WRONG = {
    "FilledUpWithAlmostNothing": "mask-too-weak",
    "FilledUpAndForgotten": "forgot-mask",
    "filled_up_too_late": "mask-after-softmax",
    "LazyAndUntransposed": "merged-untransposed",
    "RootOfTheWidth": "scaled-by-sqrt-d_model",
    "LeftWithoutTheLast": "forgot-output-projection",
    "SplitAsTheyLie": "split-untransposed",
    "almost_nothing": "mask-too-weak",
    "root_of_all_heads": "scaled-by-sqrt-d_model",
}
# The catalogue has no name for these.
STRANGE = ("TimesTheRoot", "QueriesForKeys", "axis_left_open", "softmax_twice", "each_for_itself", "rounded_down")
