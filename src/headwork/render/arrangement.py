"""Where the boxes of a picture stand: sections of lanes and layers, read off the graph."""

from collections.abc import Collection
from dataclasses import dataclass

from headwork.graph import Head
from headwork.maths import Letter, Maths, Row, Sign, Words
from headwork.ops import Add, Divide, Join, MatMul, Size, Softmax, Split
from headwork.render.formula import divisor, formula, part, side_by_side
from headwork.working import Diagram

PARAMETERS = (
    "W_Q",
    "W_K",
    "W_V",
    "W_O",
    "b_Q",
    "b_K",
    "b_V",
    "b_O",
    "mask",
    "bias",
    "distance",
    "positions",
    "cos",
    "sin",
    "rate",
)
ENTRANCE = ("Q", "K", "V", "Q_before_bias", "K_before_bias", "V_before_bias")
FEW = 3  # joined heads that are named one by one
_DOTS = Sign("…")


@dataclass(frozen=True)
class Frame:
    """A box: the row it works out, its label, the lanes it spans and the layer it stands in."""

    row: int
    label: Maths | None  # None for an input, which is named with its shape
    first: float
    last: float
    layer: int
    inputs: tuple[int, ...] = ()
    outside: tuple[int, ...] = ()  # those of the inputs that come from above its section
    look: str = "plain"
    joins: bool = False

    @property
    def lane(self) -> float:
        return (self.first + self.last) / 2

    def entry_lane(self, row: int) -> float:
        """Where an arrow from outside the section enters: side by side when there are two."""
        if len(self.outside) == 1 or self.first != self.last:
            return self.lane
        return self.lane - 0.2 + 0.4 * self.outside.index(row) / (len(self.outside) - 1)


