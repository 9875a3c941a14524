"""The keys and values of the tokens so far, kept for the next ones."""

from typing import Any

import numpy as np

from headwork.engine.arrays import Array
from headwork.errors import ShapeError

ROOM = 64  # keys there is room for at first; it doubles when they are used up


class Cache:
    """What `MultiHead` has read so far: begin with `layer.cache()`, hand it to every call of that layer.

    keys (…, kv_heads, tokens, d_k) and values (…, kv_heads, tokens, d_v) are views on arrays with room to spare, so
    that a step writes its own keys and copies none of the earlier ones, except when the room doubles.
    """

    def __init__(self, kv_heads: int, d_k: int, d_v: int, dtype: np.dtype[Any]) -> None:
        self._keys = np.empty((kv_heads, 0, d_k), dtype)
        self._values = np.empty((kv_heads, 0, d_v), dtype)
        self._tokens = 0

    def __len__(self) -> int:
        """How many tokens it holds."""
        return self._tokens

    def __repr__(self) -> str:
        return f"<Cache of {self._tokens} tokens, batch {self._keys.shape[:-3]}, {self._keys.dtype}>"

    @property
    def keys(self) -> Array:
        return self._keys[..., : self._tokens, :]

    @property
    def values(self) -> Array:
        return self._values[..., : self._tokens, :]

    def check(self, batch: tuple[int, ...], kv_heads: int, d_k: int, d_v: int) -> None:
        mine = (self._keys.shape[-3], self._keys.shape[-1], self._values.shape[-1])
        if mine != (kv_heads, d_k, d_v):
            raise ShapeError(
                f"the cache is for (kv_heads, d_k, d_v) = {mine}, but the layer has {(kv_heads, d_k, d_v)}: every "
                "layer needs its own, made by layer.cache()."
            )
        if self._tokens and self._keys.shape[:-3] != batch:
            raise ShapeError(
                f"the cache holds a batch of {self._keys.shape[:-3]}, but x has {batch}: begin a new one with "
                "layer.cache()."
            )

    def with_new(self, k: Array, v: Array) -> tuple[Array, Array]:
        """All keys and values with the (…, tokens, kv_heads, d) new ones at the end; `keep` makes them part of it."""
        end = self._tokens + k.shape[-3]
        self._keys = self._written(self._keys, k, end)
        self._values = self._written(self._values, v, end)
        return self._keys[..., :end, :].swapaxes(-2, -3), self._values[..., :end, :].swapaxes(-2, -3)

    def keep(self, tokens: int) -> None:
        self._tokens += tokens

    def _written(self, held: Array, new: Array, end: int) -> Array:
        if end > held.shape[-2] or held.shape[:-3] != new.shape[:-3]:
            room = max(end, 2 * held.shape[-2], ROOM)
            larger = np.empty((*new.shape[:-3], held.shape[-3], room, held.shape[-1]), held.dtype)
            larger[..., : self._tokens, :] = held[..., : self._tokens, :]
            held = larger
        held[..., self._tokens : end, :] = new.swapaxes(-2, -3)
        return held
