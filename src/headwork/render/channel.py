"""Lines between two rows of a picture: down, across on a track of their own, down. None runs along another."""

from collections.abc import Iterator
from dataclasses import dataclass

from headwork.render.drawing import Line

TRACK = 8.0  # from one track to the next
APART = 5.0  # what is nearer than this would touch
ARROW = 13.0  # below the last track, for the heads of arrows


@dataclass(frozen=True)
class Wire:
    """A matrix on its way from one place above to some below; each of these with or without the head of an arrow."""

    top: float
    ends: tuple[tuple[float, bool], ...]
    colour: str = ""

    @property
    def span(self) -> tuple[float, float]:
        places = [self.top, *(x for x, _ in self.ends)]
        return min(places), max(places)

    @property
    def straight(self) -> bool:
        low, high = self.span
        return high - low < 1.5


def height(wires: list[Wire]) -> float:
    """How much room the lines need, below the labels of the row above."""
    tracks = _tracks(wires)
    return ARROW + TRACK * (max(tracks.values()) + 1 if tracks else 0)


def lines(wires: list[Wire], top: float, start: float, bottom: float) -> Iterator[Line]:
    """From the row above, which ends at `top`, to the one below at `bottom`; tracks lie from `start` on."""
    tracks = _tracks(wires)
    for i, wire in enumerate(wires):
        if wire.straight:
            yield from (Line(((wire.top, top), (x, bottom)), head, wire.colour) for x, head in wire.ends)
            continue
        level = start + TRACK * (tracks[i] + 0.5)
        for x, head in sorted(wire.ends, key=lambda end: -abs(end[0] - wire.top)):
            yield Line(((wire.top, top), (wire.top, level), (x, level), (x, bottom)), head, wire.colour)


def _tracks(wires: list[Wire]) -> dict[int, int]:
    """A track for each wire that is not straight: as few as keep them apart, in an order with few crossings."""
    bent = [i for i, wire in enumerate(wires) if not wire.straight]
    above: dict[int, set[int]] = {i: {j for j in bent if i != j and _over(wires[j], wires[i])} for i in bent}
    taken: dict[int, int] = {}
    waiting = sorted(bent, key=lambda i: _turn(wires[i]))
    while waiting:
        ready = [i for i in waiting if above[i] <= taken.keys()]
        chosen = (ready or waiting)[0]
        track = max((taken[j] + 1 for j in above[chosen] if j in taken), default=0)
        while any(taken[j] == track and _meet(wires[j], wires[chosen]) for j in taken):
            track += 1
        taken[chosen] = track
        waiting.remove(chosen)
    return taken


def _over(one: Wire, other: Wire) -> bool:
    """Whether one must turn above the other: it starts where the other ends."""
    return any(abs(one.top - x) < APART for x, _ in other.ends)


def _meet(one: Wire, other: Wire) -> bool:
    (a, b), (c, d) = one.span, other.span
    return a < d + APART and c < b + APART


def _turn(wire: Wire) -> float:
    """Of wires to the right the rightmost turns first, of wires to the left the leftmost: so they cross least."""
    low, high = wire.span
    return -wire.top if high - wire.top >= wire.top - low else wire.top
