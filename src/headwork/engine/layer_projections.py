"""The projections of a layer: checked, and laid side by side as the blocks of one."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike

from headwork.engine.arrays import Array, floats
from headwork.engine.backend import AHEAD, DEFAULT_THREADS, kernel
from headwork.errors import HeadworkError, ShapeError

MATRICES, BIASES = ("W_Q", "W_K", "W_V", "W_O"), ("b_Q", "b_K", "b_V", "b_O")


class Projections:
    """W_Q, W_K, W_V and W_O with their biases; [W_Q | W_K | W_V] is one array where the context is as wide as x."""

    def __init__(self, arrays: Mapping[str, ArrayLike | None], heads: int, kv_heads: int | None) -> None:
        given = {name: floats(name, array) for name, array in arrays.items() if array is not None}
        self.dtype = one_type(given)
        q, k, v, o = (two_axes(name, given[name].astype(self.dtype, copy=False)) for name in MATRICES)
        self.heads = whole("heads", heads)
        self.kv_heads = self.heads if kv_heads is None else whole("kv_heads", kv_heads)
        if self.heads % self.kv_heads:
            raise ShapeError(
                f"heads is {self.heads} and kv_heads {self.kv_heads}. Every key head serves the same number of query "
                f"heads: {self.heads} must be a multiple of {self.kv_heads}."
            )
        self.d_k = width_of_one("W_Q", q, self.heads, "heads")
        self.d_v = width_of_one("W_V", v, self.kv_heads, "kv_heads")
        self.d_model, self.d_context, self.d_out = len(q), len(k), o.shape[1]
        if k.shape[1] != self.kv_heads * self.d_k:
            raise ShapeError(
                f"W_Q is {q.shape} with {self.heads} heads, so d_k is {self.d_k}, but W_K is {k.shape} with "
                f"{self.kv_heads}: it needs {self.kv_heads * self.d_k} columns."
            )
        if len(v) != len(k):
            raise ShapeError(
                f"W_K is {k.shape} and W_V {v.shape}: keys and values are made of one context, of one width."
            )
        if len(o) != self.heads * self.d_v:
            raise ShapeError(
                f"W_O is {o.shape}, but the joined heads are {self.heads}·{self.d_v} wide: it needs as many rows."
            )
        biases = [
            bias(name, given.get(name), matrix.shape[1], self.dtype)
            for name, matrix in zip(BIASES, (q, k, v, o), strict=True)
        ]
        self._lay(q, k, v, biases[:3])
        self.W_O, self.b_O = o, biases[3]

    def _lay(self, q: Array, k: Array, v: Array, biases: list[Array | None]) -> None:
        """Lay the blocks side by side; what W_Q and the others are is then views of the whole."""
        widths = [block.shape[1] for block in (q, k, v)]
        self.wide = side_by_side(q, k, v) if self.d_model == self.d_context else None
        self.W_Q, self._W_KV = (q, side_by_side(k, v)) if self.wide is None else np.split(self.wide, widths[:1], axis=1)
        self.W_K, self.W_V = np.split(self._W_KV, [widths[1]], axis=1)
        self.b_wide = self.b_Q = self._b_KV = self.b_K = self.b_V = None
        if any(row is not None for row in biases):
            filled = [np.zeros(n, self.dtype) if row is None else row for row, n in zip(biases, widths, strict=True)]
            self.b_wide = np.concatenate(filled)
            self.b_Q, self._b_KV = np.split(self.b_wide, widths[:1])
            self.b_K, self.b_V = np.split(self._b_KV, [widths[1]])

    def named(self) -> dict[str, Array | None]:
        """As `MultiHead` takes them."""
        return {name: getattr(self, name) for name in (*MATRICES, *BIASES)}

    def heads_of(self, x: Array, context: Array | None) -> tuple[Array, Array, Array]:
        """Q, K and V as (…, tokens, heads, d): views of one product, or of two if there is a context."""
        if context is None:
            assert self.wide is not None
            q, kv = np.split(projected(x, self.wide, self.b_wide), [self.W_Q.shape[1]], axis=-1)
        else:
            q, kv = projected(x, self.W_Q, self.b_Q), projected(context, self._W_KV, self._b_KV)
        k, v = np.split(kv, [self.W_K.shape[1]], axis=-1)
        return parted(q, self.heads), parted(k, self.kv_heads), parted(v, self.kv_heads)


def projected(x: Array, W: Array, b: Array | None) -> Array:
    """x·W + b for every batch item, in one product: by the kernel where that is ahead of NumPy's."""
    rows, shape = x.reshape(-1, x.shape[-1]), (*x.shape[:-1], W.shape[1])
    if AHEAD:
        assert kernel is not None
        out = np.empty((len(rows), W.shape[1]), W.dtype)
        if kernel.linear(rows, W, b, out, DEFAULT_THREADS):
            return out.reshape(shape)
    out = rows @ W
    if b is not None:
        out += b
    return out.reshape(shape)


def parted(wide: Array, heads: int) -> Array:
    """(…, tokens, heads·d) → (…, tokens, heads, d), a view."""
    return wide.reshape(*wide.shape[:-1], heads, wide.shape[-1] // heads)


def side_by_side(*blocks: Array) -> Array:
    """[A | B | …]: where the blocks are views of one array that has them so, that array; otherwise a copy."""
    first = blocks[0]
    at = first.__array_interface__["data"][0]
    for block in blocks:
        mine = block.__array_interface__["data"][0] == at and block.strides == first.strides
        if first.base is None or block.base is not first.base or not mine:
            return np.concatenate(blocks, axis=1)
        at += block.shape[1] * first.strides[1]
    return as_strided(first, (len(first), sum(block.shape[1] for block in blocks)), first.strides)


def one_type(given: dict[str, Array]) -> np.dtype[Any]:
    """float64 if all are, float32 if none is."""
    double = [name for name, array in given.items() if array.dtype == np.float64]
    if double and len(double) < len(given):
        other = next(name for name in given if name not in double)
        raise HeadworkError(
            f"{double[0]} holds float64 and {other} {given[other].dtype}. float64 does not mix with narrower types: "
            "convert all projections and biases to one type."
        )
    return np.dtype(np.float64 if double else np.float32)


def two_axes(name: str, matrix: Array) -> Array:
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ShapeError(f"{name} is {matrix.shape}. Give a matrix: rows for what goes in, columns for what comes out.")
    return matrix


def whole(name: str, number: int) -> int:
    if isinstance(number, bool) or not isinstance(number, Integral) or number < 1:
        raise HeadworkError(f"{name} is {number!r}. Give a whole number from 1 up.")
    return int(number)


def width_of_one(name: str, matrix: Array, heads: int, what: str) -> int:
    if matrix.shape[1] % heads:
        raise ShapeError(
            f"{name} is {matrix.shape}: {heads} {what} cannot share its {matrix.shape[1]} columns equally."
        )
    return int(matrix.shape[1]) // heads


def bias(name: str, row: Array | None, width: int, dtype: np.dtype[Any]) -> Array | None:
    if row is not None and row.shape != (width,):
        raise ShapeError(f"{name} is {row.shape}, but W_{name[-1]} has {width} columns: give ({width},).")
    return None if row is None else row.astype(dtype, copy=False)
