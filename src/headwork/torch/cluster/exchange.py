"""Direct exchange: in step t rank r works on the rows it reads of rank r − t, while it receives those of r − t − 1 and
sends its own to r + t + 1. Gradients of keys go straight back to their owner.

Nothing is forwarded, so only rows that are read travel: a halo for a window, three quarters for causal zigzag, next to
nothing for documents. With `ahead` as large as the group all rows are asked for at once: the way called gather.
"""

from collections import deque
from collections.abc import Sequence

import torch
from torch import Tensor

from headwork.torch.cluster import blockwise
from headwork.torch.cluster.blockwise import Gradients, KeyGradients, Partial, Scores
from headwork.torch.cluster.line import GRADIENTS, Line, Under
from headwork.torch.cluster.messages import Part, add_rows, empty, packed, read
from headwork.torch.cluster.reading import Pair, Reading, halves
from headwork.torch.cluster.splits import Intervals


class Rows:
    """The keys and values that come in step by step, one peer's after another's."""

    def __init__(self, line: Line, reading: Reading, key: Tensor, value: Tensor, ahead: int) -> None:
        self.line, self.reading, self.ahead = line, reading, ahead
        self.tensors = (key, value)
        self.posted = 0
        self.coming: dict[int, Under] = {}
        self.going: deque[Under] = deque()
        self.kept: tuple[Intervals, Tensor] | None = None

    def source(self, step: int) -> int:
        return (self.line.rank - step) % self.line.world

    def target(self, step: int) -> int:
        return (self.line.rank + step) % self.line.world

    def read_at(self, step: int) -> Pair:
        return self.reading.pair(self.line.rank, self.source(step))

    def asked_at(self, step: int) -> Pair:
        return self.reading.pair(self.target(step), self.line.rank)

    def post(self, upto: int) -> None:
        """Have the rows of all steps up to this one under way."""
        while self.posted < min(upto, self.line.world - 1):
            self.posted += 1
            step, name = self.posted, f"step {self.posted} of the exchange"
            if self.read_at(step).rows:
                parts = parts_of(self.tensors, self.read_at(step).rows)
                self.coming[step] = self.line.receive(self.source(step), empty(parts), name)
            if self.asked_at(step).rows:
                self.going.append(self.line.send(self.target(step), self.message(self.asked_at(step).rows), name))
        if self.posted == self.line.world - 1:
            self.kept = None

    def message(self, rows: Intervals) -> Tensor:
        """Packed once for all who read the same rows one after another."""
        if self.kept is None or self.kept[0] != rows:
            self.kept = None
            self.kept = rows, packed(self.tensors, rows, parts_of(self.tensors, rows))
        return self.kept[1]

    def at(self, step: int) -> list[Tensor] | None:
        """The keys and values of a step; None where nothing of them is read."""
        if step not in self.coming:
            return None
        arrived = self.line.wait(self.coming.pop(step))
        return read(arrived, parts_of(self.tensors, self.read_at(step).rows))

    def post_after(self, step: int) -> None:
        """Have those of the following steps under way, and no more than `ahead` of them packed."""
        self.sent(less_than=self.ahead)
        self.post(step + self.ahead)

    def sent(self, less_than: int = 1) -> None:
        while len(self.going) >= less_than:
            self.line.wait(self.going.popleft())


def parts_of(tensors: Sequence[Tensor], rows: Intervals, dtype: torch.dtype | None = None) -> list[Part]:
    count = sum(end - first for first, end in rows)
    return [Part((*t.shape[:2], count, *t.shape[3:]), dtype or t.dtype) for t in tensors]


def forward(
    line: Line, reading: Reading, scores: Scores, query: Tensor, key: Tensor, value: Tensor, into: Partial, ahead: int
) -> None:
    rows = Rows(line, reading, key, value, ahead)
    rows.post(ahead)
    blockwise.forward(query, key, value, into, rows.read_at(0).calls, scores)
    for step in range(1, line.world):
        found = rows.at(step)
        rows.post_after(step)
        if found:
            blockwise.forward(query, found[0], found[1], into, rows.read_at(step).calls, scores)
        del found
    rows.sent()


class Returns:
    """Gradients of other ranks' keys on their way home, and of our own on their way here."""

    def __init__(self, rows: Rows, d_key: Tensor, d_value: Tensor) -> None:
        self.rows, self.into = rows, (d_key, d_value)
        self.coming: deque[tuple[int, Under]] = deque()
        self.going: deque[Under] = deque()

    def parts(self, intervals: Intervals) -> list[Part]:
        return parts_of(self.rows.tensors, intervals, self.into[0].dtype)

    def post(self, step: int, message: Tensor | None) -> None:
        """What was worked out in a step goes to its owner; what the reader of our rows has worked out comes."""
        line, name = self.rows.line, f"the gradients of step {step} of the exchange"
        if message is not None:
            self.going.append(line.send(self.rows.source(step), message, name, GRADIENTS))
        asked = self.rows.asked_at(step).rows
        if asked:
            self.coming.append((step, line.receive(self.rows.target(step), empty(self.parts(asked)), name, GRADIENTS)))

    def add(self) -> None:
        """Wait for all that is under way, and add what came."""
        while self.coming:
            step, under = self.coming.popleft()
            asked = self.rows.asked_at(step).rows
            add_rows(self.into, asked, self.rows.line.wait(under), self.parts(asked))
        while self.going:
            self.rows.line.wait(self.going.popleft())


def backward(line: Line, reading: Reading, scores: Scores, mine: Gradients, keys: KeyGradients, ahead: int) -> None:
    """Half of the own block hides the first rows' way here, the other half the last gradients' way home."""
    rows = Rows(line, reading, keys.key, keys.value, ahead)
    returns = Returns(rows, keys.d_key, keys.d_value)
    first, last = halves(rows.read_at(0).calls, scores.window)
    rows.post(ahead)
    blockwise.backward(mine, keys, first, scores)
    for step in range(1, line.world):
        backward_step(step, rows, returns, mine, scores)
    blockwise.backward(mine, keys, last, scores)
    returns.add()
    rows.sent()


def backward_step(step: int, rows: Rows, returns: Returns, mine: Gradients, scores: Scores) -> None:
    """Half of it hides the way of the gradients of the step before, the other half that of the next rows: both at once
    would take twice the memory, on the same wire.
    """
    found, message = rows.at(step), None
    calls = rows.read_at(step).calls
    first, last = halves(calls, scores.window) if returns.coming or returns.going else ((), calls)
    if found:
        parts = returns.parts(rows.read_at(step).rows)
        message = empty(parts).zero_()
        theirs = KeyGradients(*found, *read(message, parts))
        blockwise.backward(mine, theirs, first, scores)
    returns.add()
    rows.post_after(step)
    if found:
        blockwise.backward(mine, theirs, last, scores)
    returns.post(step, message)
