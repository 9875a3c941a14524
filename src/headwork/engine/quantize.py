"""Keys and values in 8 bits: numbers, and a scale for every token and head."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from headwork.engine.arrays import Array, floats, is_float, unmasked
from headwork.errors import HeadworkError
from headwork.extras import needs

# The 8-bit types by name: what the kernel calls them, and the largest number each holds.
KINDS = {"int8": 1, "float8_e4m3fn": 2, "float8_e5m2": 3}
LARGEST = {"int8": 127.0, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


def quantize(x: ArrayLike, dtype: DTypeLike = np.int8) -> tuple[Array, Array]:
    """(numbers, scales): x ≈ numbers · scales[…, None], with one scale for every row of the last axis.

    x (…, d) → numbers (…, d) of `dtype`, scales (…) float32. A row's largest number becomes 127 in int8, so that none
    is off by more than 1/254 of it. ml_dtypes' float8_e4m3fn and float8_e5m2 keep 4 and 3 significant bits of each
    number instead. A row that holds a NaN or an infinity becomes NaN.

    >>> quantize(np.array([1.0, -0.5, 0.25]))
    (array([127, -64,  32], dtype=int8), np.float32(0.007874016))
    """
    array, sort = floats("x", x), eight_bit(dtype)
    if not array.ndim:
        raise HeadworkError("x is a single number. Give rows of numbers, (…, d).")
    wide = array.astype(np.float32, copy=False) if array.dtype != np.float64 else array
    with np.errstate(all="ignore"):
        scales = (np.abs(wide).max(-1, initial=0) / LARGEST[sort.name]).astype(np.float32)
        real = np.isfinite(scales) & (scales != 0)
        numbers = np.where(real[..., None], wide / np.where(real, scales, 1)[..., None], 0)
        if sort == np.int8:
            numbers = np.clip(np.rint(numbers), -127, 127)
        return numbers.astype(sort), np.where(np.isfinite(scales), scales, np.float32(np.nan))[()]


def named(dtype: DTypeLike) -> np.dtype[Any]:
    """The type; NumPy knows the names of ml_dtypes' only once that is loaded. What is no type is an object's."""
    if isinstance(dtype, str) and dtype in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        theirs: np.dtype[Any] = np.dtype(getattr(needs("ml_dtypes"), dtype))
        return theirs
    try:
        return np.dtype(dtype)
    except TypeError:
        return np.dtype(object)


def eight_bit(dtype: DTypeLike) -> np.dtype[Any]:
    sort = named(dtype)
    if sort.name not in KINDS:
        raise HeadworkError(f"dtype is {dtype!r}. Give one of {', '.join(KINDS)}; the last two are in ml_dtypes.")
    return sort


def cached(name: str, given: ArrayLike) -> Array:
    """`given` as an array of one of the types that keys and values may be kept in."""
    array = unmasked(name, given)
    if is_float(array.dtype) or array.dtype.name in KINDS:
        return array
    raise HeadworkError(
        f"{name} holds {array.dtype}. A cache holds float32, float64, float16, bfloat16, {', '.join(KINDS)}: "
        f"quantize({name}) gives int8 and its scales."
    )


def dequantized(array: Array, scales: Array | None) -> Array:
    """What the numbers stand for: in float64, for a scale may lead out of float32 where the scores do not."""
    if array.dtype.name not in KINDS:
        return array
    wide = array.astype(np.float64)
    return wide if scales is None else wide * np.broadcast_to(scales, array.shape[:-1])[..., None]
