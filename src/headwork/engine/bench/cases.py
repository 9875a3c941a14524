"""The problems that are timed, and what each must reach against whom."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
BLOCK = 128


@dataclass
class Problem:
    """Arrays (batch, heads, tokens, d) and what is asked of them."""

    q: Array
    k: Array
    v: Array
    causal: bool = False
    mask: Array | None = None
    blocks: Array | None = None  # which blocks of BLOCK tokens may read which of BLOCK keys
    window: tuple[int, int] | None = None
    lengths: list[int] | None = None  # of packed sequences: the arrays are (tokens, heads, d) then

    def visible(self) -> NDArray[np.bool_] | None:
        """The mask a dense implementation needs, (tokens, keys)."""
        tokens, keys = self.q.shape[-2], self.k.shape[-2]
        apart = np.arange(keys) - np.arange(tokens)[:, None]
        if self.window is not None:
            return (apart >= -self.window[0]) & (apart <= self.window[1])
        if self.causal:
            return apart <= 0
        if self.blocks is not None:
            return np.kron(self.blocks, np.ones((BLOCK, BLOCK), bool))
        return self.mask

    def operations(self) -> float:
        """Multiplications and additions of both products, over the keys that are read."""
        if self.lengths is not None:
            pairs = float(sum(n * n for n in self.lengths)) * self.q.shape[1]
            return float(4 * pairs * self.q.shape[-1])
        seen = self.visible()
        tokens, keys = self.q.shape[-2], self.k.shape[-2]
        pairs = float(tokens * keys if seen is None else seen.sum()) * self.q.shape[0] * self.q.shape[1]
        return float(2 * pairs * (self.q.shape[-1] + self.v.shape[-1]))

    @property
    def bare(self) -> bool:
        return self.mask is None and self.blocks is None and self.window is None

    @property
    def ends(self) -> Array:
        """Where packed sequences begin and end."""
        return np.cumsum([0, *(self.lengths or [])])

    @property
    def reads_memory(self) -> bool:
        """Whether reading keys and values, and not the operations, takes the time: one query uses each only once."""
        return bool(self.lengths is None and self.q.shape[-2] == 1)


@dataclass(frozen=True)
class Case:
    """One line of the table. `targets` are the ratios to reach, by peer."""

    name: str
    make: Callable[[], Problem]
    targets: dict[str, float] = field(default_factory=dict)
    peers: tuple[str, ...] = ("torch", "onnx", "onnx mha", "jax", "numpy")
    quick: bool = True
    needs: str | None = None  # a package without which there are no such arrays


def draw(
    of_queries: tuple[int, ...], of_keys: tuple[int, ...] | None = None, dtype: Any = np.float32
) -> tuple[Array, Array, Array]:
    """Queries, keys and values."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(shape or of_queries, np.float32) for shape in (of_queries, of_keys, of_keys))
    return q, k.astype(dtype), v.astype(dtype)


def dense(batch: int, heads: int, tokens: int, d: int, causal: bool = False) -> Callable[[], Problem]:
    return lambda: Problem(*draw((batch, heads, tokens, d)), causal=causal)


def brain(batch: int, heads: int, tokens: int, d: int, causal: bool = False) -> Callable[[], Problem]:
    """The same in bfloat16."""

    def make() -> Problem:
        from ml_dtypes import bfloat16

        q, k, v = (array.astype(bfloat16) for array in draw((batch, heads, tokens, d)))
        return Problem(q, k, v, causal=causal)

    return make


def cached(tokens: int, keys: int, dtype: Any = np.float32) -> Callable[[], Problem]:
    """32 query heads on 8 key heads of width 128."""
    return lambda: Problem(*draw((1, 32, tokens, 128), (1, 8, keys, 128), dtype))


def masked(blocks: bool) -> Problem:
    rng = np.random.default_rng(0)
    if blocks:
        mask = np.kron(rng.random((16, 16)) < 1 / 3, np.ones((BLOCK, BLOCK))).astype(bool)
        np.fill_diagonal(mask, True)
    else:
        mask = rng.random((2048, 2048)) < 0.5
    return Problem(*draw((1, 8, 2048, 64)), mask=mask)


