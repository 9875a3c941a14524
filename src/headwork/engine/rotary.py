"""Rotary positions: Q and K turned by an angle that grows with the position, so that scores tell how far apart."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headwork.engine.arrays import Array
from headwork.errors import HeadworkError, ShapeError


@dataclass(frozen=True)
class Rotary:
    """At position p, pair i of a head's columns turns by the angle p·frequencies[i].

    (a, b) → (a·cos − b·sin, b·cos + a·sin). Pair i is the columns i and i + d/2, as Llama's files have it, or 2i and
    2i + 1 if `interleaved`. Columns beyond the pairs stay as they are.

    >>> Rotary.of(4).frequencies
    array([1.  , 0.01])
    """

    frequencies: NDArray[np.float64] = field(compare=False)
    interleaved: bool = False

    def __post_init__(self) -> None:
        frequencies = np.asarray(self.frequencies, np.float64)
        if frequencies.ndim != 1 or not frequencies.size or not np.isfinite(frequencies).all():
            raise HeadworkError(
                f"frequencies are {frequencies.dtype} {frequencies.shape}. Give one finite number for every pair of "
                "columns, or use Rotary.of(d_k)."
            )
        object.__setattr__(self, "frequencies", frequencies)

    @classmethod
    def of(cls, d_k: int, base: float = 10_000.0, *, interleaved: bool = False) -> Rotary:
        """The usual angles for `d_k` columns: frequencies[i] = base^(−2i/d_k)."""
        if d_k < 2 or d_k % 2:
            raise HeadworkError(f"{d_k} columns do not make pairs: rotary positions need an even number, 2 or more.")
        if not base > 0:
            raise HeadworkError(f"base is {base!r}. Give a positive number; 10000 is usual.")
        return cls(base ** (-np.arange(0, d_k, 2) / d_k), interleaved)

    @property
    def columns(self) -> int:
        """How many columns of a head turn."""
        return 2 * len(self.frequencies)

    def check(self, d_k: int) -> None:
        if self.columns > d_k:
            raise ShapeError(
                f"the rotary positions turn {self.columns} columns, but d_k is {d_k}: use Rotary.of({d_k})."
            )

    def turn(self, heads: Array, first: int) -> None:
        """Turn (…, tokens, heads, d_k) in place, token 0 being at position `first`."""
        # Angles in float64: at position 100,000 a float32 product is off by several thousandths.
        angles = np.arange(first, first + heads.shape[-3])[:, None, None] * self.frequencies
        cos, sin = np.cos(angles).astype(heads.dtype), np.sin(angles).astype(heads.dtype)
        if self.interleaved:
            a, b = heads[..., 0 : self.columns : 2], heads[..., 1 : self.columns : 2]
        else:
            a, b = heads[..., : self.columns // 2], heads[..., self.columns // 2 : self.columns]
        turned = a * cos - b * sin
        b *= cos
        b += a * sin
        a[...] = turned
