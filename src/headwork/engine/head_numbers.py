"""What a caller gives for every head: sinks, ALiBi slopes, a table of relative positions; and dropout. Each checked."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headwork.engine.arrays import Array, CallSizes, accumulator, broadcasts, floats
from headwork.errors import HeadworkError, ShapeError


@dataclass(slots=True, frozen=True)
class HeadNumbers:
    """Of a call, in the type of its sums: `sinks` and `slopes` (…, heads), `table` (…, heads, 2·reach + 1)."""

    sinks: Array | None = None
    slopes: Array | None = None
    table: Array | None = None

    @property
    def reach(self) -> int:
        return 0 if self.table is None else self.table.shape[-1] // 2

    @property
    def distances(self) -> bool:
        return self.slopes is not None or self.table is not None


def checked_heads(
    q: Array, size: CallSizes, sinks: ArrayLike | None, alibi: ArrayLike | None, relative: ArrayLike | None
) -> HeadNumbers:
    sort = accumulator(q)
    return HeadNumbers(
        None if sinks is None else per_head("sinks", sinks, size, sort),
        None if alibi is None else per_head("alibi", alibi, size, sort),
        None if relative is None else checked_table(relative, size, sort),
    )


def per_head(name: str, given: ArrayLike, size: CallSizes, sort: np.dtype[Any]) -> Array:
    array = floats(name, given)
    wanted = (*size.batch, size.heads)
    check_fit(name, array.shape, array.shape, wanted, "a number for every head")
    return np.ascontiguousarray(array, sort)


def checked_table(given: ArrayLike, size: CallSizes, sort: np.dtype[Any]) -> Array:
    array = floats("relative", given)
    if array.ndim < 1 or array.shape[-1] % 2 == 0:
        raise ShapeError(
            f"relative is {array.shape}: its last axis holds what is added at the distances −r … r, an odd number."
        )
    check_fit("relative", array.shape, array.shape[:-1], (*size.batch, size.heads), "a row for every head")
    return np.ascontiguousarray(array, sort)


def check_fit(
    name: str,
    given: tuple[int, ...],
    lead: tuple[int, ...],
    wanted: tuple[int, ...],
    what: str,
    axes: str = "(…, heads)",
) -> None:
    if not broadcasts(lead, wanted):
        raise ShapeError(f"{name} is {given}, but the call has {axes} = {wanted}: give {what}.")


def checked_dropout(dropout: float, seed: int | None) -> tuple[float, int]:
    if not isinstance(dropout, Real) or not 0 <= dropout <= 1:
        raise HeadworkError(f"dropout is {dropout!r}. Give the share of weights to drop, from 0 to 1.")
    if seed is not None and not isinstance(seed, Integral):
        raise HeadworkError(f"seed is {seed!r}. Give a whole number.")
    if dropout and seed is None:
        raise HeadworkError(
            "dropout needs a seed: give a whole number, another one for every step; the same one drops the same "
            "weights, in attention_backward too."
        )
    return float(dropout), 0 if seed is None else int(seed) % 2**64
