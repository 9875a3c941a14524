"""Where the rows of a sequence lie: for every rank the intervals of positions it holds, in the order of its rows."""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, TypeAlias

from headwork.errors import HeadworkError

Interval: TypeAlias = tuple[int, int]
Intervals: TypeAlias = tuple[Interval, ...]
Split: TypeAlias = str | Sequence[Sequence[Sequence[int]]]
NAMES = ("contiguous", "zigzag")


def laid(tokens: int, world: int, split: str | tuple[Intervals, ...]) -> tuple[Intervals, ...]:
    """The intervals of every rank. Pieces are cut as `torch.chunk` and DTensor's `Shard` cut them; one may be empty.

    "contiguous" gives rank r piece r of `world`; "zigzag" pieces r and 2·world − 1 − r of 2·world, so that in causal
    order, where late tokens read much and early ones little, all have the same work.

    >>> laid(16, 2, "zigzag")
    (((0, 4), (12, 16)), ((4, 8), (8, 12)))
    """
    if not isinstance(split, str):
        check_cover(tokens, world, split)
        return tuple(mine or ((0, 0),) for mine in split)
    if split == "contiguous":
        return tuple((piece,) for piece in pieces(tokens, world))
    halves = pieces(tokens, 2 * world)
    return tuple((halves[r], halves[-1 - r]) for r in range(world))


def pieces(tokens: int, of: int) -> list[Interval]:
    size = -(-tokens // of)
    return [(min(i * size, tokens), min((i + 1) * size, tokens)) for i in range(of)]


def check_cover(tokens: int, world: int, split: tuple[Intervals, ...]) -> None:
    if len(split) != world:
        raise HeadworkError(
            f"split has the intervals of {len(split)} ranks, but the group has {world}: one list for each."
        )
    at = 0
    for first, last in sorted(interval for mine in split for interval in mine if interval[0] < interval[1]):
        if first != at:
            word = "twice" if first < at else "by no rank"
            raise HeadworkError(
                f"split holds position {min(first, at)} {word}: the intervals of all ranks cover 0 to {tokens} once."
            )
        at = last
    if at != tokens:
        raise HeadworkError(f"split ends at {at}, but the ranks together have {tokens} rows.")


def checked(split: Any) -> str | tuple[Intervals, ...]:
    """A split's name, or a tuple for every rank of its intervals (first, end)."""
    if isinstance(split, str):
        if split not in NAMES:
            raise HeadworkError(f'split is {split!r}. Give "auto", "contiguous", "zigzag" or intervals for every rank.')
        return split
    try:
        found = tuple(tuple((int(first), int(end)) for first, end in mine) for mine in split)
    except (TypeError, ValueError):
        found = ()
    if not found or any(first < 0 or end < first for mine in found for first, end in mine):
        raise HeadworkError(
            f"split is {split!r}. Give a name, or for every rank a list of (first, end): "
            "[[(0, 4), (12, 16)], [(4, 12)]]."
        )
    return found


def rows(intervals: Intervals) -> int:
    return sum(end - first for first, end in intervals)


def numbered(intervals: Intervals) -> Iterator[tuple[int, Interval]]:
    """Each interval that has rows, with the number of its first row."""
    row = 0
    for first, end in intervals:
        if first < end:
            yield row, (first, end)
        row += end - first


def named(split: str | tuple[Intervals, ...]) -> str:
    return split if isinstance(split, str) else "intervals"


def digest(numbers: Any) -> str:
    """A long list, shortly: equal texts for equal lists."""
    return f"{len(numbers)} entries, {sha256(json.dumps(numbers).encode()).hexdigest()[:12]}"
