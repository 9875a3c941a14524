"""The operations that attention is made of: a closed list, data without behaviour.

Eight make the layer. The nine after them take the softmax apart, work its gradients and cut the keys into blocks; two
are of later models, rotary positions and the softcap; three build what stands around attention.

What an operation *means* is for a reading to say (see `headwork.readings`). Whoever needs another one, as the mistakes
do, derives it from `Op` and reads with tables that have a rule for it.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any, ClassVar, Literal

from headwork.numbers.surd import Real

Size = Any  # one length of a shape: an int, or a SymPy expression such as n, d or d/h (SymPy ships no types)
Shape = tuple[Size, ...]


class Untold:
    """A size that no matrix tells and nobody asks for: it fits every other, and what is made of it is untold too."""

    def __eq__(self, other: object) -> bool:
        return True

    def __mul__(self, other: Size) -> Untold:
        return self

    __rmul__ = __add__ = __radd__ = __truediv__ = __mul__
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return "?"


@dataclass(frozen=True)
class Root:
    """√of, where `of` is a size that has a name: √d_k."""

    of: Size
    name: str


class Op:
    """An operation on so many steps, which never changes. One without data of its own is the same as any of its class,
    and no dataclass: to make one of each took longer than to work a sheet."""

    takes: ClassVar[int | None] = 1  # None for any number of them

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")


@dataclass(frozen=True)
class Given(Op):
    """A matrix that is handed to us. The last two lengths are rows and columns; any before them are batches."""

    takes = 0
    shape: Shape


class MatMul(Op):
    """left·right."""

    takes = 2


class Transpose(Op):
    """Rows for columns."""


@dataclass(frozen=True)
class Divide(Op):
    """Every entry divided by one number."""

    by: Root | Real


class Add(Op):
    """Entry by entry; a single row is added to every row. A −∞ hides the entry that it is added to."""

    takes = None


@dataclass(frozen=True)
class Softmax(Op):
    """eˢ/Σeˢ along an axis: −1 makes rows sum to 1, −2 columns, None the whole matrix."""

    axis: int | None = -1


@dataclass(frozen=True)
class Split(Op):
    """Block number `part` (from 0) of the columns cut into `of` equal blocks."""

    part: int
    of: Size


@dataclass(frozen=True)
class Join(Op):
    """The inputs side by side.

    `of` is set when the number of heads is a symbol: the one input is then typical of so many.
    """

    takes = None
    of: Size | None = None


@dataclass(frozen=True)
class Constant(Op):
    """A matrix of one number."""

    takes = 0
    shape: Shape
    value: Real


class Multiply(Op):
    """Entry by entry. On the right a column spreads over the entries of its row, and a row over all rows."""

    takes = 2


class Subtract(Op):
    """Entry by entry, spread like `Multiply`. What is hidden stays hidden, whatever is taken from it."""

    takes = 2


@dataclass(frozen=True)
class DivideBy(Op):
    """Entry by entry, spread like `Multiply`. 0/0 is 0: a row in which nothing may be read has no weights.

    With `back`, on the way back through such a quotient, x/0 is 0 too: no nudge makes these weights others.
    """

    takes = 2
    back: bool = False


class Exp(Op):
    """e to the power of every entry; what is hidden gives 0."""


@dataclass(frozen=True)
class Sums(Op):
    """Along an axis: −1 leaves a column, the sum of every row; −2 a row, the sum of every column."""

    axis: int = -1


class Maxima(Op):
    """A column, the largest entry of every row of all the inputs; −∞ where all of them are hidden."""

    takes = None


@dataclass(frozen=True)
class Rows(Op):
    """The rows from `start` up to, and without, `stop`, counted from 0."""

    start: int
    stop: int


class Stack(Op):
    """The inputs under one another."""

    takes = None


@dataclass(frozen=True)
class Rotate(Op):
    """Every pair of columns of a matrix turned by its row's angle, whose cosine and sine stand in the other two.

    (a, b) becomes (a·cos − b·sin, a·sin + b·cos). The pairs are `neighbours`, 1 and 2, 3 and 4 …, or `halves`: the
    first column of each half, the second … `back` turns by the opposite angle: what a gradient does.
    """

    takes = 3
    pairs: Literal["neighbours", "halves"] = "neighbours"
    back: bool = False


@dataclass(frozen=True)
class Softcap(Op):
    """c·tanh(s/c) of every entry: about s where s is small, never beyond c."""

    by: Real


class Means(Op):
    """A column, the mean of every row."""


class SquareRoot(Op):
    """Of every entry; none may be negative."""


class Relu(Op):
    """Every entry that is positive; 0 in place of the others."""


LAYER: tuple[type[Op], ...] = (Given, MatMul, Transpose, Divide, Add, Softmax, Split, Join)
OPS: tuple[type[Op], ...] = (
    *LAYER,
    *(Constant, Multiply, Subtract, DivideBy, Exp, Sums, Maxima, Rows, Stack),
    *(Rotate, Softcap, Means, SquareRoot, Relu),
)
