"""Who reads which rows of whom: the runs of tokens and keys that two ranks have between them, and nothing more."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from headwork.torch.cluster.splits import Interval, Intervals, laid, numbered, rows


class Span(NamedTuple):
    """A run of a reader's tokens and the run of keys that it reads; the first token sits at key `offset` of them."""

    token: int
    tokens: int
    key: int
    keys: int
    offset: int


class Pair(NamedTuple):
    """`rows` of the owner that the reader is sent, in order; `calls`, one for two intervals, count keys among those."""

    rows: Intervals
    calls: tuple[tuple[Span, ...], ...]


class Reading(NamedTuple):
    """All that decides who reads whom: how tokens and keys lie, the window (−1: without end), the documents' ends."""

    tokens: tuple[Intervals, ...]
    keys: tuple[Intervals, ...]
    window: tuple[int, int]
    ends: tuple[int, ...]

    def pair(self, reader: int, owner: int) -> Pair:
        return pair(self, reader, owner)


@lru_cache(64)
def reading(
    tokens: int,
    keys: int,
    world: int,
    split: str | tuple[Intervals, ...],
    window: tuple[int, int],
    ends: tuple[int, ...],
) -> Reading:
    """`ends` are those of the documents, the last one that of the sequence; without documents there is none."""
    return Reading(laid(tokens, world, split), laid(keys, world, split), window, ends)


@lru_cache(4096)
def pair(of: Reading, reader: int, owner: int) -> Pair:
    """What `reader` reads of `owner`. Its own rows are not sent, so they stay as they lie.

    >>> causal = reading(8, 8, 2, "contiguous", (2, 0), ())
    >>> pair(causal, 1, 0)  # two rows of a halo
    Pair(rows=((2, 4),), calls=((Span(token=0, tokens=2, key=0, keys=2, offset=2),),))
    >>> pair(causal, 0, 1)
    Pair(rows=(), calls=())
    """
    met = [
        (token_row - tokens[0], key_row - keys[0], list(runs(tokens, keys, of.window, of.ends)))
        for token_row, tokens in numbered(of.tokens[reader])
        for key_row, keys in numbered(of.keys[owner])
    ]
    read = [(k0 + to_row, k1 + to_row) for _, to_row, found in met for _, _, k0, k1 in found]
    sent = ((0, rows(of.keys[owner])),) if reader == owner else joined(read)
    calls = (
        tuple(Span(t0 + to_token, t1 - t0, place(sent, k0 + to_row), k1 - k0, t0 - k0) for t0, t1, k0, k1 in found)
        for to_token, to_row, found in met
        if found
    )
    return Pair(sent, tuple(calls))


def runs(
    tokens: Interval, keys: Interval, window: tuple[int, int], ends: tuple[int, ...]
) -> Iterator[tuple[int, int, int, int]]:
    """(first token, end, first key, end) that meet within a window and a document, as positions."""
    left, right = window
    for first, end in within(ends, max(tokens[0], keys[0]), tokens, keys):
        t0, t1 = max(tokens[0], first), min(tokens[1], end)
        k0, k1 = max(keys[0], first), min(keys[1], end)
        if right >= 0:
            t0 = max(t0, k0 - right)
        if left >= 0:
            t1 = min(t1, k1 + left)
            k0 = max(k0, t0 - left)
        if right >= 0:
            k1 = min(k1, t1 + right)
        if t0 < t1 and k0 < k1:
            yield t0, t1, k0, k1


def within(ends: tuple[int, ...], start: int, tokens: Interval, keys: Interval) -> Iterator[Interval]:
    """The documents that both intervals have a part of; the whole where there are none."""
    if not ends:
        yield min(tokens[0], keys[0]), max(tokens[1], keys[1])
        return
    last = bisect_left(ends, min(tokens[1], keys[1]))
    for i in range(bisect_right(ends, start), min(last + 1, len(ends))):
        yield ends[i - 1] if i else 0, ends[i]


def joined(intervals: list[Interval]) -> Intervals:
    """The union, in order."""
    found: list[Interval] = []
    for first, end in sorted(intervals):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((first, end))
    return tuple(found)


def place(intervals: Intervals, row: int) -> int:
    """Where a row is among those of the intervals."""
    before = 0
    for first, end in intervals:
        if first <= row < end:
            return before + row - first
        before += end - first
    raise AssertionError(row)


def area(span: Span, window: tuple[int, int]) -> int:
    """How many pairs of a token and a key the span has to work."""
    left, right = window
    upper = up_to(span, span.offset + right) if right >= 0 else span.tokens * span.keys
    return upper - (up_to(span, span.offset - left - 1) if left >= 0 else 0)


def up_to(span: Span, diagonal: int) -> int:
    """Pairs with key ≤ token + diagonal: Σ min(max(token + diagonal + 1, 0), keys)."""
    return ramp(span.tokens + diagonal, span.keys) - ramp(diagonal, span.keys)


def ramp(last: int, top: int) -> int:
    """Σ min(u, top) over u from 1 to last."""
    rising = min(max(last, 0), top)
    return rising * (rising + 1) // 2 + max(last - top, 0) * top


def halves(
    calls: tuple[tuple[Span, ...], ...], window: tuple[int, int]
) -> tuple[tuple[tuple[Span, ...], ...], tuple[tuple[Span, ...], ...]]:
    """The same work as two lists of calls, each about half of it. A call is cut only where there is no other."""
    if len(calls) != 1:
        at = middle([sum(area(span, window) for span in call) for call in calls])
        return calls[:at], calls[at:]
    if len(calls[0]) > 1:
        at = middle([area(span, window) for span in calls[0]])
        return (calls[0][:at],) if at else (), (calls[0][at:],)
    span = calls[0][0]
    cut = span.tokens // 2
    lower = span._replace(token=span.token + cut, tokens=span.tokens - cut, offset=span.offset + cut)
    return ((span._replace(tokens=cut),),), ((lower,),)


def middle(work: list[int]) -> int:
    """How many of the first make about half of all."""
    half, done, at = sum(work) / 2, 0, 0
    while at < len(work) and done + work[at] / 2 < half:
        done += work[at]
        at += 1
    return at
