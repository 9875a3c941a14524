"""Rows of a picture from left to right: each thing under what it reads, none over its neighbour."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from headwork.render.drawing import Shape

GAP = 18.0  # between two blocks of a row
RAIL = 14.0  # for a line that passes a row
ENTRY = 14.0  # from one arrow into a box to the next
EDGE = 12.0  # from the side of a box to its first arrow
ABOUT = 40.0  # what is nearer than this stands in one place, as far as the order goes
STRAIGHT = 8.0  # how much a line on its way resists its neighbours
LOOSE = 0.05  # how much a block with nothing above it resists its neighbours


@dataclass
class Placed:
    """A block with its shapes, from its own corner on, and where matrices enter and leave it, by number."""

    width: float
    height: float
    entries: dict[int, float] = field(default_factory=dict)
    exits: dict[int, float] = field(default_factory=dict)
    shapes: Callable[[], list[Shape]] = list
    box: float = 0.0  # of a box, how wide it is without the names beside it: arrows may enter it anywhere
    thin: bool = False  # a line on its way
    labelled: bool = False  # names stand below it
    beside: float = 0.0  # how far they reach to the right of its middle
    widest: float = 0.0  # how far it may be widened
    left: float = 0.0  # where it stands in its row

    def widen(self, least: float) -> None:
        """A box as wide as what it reads is apart."""
        self.box = max(self.box, least)
        self.width = max(self.box, self.box / 2 + self.beside)
        self.exits = dict.fromkeys(self.exits, self.box / 2)
        self.entries = dict.fromkeys(self.entries, self.box / 2)


def in_place(rows: Sequence[Sequence[Placed]]) -> list[list[Placed]]:
    """The rows with rails for what passes them, every block in its place."""
    standing = [list(row) for row in rows]
    for row in standing:
        room = sum(item.width + GAP for item in row) - GAP
        for i, item in enumerate(row):
            item.left = sum(other.width + GAP for other in row[:i]) - room / 2
    if standing and all(item.thin for item in standing[0]):
        standing[0].sort(key=lambda pin: _readers(pin, standing[1:]))
    _add_rails(standing)
    for below, row in zip(standing[:0:-1], standing[-2::-1], strict=True):
        _settle(row, [_over(item, below) for item in row])
    for above, row in pairwise(standing):
        if all(item.thin for item in row):
            row.sort(key=lambda pin: _under(pin, above)[0])
        for item in row:
            if item.box and len(item.entries) > 1:
                sources = _sources(item, above).values()
                apart = max(sources) - min(sources) + 2 * EDGE
                item.widen(apart if apart <= item.widest else 0.0)
        alone = sum(not item.thin for item in row) == 1
        _settle(row, [_middle(item) if alone and _is_card(item) else _under(item, above) for item in row])
    edge = min((item.left for row in standing for item in row), default=0.0)
    for row in standing:
        for item in row:
            item.left -= edge
    for above, row in pairwise(standing):
        for item in row:
            if item.box:
                _spread(item, above)
    return standing


def _is_card(item: Placed) -> bool:
    return not item.thin and not item.box


def _readers(pin: Placed, rows: Sequence[Sequence[Placed]]) -> float:
    """About where the readers of what comes in stand, from left to right."""
    (net,) = pin.exits
    places = [item.left + x for row in rows for item in row for other, x in item.entries.items() if other == net]
    return round(sum(places) / len(places) / ABOUT)


def _add_rails(rows: list[list[Placed]]) -> None:
    """Left of whatever reads the same or something further right; so lines cross as little as the rows allow."""
    for above, row, later in ((rows[i - 1], rows[i], rows[i + 1 :]) for i in range(1, len(rows) - 1)):
        row.sort(key=lambda item: _under(item, above)[0] + _entry(item) if _sources(item, above) else item.left)
        wanted = {net for below in later for item in below for net in item.entries}
        for item in above:
            for net, x in item.exits.items():
                if net in wanted:
                    at = item.left + x
                    before = [i for i, other in enumerate(row) if _under(other, above)[0] + _entry(other) < at - 0.5]
                    rail = Placed(RAIL, 0.0, {net: RAIL / 2}, {net: RAIL / 2}, thin=True, left=at - RAIL / 2)
                    row.insert(max(before, default=-1) + 1, rail)
        _settle(row, [(item.left, 1.0) for item in row])


def _entry(item: Placed) -> float:
    return sum(item.entries.values()) / max(1, len(item.entries))


Wish = tuple[float, float]  # where a block would stand if it were alone, and how much that counts


def _under(item: Placed, above: Sequence[Placed]) -> Wish:
    """Below what it reads."""
    places = [
        other.left + other.exits[net] - x for net, x in item.entries.items() for other in above if net in other.exits
    ]
    return (sum(places) / len(places), STRAIGHT if item.thin else 1.0) if places else (item.left, LOOSE)


def _over(item: Placed, below: Sequence[Placed]) -> Wish:
    """Above what reads it."""
    places = [
        other.left + other.entries[net] - x for net, x in item.exits.items() for other in below if net in other.entries
    ]
    return (sum(places) / len(places), 1.0) if places else (item.left, LOOSE)


def _middle(item: Placed) -> Wish:
    """A card that has its row to itself stands on the axis of the picture, whatever passes it."""
    return -item.width / 2, 1000.0


def _settle(row: Sequence[Placed], wishes: Sequence[Wish]) -> None:
    """As near to their wishes as they can stand in this order: least squares, with a gap between them."""
    offset, groups = 0.0, []
    for i, (item, (wish, weight)) in enumerate(zip(row, wishes, strict=True)):
        if i:
            offset += row[i - 1].width + (GAP if not (row[i - 1].thin or item.thin) else 4.0)
        groups.append((wish - offset, weight, [(item, offset)]))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:  # they would overlap: from here on they move as one
            (a, u, left), (b, v, right) = groups[-2:]
            groups[-2:] = [((a * u + b * v) / (u + v), u + v, left + right)]
    for place, _, items in groups:
        for item, offset in items:
            item.left = place + offset


def _spread(item: Placed, above: Sequence[Placed]) -> None:
    """Arrows into a box straight from above where they can, else side by side in the order of where they come from."""
    sources = _sources(item, above)
    room = item.box - 2 * EDGE
    marks = [Placed(ENTRY - 4, 0.0, thin=True) for _ in sources]
    ordered = sorted(sources, key=sources.__getitem__)
    wishes = [(min(max(sources[net] - item.left, EDGE), EDGE + room), 1.0) for net in ordered]
    if len(wishes) == 1 and wishes[0][0] in (EDGE, EDGE + room):  # it has to turn anyway
        wishes = [(item.box / 2, 1.0)]
    _settle(marks, wishes)
    for i, (net, mark) in enumerate(zip(ordered, marks, strict=True)):
        most = EDGE + room - ENTRY * (len(marks) - 1 - i)
        item.entries[net] = max(EDGE + ENTRY * i, min(mark.left, most))


def _sources(item: Placed, above: Sequence[Placed]) -> dict[int, float]:
    """From where each matrix comes that it reads."""
    return {net: other.left + other.exits[net] for net in item.entries for other in above if net in other.exits}
