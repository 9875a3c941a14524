"""Keys and values in 8 bits, as tensors."""

import torch
from torch import Tensor

from headwork.engine.quantize import LARGEST
from headwork.errors import HeadworkError
from headwork.torch.path import KNOWN

KINDS = {torch.int8: 1, torch.float8_e4m3fn: 2, torch.float8_e5m2: 3}


def quantize(x: Tensor, dtype: torch.dtype = torch.int8) -> tuple[Tensor, Tensor]:
    """(numbers, scales): x ≈ numbers · scales[…, None], with one scale for every row of the last axis.

    x (…, d) → numbers (…, d) of `dtype`, torch.int8, torch.float8_e4m3fn or torch.float8_e5m2, and scales (…) float32:
    the numbers that `headwork.quantize` gives. A row that holds a NaN or an infinity becomes NaN. No gradient goes
    through.

    >>> quantize(torch.tensor([1.0, -0.5, 0.25]))
    (tensor([127, -64,  32], dtype=torch.int8), tensor(0.0079))
    """
    if not isinstance(x, Tensor) or x.dtype not in KNOWN or not x.dim():
        given = f"{x.dtype} {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise HeadworkError(f"x is {given}. Give a tensor of floats, (…, d).")
    if dtype not in KINDS:
        raise HeadworkError(f"dtype is {dtype!r}. Give one of {', '.join(str(kind) for kind in KINDS)}.")
    wide = x.detach()
    wide = wide if wide.dtype == torch.float64 else wide.to(torch.float32)
    largest = LARGEST[str(dtype).removeprefix("torch.")]
    top = wide.abs().amax(-1) if x.shape[-1] else wide.sum(-1)
    scales = (top / largest).to(torch.float32)
    real = torch.isfinite(scales) & (scales != 0)
    numbers = torch.where(real[..., None], wide / torch.where(real, scales, 1.0)[..., None], 0.0)
    if dtype == torch.int8:
        numbers = numbers.round().clamp(-127, 127)
    return numbers.to(dtype), torch.where(torch.isfinite(scales), scales, torch.nan)


def dequantized(x: Tensor, scales: Tensor | None) -> Tensor:
    if x.dtype not in KINDS:
        return x
    wide = x.to(torch.float32)
    return wide if scales is None else wide * scales[..., None]