def in_blocks() -> Problem:
    """A third of the blocks, and each block itself."""
    visible = np.random.default_rng(0).random((16, 16)) < 1 / 3
    return Problem(*draw((1, 8, 2048, 64)), blocks=visible | np.eye(16, dtype=bool))


def windowed() -> Problem:
    return Problem(*draw((1, 8, 4096, 64)), window=(128, 127))


def ragged() -> Problem:
    lengths = [37, 1024, 200, 512, 91, 700, 333, 64]
    return Problem(*draw((sum(lengths), 8, 64)), lengths=lengths)


LONG = {"torch": 1.30, "onnx": 1.15}
SHORT = {"torch": 1.4, "onnx": 1.08}
DECODING = {"torch": 4.5, "torch folded": 3, "onnx": 3}
DECODERS = ("torch", "torch folded", "onnx", "numpy")

CASES = (
    Case("1,8,2048,64", dense(1, 8, 2048, 64), LONG),
    Case("1,2,8192,64", dense(1, 2, 8192, 64), LONG, ("torch", "onnx", "onnx mha", "jax"), quick=False),
    Case("1,8,512,64", dense(1, 8, 512, 64), SHORT),
    Case("1,8,128,64", dense(1, 8, 128, 64), SHORT),
    Case("4,8,256,64", dense(4, 8, 256, 64), SHORT),
    Case("causal 1,8,2048,64", dense(1, 8, 2048, 64, True), {"torch": 1.6, "onnx": 1.6}),
    Case("causal 1,8,512,64", dense(1, 8, 512, 64, True), {"torch": 2.5, "onnx": 1.6}),
    Case("causal 1,12,77,64", dense(1, 12, 77, 64, True), {"torch": 2.0, "onnx": 1.6}),
    Case("1,8,1024,32", dense(1, 8, 1024, 32), {"torch": 1.25, "onnx": 1.0}),
    Case("1,8,1024,128", dense(1, 8, 1024, 128), {"torch": 1.12, "onnx": 1.0}),
    Case("1,8,1024,256", dense(1, 8, 1024, 256), {"torch": 1.08, "onnx": 1.0}, quick=False),
    Case("decode 1 on 4096, 32/8", cached(1, 4096), DECODING, DECODERS),
    Case("decode 1 on 32768, 32/8", cached(1, 32768), DECODING, DECODERS, quick=False),
    Case("16 on 4096, 32/8", cached(16, 4096), {"torch": 1.8}, DECODERS),
    Case("Boolean mask, random", lambda: masked(False), {"torch": 1.4}, ("torch",)),
    Case("Boolean mask, 128-blocks", lambda: masked(True), {"torch": 3.2}, ("torch",)),
    Case("blocks handed over", in_blocks, {"torch": 3.2, "torch flex": 1.0}, ("torch", "torch flex")),
    Case("window 256 of 4096", windowed, {"torch": 15, "torch flex": 2.5}, ("torch", "torch flex")),
    Case("ragged, 8 of 37–1024", ragged, {"torch loop": 1.3, "torch padded": 4.5}, ("torch loop", "torch padded")),
    Case("decode float16 on 4096", cached(1, 4096, np.float16), {"torch bfloat16": 3}, ("torch bfloat16",)),
    Case(
        "bfloat16 1,8,2048,64", brain(1, 8, 2048, 64), {"torch bfloat16": 1.3}, ("torch bfloat16",), needs="ml_dtypes"
    ),
    Case(
        "bfloat16 causal 1,8,2048,64",
        brain(1, 8, 2048, 64, True),
        {"torch bfloat16": 1.6},
        ("torch bfloat16",),
        needs="ml_dtypes",
    ),
    Case("2×2", dense(1, 1, 2, 2), {"torch": 4}),
)
