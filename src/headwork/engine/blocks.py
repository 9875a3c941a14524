"""Which blocks of a pool belong to which sequence: the bookkeeping of a paged cache, without its numbers."""

from dataclasses import dataclass, field
from typing import NamedTuple

from headwork.errors import HeadworkError


class Piece(NamedTuple):
    """`tokens` of those that are appended, from `first` on, go to the rows of a block from `row` on."""

    block: int
    row: int
    first: int
    tokens: int


@dataclass(slots=True)
class Sequence:
    blocks: list[int] = field(default_factory=list)
    length: int = 0


class Blocks:
    """A pool of blocks of `size` rows. A block that several sequences share is written by none of them."""

    def __init__(self, count: int, size: int, limit: int | None) -> None:
        self.size, self.limit = size, limit
        self.uses = [0] * count
        self.free = list(range(count - 1, -1, -1))
        self.sequences: dict[int, Sequence] = {}
        self.next = 0

    def begin(self, like: Sequence | None = None) -> int:
        """A new sequence, empty or with the blocks of another."""
        name, self.next = self.next, self.next + 1
        self.sequences[name] = Sequence() if like is None else Sequence(list(like.blocks), like.length)
        for block in self.sequences[name].blocks:
            self.uses[block] += 1
        return name

    def of(self, name: int) -> Sequence:
        try:
            return self.sequences[name]
        except (KeyError, TypeError):
            held = ", ".join(str(known) for known in list(self.sequences)[:8]) or "none"
            raise HeadworkError(
                f"there is no sequence {name!r} in the cache. It holds {held}: begin() and fork() give their numbers."
            ) from None

    def end(self, name: int) -> None:
        for block in self.of(name).blocks:
            self.release(block)
        del self.sequences[name]

    def release(self, block: int) -> None:
        self.uses[block] -= 1
        if not self.uses[block]:
            self.free.append(block)

    def lacking(self, names: list[int], tokens: int) -> int:
        """How many blocks more there must be before each of these sequences can take so many tokens."""
        needed = 0
        for name in names:
            sequence = self.of(name)
            needed += -(-(sequence.length + tokens) // self.size) - len(sequence.blocks)
            needed += bool(tokens) and self.is_shared(sequence)
        return max(0, needed - len(self.free))

    def is_shared(self, sequence: Sequence) -> bool:
        """Does somebody else read the block that the next token goes to?"""
        return sequence.length % self.size != 0 and self.uses[sequence.blocks[-1]] > 1

    def grow(self, lacking: int) -> int:
        """Doubles the pool, as far as its limit allows; returns how many blocks there are then."""
        count = len(self.uses)
        if self.limit is not None and count + lacking > self.limit:
            raise HeadworkError(
                f"the cache is full: {lacking} blocks more are needed, and with its {count} there may be {self.limit}. "
                "free() a sequence, or raise the limit."
            )
        larger = max(2 * count, count + lacking)
        larger = larger if self.limit is None else min(larger, self.limit)
        self.uses += [0] * (larger - count)
        self.free[:0] = range(larger - 1, count - 1, -1)
        return larger

    def take(self) -> int:
        block = self.free.pop()
        self.uses[block] = 1
        return block

    def extend(self, name: int, tokens: int) -> tuple[tuple[int, int] | None, list[Piece]]:
        """(a block to copy and where to, if the last one is shared; where the new tokens go)."""
        sequence, copied = self.of(name), None
        if tokens and self.is_shared(sequence):
            shared = sequence.blocks[-1]
            self.release(shared)
            copied = shared, self.take()
            sequence.blocks[-1] = copied[1]
        pieces, done = [], 0
        while done < tokens:
            row = sequence.length % self.size
            if not row:
                sequence.blocks.append(self.take())
            count = min(self.size - row, tokens - done)
            pieces.append(Piece(sequence.blocks[-1], row, done, count))
            done, sequence.length = done + count, sequence.length + count
        return copied, pieces
