"""Arrays for the tests, and the rule they are judged by."""

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.engine import oracle

Array = NDArray[Any]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
LARGE_SAMPLE = 1000
DTYPES = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), BFLOAT16]


def draws(rng: np.random.Generator, *shapes: tuple[int, ...], dtype: Any = np.float32) -> list[Array]:
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def items_for(numbers: int) -> int:
    """How many batch items of so many numbers make a sample large enough to be judged without allowance."""
    return -(-LARGE_SAMPLE // numbers)


def accumulates(dtype: Any) -> Any:
    return np.float64 if dtype == np.float64 else np.float32


def eps(dtype: Any) -> float:
    return float(np.finfo(dtype).eps) if np.dtype(dtype) in DTYPES[:3] else 2.0**-7


def too_small(dtype: Any) -> float:
    """What a number may lose because it, or a sum on the way to it, is too small for its type."""
    kept = float(np.finfo(dtype).smallest_subnormal) if np.dtype(dtype) in DTYPES[:3] else 2.0**-133
    return kept + float(np.finfo(accumulates(dtype)).tiny)


def distance(a: Array, b: Array) -> float:
    """The largest difference."""
    return float(differences(a, b).max(initial=0))


def spread(a: Array, b: Array) -> float:
    """The root of the mean square of the differences."""
    apart = differences(a, b)
    return float(np.sqrt((apart**2).mean())) if apart.size else 0.0


def differences(a: Array, b: Array) -> Array:
    """|a − b|; NaN and infinities must be in the same places."""
    a, b = a.astype(np.longdouble), b.astype(np.longdouble)
    assert a.shape == b.shape
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0, np.abs(a - b))
    assert np.isfinite(apart).all(), "a number that is not finite where the other has another"
    return apart


def assert_as_good_as_plain(got: Array, q: Array, k: Array, v: Array, **options: Any) -> None:
    """At most twice the error of plain NumPy at the same precision, and what luck may do in so small a sample."""
    errors = Errors(got, q, k, v, **options)
    assert errors.ours <= 2 * errors.plain + max(errors.luck / np.sqrt(max(errors.drawn, 1)), errors.last_place / 2)
    assert errors.no_entry_is_far_off


def assert_at_most_twice_plain(got: Array, q: Array, k: Array, v: Array, **options: Any) -> None:
    """At most twice the error of plain NumPy at the same precision, against a finer type: no allowance."""
    errors = Errors(got, q, k, v, **options)
    assert got.size >= LARGE_SAMPLE
    assert errors.ours <= 2 * errors.plain
    assert errors.no_entry_is_far_off


BY_DISTANCE = {"alibi": -1, "relative": -2}  # options, and their axis for the heads


class Errors:
    """Our error and plain NumPy's, as the root of the mean square.

    The largest error is no measure: it sits in a row or two where few keys count, and of two equally good computations
    either may have three times the other's over a thousand rows. It is only held to last places of the terms.

    Where two keys count alike, a last place of a score of 15 moves an output by several of its own: which of two
    equally good computations that hits is luck.
    """

    def __init__(self, got: Array, q: Array, k: Array, v: Array, **options: Any) -> None:
        finer, lse, _ = oracle.attention(q, k, v, **options)
        plain = oracle.plain(q, k, v, **options).astype(q.dtype)
        if options.get("layout") == "bshd" and q.ndim > 2:
            got = got.swapaxes(-2, -3)
        self.ours, self.plain = spread(got, finer), spread(plain, finer)
        # How often luck was drawn: the rounding of a bias by distance is the same in all items and columns, and in all
        # heads that share it.
        shared = [np.shape(options[name])[axis] for name, axis in BY_DISTANCE.items() if options.get(name) is not None]
        self.drawn = got.shape[-2] * min(shared) if shared else got.size
        value = float(np.abs(v[np.isfinite(v)].astype(np.float64)).max(initial=0))
        score = float(np.abs(lse[np.isfinite(lse)]).max(initial=0))  # those that count are about as large
        self.last_place = eps(q.dtype) * value
        self.luck = 2 * (self.last_place + score * eps(accumulates(q.dtype)) * value)
        self.no_entry_is_far_off = distance(got, finer) <= 2 * distance(plain, finer) + self.luck
