"""How a page is laid out: its numbers, its room, its names."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from headwork.maths import Maths, Row, width
from headwork.notation import PLAIN, Notation
from headwork.readings.exact import Matrix
from headwork.render.cells import Style


def numbered() -> Iterator[str]:
    """A key for every display of a page: e1, e2 …"""
    return (f"e{n}" for n in count(1))


@dataclass(frozen=True)
class Layout:
    """`room` is how many characters fit on a line, None where a line may be of any width; `measure` counts them.

    `cell` is how many a table's cell of words or formulas takes before it is broken into lines, None where none is.
    """

    style: Style = field(default_factory=Style)
    room: int | None = None
    cell: int | None = None
    measure: Callable[[Maths], int] = width
    notation: Notation = PLAIN
    causal: bool = False
    names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # of the tokens that ask, and of those that are read
    pointing: bool = False  # whether entries can be pointed at
    abreast: bool = False  # whether displays that are narrow enough stand two to a line
    keys: Iterator[str] = field(default_factory=numbered)

    def token_names(self, matrix: Matrix) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of a matrix's rows and columns, those that come last where there are more; none where too few."""
        tokens, keys = self.names
        rows, columns = len(matrix), len(matrix[0])
        return tokens[-rows:] if len(tokens) >= rows else (), keys if len(keys) == columns else ()

    def fits(self, *maths: Maths, share: int = 1) -> bool:
        """Whether these stand on one line, or on a share of it."""
        return self.room is None or self.measure(Row(maths)) <= self.room // share
