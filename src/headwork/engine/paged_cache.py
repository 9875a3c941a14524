"""The keys and values of many sequences in one pool of blocks, which each takes as it grows."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from headwork.engine.arrays import floats, is_float
from headwork.engine.blocks import Blocks
from headwork.engine.decode import DecodeOptions, attention_decode
from headwork.engine.quantize import KINDS, named, quantize
from headwork.errors import HeadworkError, ShapeError


class PagedCache:
    """A cache for decoding many sequences of different lengths: no padding, no copy when one grows.

    Its pools are (blocks, kv_heads, block_size, d); those of 8-bit types have a float32 scale for every token and head
    beside them. The pool doubles when all blocks are taken, up to `limit` blocks if there is one. `fork` gives a second
    sequence with the same past, which takes no room until one of the two goes on.

    >>> cache = PagedCache(kv_heads=1, d_k=4, block_size=2, dtype="int8")
    >>> a = cache.begin()
    >>> x = np.ones((1, 1, 3, 4), np.float32)  # (batch, kv_heads, tokens, d)
    >>> cache.append([a], x, x)
    >>> b = cache.fork(a)
    >>> cache.attention([a, b], np.ones((2, 1, 1, 4), np.float32))[:, 0, 0, 0]
    array([1., 1.], dtype=float32)
    >>> cache
    <PagedCache of 2 sequences, 2 of 64 blocks of 2 tokens, int8>
    """

    def __init__(
        self,
        kv_heads: int,
        d_k: int,
        d_v: int | None = None,
        *,
        dtype: DTypeLike = np.float32,
        block_size: int = 16,
        blocks: int = 64,
        limit: int | None = None,
    ) -> None:
        d_v = d_k if d_v is None else d_v
        counts = {"kv_heads": kv_heads, "d_k": d_k, "d_v": d_v, "block_size": block_size, "blocks": blocks}
        for name, count in counts.items() if limit is None else {**counts, "limit": limit}.items():
            if not isinstance(count, Integral) or count < 1:
                raise HeadworkError(f"{name} is {count!r}. Give a whole number from 1 up.")
        self._dtype = self._checked_dtype(dtype)
        self._blocks = Blocks(blocks if limit is None else min(blocks, limit), block_size, limit)
        self._sides = (kv_heads, d_k), (kv_heads, d_v)
        self._pools: list[Any] = []
        self._room()

    # What another array library does in its own way.
    _quantize: Callable[..., tuple[Any, Any]] = staticmethod(quantize)
    _decode: Callable[..., Any] = staticmethod(attention_decode)

    def _checked_dtype(self, dtype: Any) -> Any:
        sort = named(dtype)
        if not is_float(sort) and sort.name not in KINDS:
            raise HeadworkError(
                f"dtype is {dtype!r}. A cache holds float32, float64, float16, bfloat16 or {', '.join(KINDS)}."
            )
        return sort

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return np.zeros(shape, np.float32 if dtype is None else dtype)

    def _array(self, name: str, given: Any) -> Any:
        return floats(name, given)

    def _table(self, rows: list[list[int]], lengths: list[int]) -> tuple[Any, Any]:
        return np.array(rows, np.int32).reshape(len(rows), len(rows[0]) if rows else 0), np.array(lengths, np.int32)

    @property
    def _is_scaled(self) -> bool:
        return str(self._dtype).removeprefix("torch.") in KINDS

    def __repr__(self) -> str:
        taken = len(self._blocks.uses) - len(self._blocks.free)
        return (
            f"<{type(self).__name__} of {len(self._blocks.sequences)} sequences, {taken} of {len(self._blocks.uses)} "
            f"blocks of {self._blocks.size} tokens, {self._dtype}>"
        )

    @property
    def keys(self) -> Any:
        """The pool of keys, (blocks, kv_heads, block_size, d_k)."""
        return self._pools[0]

    @property
    def values(self) -> Any:
        return self._pools[1]

    @property
    def scales(self) -> tuple[Any, Any]:
        """Those of the keys and of the values, (blocks, kv_heads, block_size) each; None where numbers have none."""
        return (self._pools[2], self._pools[3]) if self._is_scaled else (None, None)

    @property
    def nbytes(self) -> int:
        """What the pools take, taken blocks and free ones."""
        return sum(int(pool.nbytes) for pool in self._pools)

    def begin(self) -> int:
        """A new sequence, empty: its number."""
        return self._blocks.begin()

    def fork(self, sequence: int) -> int:
        """A new sequence with the past of another. Both read the same blocks; the last one is copied when either goes
        on.
        """
        return self._blocks.begin(self._blocks.of(sequence))

    def free(self, sequence: int) -> None:
        """Forget a sequence; blocks that nobody else reads can be taken again."""
        self._blocks.end(sequence)

    def length(self, sequence: int) -> int:
        """How many tokens a sequence holds."""
        return self._blocks.of(sequence).length

    def append(self, sequences: Sequence[int], k: ArrayLike, v: ArrayLike) -> None:
        """The next tokens of every sequence: k (batch, kv_heads, tokens, d_k), v (batch, kv_heads, tokens, d_v)."""
        names = self._named(sequences)
        new_k, new_v = self._array("k", k), self._array("v", v)
        (heads, d_k), (_, d_v) = self._sides
        shapes = tuple(new_k.shape), tuple(new_v.shape)
        tokens = shapes[0][2] if len(shapes[0]) == 4 else 0
        wanted = (len(names), heads, tokens, d_k), (len(names), heads, tokens, d_v)
        if shapes != wanted:
            raise ShapeError(
                f"k and v are {shapes[0]} and {shapes[1]}, but {len(names)} sequences of this cache take (batch, "
                f"kv_heads, tokens, d): ({len(names)}, {heads}, tokens, {d_k}) and as many tokens with {d_v} for d."
            )
        lacking = self._blocks.lacking(names, tokens)
        if lacking:
            self._blocks.grow(lacking)
            self._room()
        parts = [new_k, new_v]
        if self._is_scaled:
            (new_k, k_scales), (new_v, v_scales) = (self._quantize(new, self._dtype) for new in parts)
            parts = [new_k, new_v, k_scales, v_scales]
        for item, name in enumerate(names):
            copied, pieces = self._blocks.extend(name, tokens)
            for pool, new in zip(self._pools, parts, strict=True):
                if copied is not None:
                    pool[copied[1]] = pool[copied[0]]
                for block, row, first, count in pieces:
                    pool[block, :, row : row + count] = new[item, :, first : first + count]

    def block_table(self, sequences: Sequence[int]) -> tuple[Any, Any]:
        """(table, lengths), as `attention_decode` takes them; rows of the table are filled up with −1."""
        found = [self._blocks.of(name) for name in self._named(sequences)]
        most = max((len(one.blocks) for one in found), default=0)
        rows = [[*one.blocks, *[-1] * (most - len(one.blocks))] for one in found]
        return self._table(rows, [one.length for one in found])

    def attention(self, sequences: Sequence[int], q: ArrayLike, **options: Unpack[DecodeOptions]) -> Any:
        """The newest tokens of these sequences read all that they hold: q (batch, heads, tokens, d_k), after their keys
        were appended. Options are those of `attention_decode`.
        """
        table, lengths = self.block_table(sequences)
        k_scales, v_scales = self.scales
        mine = {"block_table": table, "lengths": lengths, "k_scales": k_scales, "v_scales": v_scales}
        taken = [name for name in (*mine, "layout") if name in options]
        if taken:
            raise HeadworkError(f"{', '.join(taken)}: the cache gives these itself. Leave them out.")
        return self._decode(q, self.keys, self.values, **mine, **options)

    def _named(self, sequences: Sequence[int]) -> list[int]:
        if isinstance(sequences, Integral):
            raise HeadworkError(f"sequences is {sequences}. Give a list of them, one for every batch item.")
        names = list(sequences)
        if len(set(names)) < len(names):
            raise HeadworkError(f"sequences are {names}: each may be named once.")
        for name in names:
            self._blocks.of(name)
        return names

    def _room(self) -> None:
        """Pools for as many blocks as there are, with what was there before."""
        count, size = len(self._blocks.uses), self._blocks.size
        shapes: list[tuple[tuple[int, ...], Any]] = [((count, heads, size, d), self._dtype) for heads, d in self._sides]
        if self._is_scaled:
            shapes += [((count, heads, size), None) for heads, _ in self._sides]
        fresh = [self._empty(*shape) for shape in shapes]
        for old, new in zip(self._pools, fresh, strict=False):
            new[: len(old)] = old
        self._pools = fresh
