"""The paged cache, with pools of tensors."""

from typing import Any

import torch
from torch import Tensor

from headwork.engine import paged_cache
from headwork.errors import HeadworkError
from headwork.torch.decode import attention_decode
from headwork.torch.path import KNOWN
from headwork.torch.quantize import KINDS, quantize


class PagedCache(paged_cache.PagedCache):
    """`headwork.PagedCache` for tensors: a `dtype` of torch's in, tensors in and out. It keeps no gradient.

    >>> cache = PagedCache(kv_heads=1, d_k=4, dtype=torch.int8)
    >>> one = cache.begin()
    >>> cache.append([one], torch.ones(1, 1, 3, 4), torch.ones(1, 1, 3, 4))
    >>> cache.attention([one], torch.ones(1, 1, 1, 4))
    tensor([[[[1., 1., 1., 1.]]]])
    """

    _quantize = staticmethod(quantize)
    _decode = staticmethod(attention_decode)

    def __init__(
        self,
        kv_heads: int,
        d_k: int,
        d_v: int | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        block_size: int = 16,
        blocks: int = 64,
        limit: int | None = None,
    ) -> None:
        given: Any = dtype  # of torch's, where the array's cache has NumPy's
        super().__init__(kv_heads, d_k, d_v, dtype=given, block_size=block_size, blocks=blocks, limit=limit)

    def _checked_dtype(self, dtype: Any) -> Any:
        if dtype not in KNOWN and dtype not in KINDS:
            raise HeadworkError(f"dtype is {dtype!r}. Give one of {', '.join(str(t) for t in (*KNOWN, *KINDS))}.")
        return dtype

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return torch.zeros(shape, dtype=torch.float32 if dtype is None else dtype, device="cpu")

    def _array(self, name: str, given: Any) -> Any:
        if not isinstance(given, Tensor) or given.dtype not in KNOWN:
            kind = given.dtype if isinstance(given, Tensor) else type(given).__name__
            raise HeadworkError(f"{name} holds {kind}. Give a tensor of floats.")
        return given.detach()

    def _table(self, rows: list[list[int]], lengths: list[int]) -> tuple[Any, Any]:
        table = torch.tensor(rows, dtype=torch.int32, device="cpu").reshape(len(rows), len(rows[0]) if rows else 0)
        return table, torch.tensor(lengths, dtype=torch.int32, device="cpu")
