"""Ulysses: every rank gets the whole sequence for some of the heads, works on those, and sends the rows back.

Two exchanges of all rows, whatever is read of them, and no step that could hide them: best for many ranks and as many
key heads as query heads. A rank may have no head to work on; it still sends its rows, and gets its results.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from headwork.torch.cluster import blockwise
from headwork.torch.cluster.blockwise import Gradients, KeyGradients, Partial, Scores
from headwork.torch.cluster.line import GRADIENTS, ROWS, Line
from headwork.torch.cluster.messages import Part, empty, read, runs
from headwork.torch.cluster.reading import Reading, Span, reading
from headwork.torch.cluster.splits import Interval, Intervals, pieces, rows


class Heads(NamedTuple):
    """The query heads that a rank works on, and the key heads that they read."""

    query: Interval
    key: Interval


def heads_of(heads: int, kv_heads: int, world: int) -> list[Heads]:
    group = heads // kv_heads
    return [Heads((a, b), (a // group, -(-b // group)) if a < b else (0, 0)) for a, b in pieces(heads, world)]


def groups(mine: Heads, heads: int, kv_heads: int) -> Iterator[tuple[slice, slice]]:
    """A rank's own heads in calls in which all key heads have as many query heads, counted among its own."""
    group = heads // kv_heads
    (a, b), (first, last) = mine
    even = a % group == 0 and b % group == 0
    for k0, k1 in [(first, last)] if even else [(k, k + 1) for k in range(first, last)]:
        yield slice(max(a, k0 * group) - a, min(b, k1 * group) - a), slice(k0 - first, k1 - first)


def swap(
    line: Line,
    give: Callable[[int], Sequence[Tensor]],
    parts: Callable[[int], list[Part]],
    take: Callable[[int, list[Tensor]], None],
    step: str,
    tag: int = ROWS,
) -> None:
    """Every rank gives every other one tensors and takes those of each, the next ones under way meanwhile."""
    take(line.rank, list(give(line.rank)))
    under = []
    for t in range(1, line.world):
        source, target = (line.rank - t) % line.world, (line.rank + t) % line.world
        tensors = give(target)
        given = [Part(tuple(x.shape), x.dtype) for x in tensors]
        message = empty(given)
        for into, x in zip(read(message, given), tensors, strict=True):
            into.copy_(x)
        coming = line.receive(source, empty(parts(source)), step, tag) if any(p.bytes for p in parts(source)) else None
        going = line.send(target, message, step, tag) if message.numel() else None
        under.append((source, coming, going))
        while len(under) > (1 if t < line.world - 1 else 0):
            peer, came, gone = under.pop(0)
            take(peer, read(line.wait(came) if came else empty(parts(peer)), parts(peer)))
            if gone:
                line.wait(gone)


def put(into: Tensor, intervals: Intervals, piece: Tensor) -> None:
    """Rows of a rank at their positions in the whole sequence."""
    for there, here in runs(into, intervals, piece):
        there.copy_(here)


def taken(whole: Tensor, intervals: Intervals) -> Tensor:
    return torch.cat([whole[:, :, first:end] for first, end in intervals], 2)


