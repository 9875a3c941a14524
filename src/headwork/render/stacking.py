"""Where things stand in a picture: boxes in rows, rows under one another, cards around some of them.

What stands there is a box or a card, and a card holds rows of both. What a row does not read passes it on a rail of its
own, so that no line ever runs through a box.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from headwork.maths import Maths
from headwork.render import channel
from headwork.render.drawing import SIZE, SMALL, Label, Line, Of, Rect, Shape, label_width
from headwork.render.standing import ENTRY, RAIL, Placed, in_place

BOX = 26.0  # height of a box
NARROWEST, WIDEST = 64.0, 200.0
NAMES = (SIZE - 1, SMALL)  # sizes of a name and of its shape
LABELS = 31.0  # below a box, for the name and the shape of what leaves it
PADDING, TITLE = 10.0, 20.0  # of a card
BEHIND = 5.0  # how far a card looks out behind another
Wiring = Mapping[int, str]  # every matrix that is passed on, with its colour


@dataclass(frozen=True)
class Frame:
    """One operation: what it reads, what it makes (by number), what is written in it and below it."""

    makes: int
    reads: tuple[int, ...]
    label: Maths
    name: tuple[Maths, ...] = ()  # on the arrow that leaves it, line by line
    look: str = "plain"
    colour: str = ""
    of: Of | None = None
    loose: bool = False  # nothing reads it: its arrow ends in the open
    spans: bool = False  # as wide as everything that it reads


@dataclass(frozen=True)
class Card:
    """Rows of boxes and cards, framed, with a title; several frames, one behind the other, where it stands for many."""

    title: Maths
    rows: tuple[tuple[Standing, ...], ...]
    many: bool = False


Standing = Frame | Card


def reads(one: Standing) -> set[int]:
    """What comes from outside it."""
    if isinstance(one, Frame):
        return set(one.reads)
    inner = [b for row in one.rows for b in row]
    return set().union(*map(reads, inner)) - makes(one)


def makes(one: Standing) -> set[int]:
    return {one.makes} if isinstance(one, Frame) else set().union(*(makes(b) for row in one.rows for b in row))


def placed(one: Standing, wanted: Collection[int], wiring: Wiring) -> Placed:
    """A box, or a card with everything in it; `wanted` are the matrices that somebody outside reads."""
    if isinstance(one, Frame):
        return _box(one)
    return _card(one, stacked(one.rows, wanted, wiring), wiring)


def stacked(rows: Sequence[Sequence[Standing]], wanted: Collection[int], wiring: Wiring) -> Placed:
    """Rows under one another; what comes in from above and what leaves below stands on pins of its own."""
    these = [one for row in rows for one in row]
    made = set().union(*map(makes, these))
    entering = sorted(set().union(*map(reads, these)) - made)
    leaving = sorted(set(wanted) & made)
    wants = [*map(reads, these), set(leaving)]
    inner = iter(
        placed(one, makes(one) & set().union(*wants[:i], *wants[i + 1 :]), wiring) for i, one in enumerate(these)
    )
    standing = [[next(inner) for _ in row] for row in rows]
    top = [_pin(net, entry=False) for net in entering]
    bottom = [_pin(net, exit=False) for net in leaving]
    placed_rows = in_place([row for row in (top, *standing, bottom) if row])
    shapes, height = _drawn(placed_rows, wiring)
    width = max((item.left + item.width for row in placed_rows for item in row), default=0.0)
    entries = {net: item.left + x for item in (placed_rows[0] if top else ()) for net, x in item.exits.items()}
    exits = {net: item.left + x for item in (placed_rows[-1] if bottom else ()) for net, x in item.entries.items()}
    return Placed(width, height, entries, exits, lambda: shapes)


def _pin(net: int, *, entry: bool = True, exit: bool = True) -> Placed:
    middle = RAIL / 2
    return Placed(RAIL, 0.0, {net: middle} if entry else {}, {net: middle} if exit else {}, thin=True)


def _drawn(rows: Sequence[Sequence[Placed]], wiring: Wiring) -> tuple[list[Shape], float]:
    """The rows with lines between them, and how high it all is."""
    shapes: list[Shape] = []
    at = 0.0
    for row, below in zip(rows, [*rows[1:], None], strict=True):
        deep = max(item.height for item in row)
        for item in row:
            shapes += [shape.moved(item.left, at) for shape in item.shapes()]
            for net, x in item.exits.items():
                needed = below is not None and any(net in other.entries for other in below)
                if item.height < deep and needed:  # past its taller neighbours
                    shapes.append(
                        Line(((item.left + x, at + item.height), (item.left + x, at + deep)), colour=wiring[net])
                    )
        at += deep
        labels = LABELS if any(item.labelled and item.height == deep for item in row) else 0.0
        if below is None:
            at += labels + (3 if labels else 0)
            continue
        wires = _wires(row, below, wiring)
        start = at + labels
        bottom = start + channel.height(wires)
        shapes += channel.lines(wires, at, start, bottom)
        at = bottom
    return shapes, at


def _wires(row: Sequence[Placed], below: Sequence[Placed], wiring: Wiring) -> list[channel.Wire]:
    wires = []
    for item in row:
        for net, x in item.exits.items():
            ends = [(other.left + other.entries[net], other.box > 0) for other in below if net in other.entries]
            if ends:
                wires.append(channel.Wire(item.left + x, tuple(ends), wiring[net]))
    return wires


def _box(box: Frame) -> Placed:
    width = max(NARROWEST, label_width(box.label) + 18, ENTRY * len(box.reads) + 8)
    beside = max((8 + label_width(name, size) for name, size in zip(box.name, NAMES, strict=False)), default=0.0)
    labelled = bool(box.name) or box.loose
    found = Placed(0.0, BOX, dict.fromkeys(box.reads, 0.0), {box.makes: 0.0}, labelled=labelled, beside=beside)
    found.widen(width)
    found.widest = math.inf if box.spans else WIDEST
    found.shapes = lambda: _box_shapes(box, found.box)
    return found


def _box_shapes(box: Frame, width: float) -> list[Shape]:
    middle = width / 2
    shapes: list[Shape] = [Rect(0, 0, width, BOX, box.look, box.colour, box.of)]
    shapes.append(Label(box.label, middle, BOX / 2 + 4.5, of=box.of))
    for i, (name, size) in enumerate(zip(box.name, NAMES, strict=False)):  # its name in its colour, its shape below
        colour = box.colour if i == 0 else ""
        shapes.append(Label(name, middle + 6, BOX + 13 * (i + 1), "start", size, colour, box.of))
    if box.loose:
        shapes.append(Line(((middle, BOX), (middle, BOX + LABELS)), True, box.colour))
    return shapes


def _card(card: Card, inside: Placed, wiring: Wiring) -> Placed:
    title = label_width(card.title, SMALL) + 10
    lines = sorted(inside.entries.values())
    gaps = list(zip([-PADDING, *lines], [*lines, inside.width + PADDING], strict=True))
    free = next((a + 8 for a, b in gaps if b - a >= title + 8), None)
    missing = title + 8 - (gaps[0][1] - gaps[0][0])
    left = PADDING + (missing if free is None else 0)  # where no line leaves room for the title, the card is wider
    behind = 2 * BEHIND if card.many else 0.0
    top, width = behind + TITLE, left + inside.width + PADDING
    height = TITLE + inside.height + PADDING
    shapes: list[Shape] = [_behind(i * BEHIND, behind, width, height) for i in ((2, 1) if card.many else ())]
    shapes.append(Rect(0, behind, width, height, "card"))
    shapes.append(Label(card.title, 8.0 if free is None else left + free, behind + 14, "start", SMALL))
    shapes += [shape.moved(left, top) for shape in inside.shapes()]
    entries = {net: x + left for net, x in inside.entries.items()}
    exits = {net: x + left for net, x in inside.exits.items()}
    shapes += [Line(((x, 0), (x, top)), colour=wiring[net]) for net, x in entries.items()]
    shapes += [Line(((x, top + inside.height), (x, behind + height)), colour=wiring[net]) for net, x in exits.items()]
    return Placed(width + behind, height + behind, entries, exits, lambda: shapes)


def _behind(by: float, top: float, width: float, height: float) -> Line:
    """What is seen of a card behind another."""
    corners = (
        (by, top),
        (by, top - by),
        (by + width, top - by),
        (by + width, top - by + height),
        (width, top - by + height),
    )
    return Line(corners, dashed=True)
