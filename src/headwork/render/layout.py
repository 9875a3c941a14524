"""How a page is laid out: its numbers, its room, its names."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from headwork.maths import Maths, Row, width
from headwork.notation import PLAIN, Notation
from headwork.render.cells import Style


def numbered() -> Iterator[str]:
    """A key for every display of a page: e1, e2 …"""
    return (f"e{n}" for n in count(1))


@dataclass(frozen=True)
class Layout:
    """`room` is how many characters fit on a line, None where a line may be of any width; `measure` counts them."""

    style: Style = field(default_factory=Style)
    room: int | None = None
    measure: Callable[[Maths], int] = width
    notation: Notation = PLAIN
    causal: bool = False
    pointing: bool = False  # whether entries can be pointed at
    keys: Iterator[str] = field(default_factory=numbered)

    def fits(self, *maths: Maths) -> bool:
        """Whether these stand on one line."""
        return self.room is None or self.measure(Row(maths)) <= self.room