class Arrangement:
    """A diagram's rows with parameters folded into the boxes that use them, and transposes into the arrows."""

    def __init__(self, diagram: Diagram) -> None:
        self.rows = diagram.rows
        self.sources = diagram.sources
        ints = [e.head for e in self.rows if isinstance(e.head, int)]
        letters = [e.head for e in self.rows if isinstance(e.head, str)]
        self.heads: list[Head] = [*sorted(set(ints)), *dict.fromkeys(letters)]
        self.after = self._after()

    @property
    def head_count(self) -> Size:
        joins = [e.step.op for e in self.rows if isinstance(e.step.op, Join)]
        of = next((join.of for join in joins if join.of is not None), None)
        return len(self.heads) if of is None else of

    def head_name(self, head: Head) -> str:
        return next(e.name.subscripts[-1] for e in self.rows if e.head == head and e.name.subscripts)

    @property
    def lanes(self) -> int:
        """How many boxes stand side by side; three, for Q, K and V, as a rule."""
        sections = [self.outside(before=True), self.outside(before=False), *map(self.section, self.heads)]
        return max(3, *(round(box.last) + 1 for section in sections for box in section))

    def read_by_another(self, row: int) -> bool:
        return any(row in self.inputs(other) for other in self.boxes())

    def given(self, row: int) -> bool:
        """Handed over, or with inputs that the picture does not hold."""
        equation = self.rows[row]
        return equation.given or len(self.sources[row]) < len(equation.operands)

    def parameter(self, row: int) -> bool:
        return self.given(row) and self.rows[row].role in PARAMETERS

    def inputs(self, row: int) -> tuple[int, ...]:
        """What a box rests on, parameters and transposes aside."""
        if self.given(row):
            return ()
        found = []
        for source in self.sources[row]:
            while self.rows[source].name.transposed and not self.given(source):
                (source,) = self.sources[source]
            if not self.parameter(source):
                found.append(source)
        return tuple(found)

    def boxes(self) -> list[int]:
        return [
            row
            for row, equation in enumerate(self.rows)
            if not self.parameter(row) and not (equation.name.transposed and not self.given(row))
        ]

    def shared_sources(self) -> list[int]:
        """Inputs that several boxes read."""
        readers = [source for row in self.boxes() for source in self.inputs(row)]
        return [row for row in self.boxes() if self.given(row) and readers.count(row) > 1]

    def section(self, head: Head, *, whole: bool = True, drawn: Collection[int] = ()) -> list[Frame]:
        """One head's boxes, all of them or its projections and one for the rest; dashed what is `drawn` already."""
        own = [row for row in self.boxes() if self.rows[row].head == head]
        made = [row for row in own if self.rows[row].role not in ENTRANCE]
        # On the way back a head has several ends: the gradients of its own projections.
        last = [row for row in made if not any(row in self.inputs(other) for other in made)] if whole else made[-1:]
        wanted = set(last or own)  # nothing but projections, where no more is asked for
        for row in range(max(wanted, default=-1), -1, -1):
            if row in wanted and row not in drawn:
                wanted.update(s for s in self.inputs(row) if self.rows[s].head is not None)
        rows = sorted(wanted)
        if not whole:
            rows = [row for row in rows if self.rows[row].role in ENTRANCE or row in last]
        return self._placed(rows, drawn)

    def outside(self, *, before: bool) -> list[Frame]:
        """The boxes of no head, before the heads or after them."""
        shared = self.shared_sources()
        rows = [row for row in self.boxes() if self.rows[row].head is None and row not in shared]
        return self._placed([row for row in rows if (row in self.after) != before])

    def cut(self, row: int) -> Maths | None:
        """A wide matrix that is split, as its blocks: [Q_1 | Q_2]; nothing for one that is not."""
        parts = [
            self.rows[other].name.maths
            for other in self.boxes()
            if isinstance(self.rows[other].step.op, Split) and row in self.inputs(other)
        ]
        if not parts:
            return None
        return side_by_side((_DOTS, parts[0], _DOTS)) if isinstance(self.heads[0], str) else _shortened(parts)

    @property
    def sharing(self) -> int:
        """How many heads read each key and value."""
        keys = {e.head for e in self.rows if e.role == "K" and e.head is not None}
        return len(self.heads) // len(keys) if keys else 1

    def _after(self) -> set[int]:
        """Rows of no head that rest on some head."""
        after: set[int] = set()
        for row, equation in enumerate(self.rows):
            resting = any(s in after or self.rows[s].head is not None for s in self.sources[row])
            if equation.head is None and resting:
                after.add(row)
        return after

    def _placed(self, rows: list[int], drawn: Collection[int] = ()) -> list[Frame]:
        """The boxes of a section: one head's, or those before or after the heads."""
        place: dict[int, Frame] = {}
        lanes = 0
        several = sum(not (set(self._reach(row, rows)) & set(rows)) for row in rows)
        for row in rows:
            inputs = () if row in drawn else self._reach(row, rows)
            within = [place[i] for i in inputs if i in place]
            if within:
                first, last = min(b.lane for b in within), max(b.lane for b in within)
                layer = 1 + max(b.layer for b in within)
            else:
                first = last = lanes if several > 1 else 1.0
                lanes, layer = lanes + 1, 0
            joins = isinstance(self.rows[row].step.op, Join) and not self.given(row)
            if joins and not within:
                first, last = 0.0, 2.0
            while any(b.layer == layer and b.first < last + 1 and first < b.last + 1 for b in place.values()):
                layer += 1  # another box stands there
            outside = tuple(i for i in inputs if i not in place)
            look = "elsewhere" if row in drawn else "source" if self.given(row) else "plain"
            label = self.rows[row].name.maths if row in drawn else self._label(row, rows)
            place[row] = Frame(
                row, None if look == "source" else label, first, last, layer, inputs, outside, look, joins
            )
        return list(place.values())

    def _reach(self, row: int, rows: list[int]) -> tuple[int, ...]:
        """A box's inputs; through steps of its own head that the section leaves out."""
        found: list[int] = []
        for source in self.inputs(row):
            skipped = source not in rows and None not in (self.rows[source].head, self.rows[row].head)
            found += self._reach(source, rows) if skipped and self.inputs(source) else [source]
        return tuple(dict.fromkeys(found))

    def _label(self, row: int, rows: list[int]) -> Maths:
        equation = self.rows[row]
        op = equation.step.op
        if self.given(row):
            return equation.name.maths
        parameters = [self.rows[s].name.maths for s in self.sources[row] if self.parameter(s)]
        if isinstance(op, MatMul) and parameters:
            return parameters[0]
        if isinstance(op, Add) and parameters:
            return Row((Sign("+"), parameters[0]))
        if isinstance(op, Divide) and all(i in rows for i in self.inputs(row)):
            return Row((Sign("÷"), divisor(op)))
        if isinstance(op, Softmax):
            return Letter("softmax")
        if isinstance(op, Split):
            return Words(part(equation))
        if isinstance(op, Join) and len(equation.operands) > FEW:
            return _shortened([operand.name.maths for operand in equation.operands])
        return self._composed(row, rows)

    def _composed(self, row: int, rows: list[int]) -> Maths:
        """A formula in names that the section shows: steps it leaves out are written into it."""
        equation = self.rows[row]
        operands = []
        for source, operand in zip(self.sources[row], equation.operands, strict=True):
            inner = self.rows[source]
            hidden = source not in rows and inner.head == equation.head and inner.head is not None
            written = hidden and not self.given(source) and not inner.name.transposed
            operands.append(self._composed(source, rows) if written else operand.name.maths)
        return formula(equation, tuple(operands))


def _shortened(parts: list[Maths]) -> Maths:
    """[head_1 | head_2], or of many the first and the last."""
    return side_by_side(tuple(parts) if len(parts) <= FEW else (parts[0], _DOTS, parts[-1]))