class Turned:
    """This rank's heads of the whole sequence, gathered from the rows of all."""

    def __init__(self, line: Line, found: Reading, query: Sequence[Tensor], key: Sequence[Tensor]) -> None:
        """`query` are tensors with a query's heads and tokens, `key` with a key's."""
        self.line, self.found = line, found
        self.all = heads_of(query[0].shape[1], key[0].shape[1], line.world)
        self.sizes = (query[0].shape[1], key[0].shape[1])
        self.tokens, self.keys = (sum(rows(mine) for mine in held) for held in (found.tokens, found.keys))
        mine = self.all[line.rank]
        of_query = [x.new_empty((x.shape[0], width(mine.query), self.tokens, *x.shape[3:])) for x in query]
        of_key = [x.new_empty((x.shape[0], width(mine.key), self.keys, *x.shape[3:])) for x in key]

        def give(peer: int) -> list[Tensor]:
            theirs = self.all[peer]
            return [x[:, slice(*theirs.query)] for x in query] + [x[:, slice(*theirs.key)] for x in key]

        def parts(peer: int) -> list[Part]:
            count, keys = rows(found.tokens[peer]), rows(found.keys[peer])
            first = [Part((*x.shape[:2], count, *x.shape[3:]), x.dtype) for x in of_query]
            return first + [Part((*x.shape[:2], keys, *x.shape[3:]), x.dtype) for x in of_key]

        def take(peer: int, pieces: list[Tensor]) -> None:
            for whole, piece in zip(of_query, pieces[: len(of_query)], strict=True):
                put(whole, found.tokens[peer], piece)
            for whole, piece in zip(of_key, pieces[len(of_query) :], strict=True):
                put(whole, found.keys[peer], piece)

        swap(line, give, parts, take, "the exchange of heads")
        self.query, self.key = of_query, of_key

    def calls(self) -> tuple[tuple[Span, ...], ...]:
        alone = reading(self.tokens, self.keys, 1, "contiguous", self.found.window, self.found.ends)
        return alone.pair(0, 0).calls

    def groups(self) -> Iterator[tuple[slice, slice]]:
        return groups(self.all[self.line.rank], *self.sizes)

    def back(
        self, query: Sequence[Tensor], key: Sequence[Tensor], home: Callable[[Heads, list[Tensor]], None], tag: int
    ) -> None:
        """Rows of the results to the ranks that hold them; `home` is called with every rank's heads."""
        line, found = self.line, self.found

        def give(peer: int) -> list[Tensor]:
            first = [taken(x, found.tokens[peer]) for x in query]
            return first + [taken(x, found.keys[peer]) for x in key]

        def parts(peer: int) -> list[Part]:
            theirs, count, keys = self.all[peer], rows(found.tokens[line.rank]), rows(found.keys[line.rank])
            first = [Part((x.shape[0], width(theirs.query), count, *x.shape[3:]), x.dtype) for x in query]
            return first + [Part((x.shape[0], width(theirs.key), keys, *x.shape[3:]), x.dtype) for x in key]

        swap(line, give, parts, lambda peer, pieces: home(self.all[peer], pieces), "the return of heads", tag)


def width(interval: Interval) -> int:
    return interval[1] - interval[0]


def forward(
    line: Line, found: Reading, scores: Scores, query: Tensor, key: Tensor, value: Tensor, into: Partial
) -> None:
    turned = Turned(line, found, [query], [key, value])
    (q,), (k, v) = turned.query, turned.key
    out = q.new_zeros((*q.shape[:3], v.shape[3]), dtype=into.out.dtype)
    lse = q.new_full(q.shape[:3], -torch.inf, dtype=into.lse.dtype)
    for mine, read_heads in turned.groups():
        partial = Partial(out[:, mine], lse[:, mine])
        blockwise.forward(q[:, mine], k[:, read_heads], v[:, read_heads], partial, turned.calls(), scores)
    del q, k, v
    turned.query, turned.key = [], []

    def home(heads: Heads, pieces: list[Tensor]) -> None:
        into.out[:, slice(*heads.query)] = pieces[0]
        into.lse[:, slice(*heads.query)] = pieces[1]

    turned.back([out.to(query.dtype), lse], [], home, ROWS)


def backward(line: Line, found: Reading, scores: Scores, mine: Gradients, keys: KeyGradients) -> None:
    turned = Turned(line, found, [mine.lse, mine.delta, mine.query, mine.d_out], [keys.key, keys.value])
    (lse, delta, query, d_out), (k, v) = turned.query, turned.key
    d_q, d_k, d_v = (x.new_zeros(x.shape, dtype=keys.d_key.dtype) for x in (query, k, v))
    for here, read_heads in turned.groups():
        rows_here = Gradients(query[:, here], d_out[:, here], lse[:, here], delta[:, here], d_q[:, here])
        read_here = KeyGradients(*(x[:, read_heads] for x in (k, v, d_k, d_v)))
        blockwise.backward(rows_here, read_here, turned.calls(), scores)

    def home(heads: Heads, pieces: list[Tensor]) -> None:
        mine.d_query[:, slice(*heads.query)] = pieces[0]
        keys.d_key[:, slice(*heads.key)] += pieces[1]
        keys.d_value[:, slice(*heads.key)] += pieces[2]

    turned.back([d_q], [d_k, d_v], home, GRADIENTS)
