"""A diagram as rows of boxes, read off the graph: which there are, what they say, which head they belong to."""

from typing import TypeVar

from headwork.graph import Head, KeyBlock
from headwork.maths import Letter, Maths, Row, Sign, Words
from headwork.ops import Add, Constant, Divide, Given, Join, MatMul, Relu, Softmax, Split
from headwork.readings.shapes import shape_maths, size_text
from headwork.render.colours import family
from headwork.render.drawing import Of
from headwork.render.formula import divisor, formula, part, side_by_side
from headwork.render.stacking import Card, Frame, Standing, makes, reads
from headwork.sheets.backward import KNOWN, LEARNED
from headwork.working import Diagram

PARAMETERS = (*LEARNED, *KNOWN, "rate", "eps")
NORM = ("mean", "from_mean", "squares", "variance", "with_eps", "deviation", "standard", "stretched")
ENTRANCE = ("Q", "K", "V", "Q_before_bias", "K_before_bias", "V_before_bias")
EARLY = ("X", "context", *ENTRANCE)  # inputs that stand at the top, whoever reads them
FEW = 3  # joined heads that are named one by one
SIDE_BY_SIDE, ONE_BY_ONE = 4, 3  # heads that are drawn each on its own, in the wide form and in the tall one
_DOTS = Sign("…")
CUT = 1_000_000  # a wide matrix in its blocks has a number of its own, from here on
T = TypeVar("T")


class Arrangement:
    """A diagram's rows with parameters folded into the boxes that use them, and transposes into the arrows."""

    def __init__(self, diagram: Diagram, *, wide: bool) -> None:
        self.rows = diagram.rows
        self.sources = diagram.sources
        self.wide = wide
        self.roles = {row.role for row in self.rows}
        self.inputs = [self._inputs(row) for row in range(len(self.rows))]
        self.boxes = [row for row in range(len(self.rows)) if not self._inside_another(row)]
        own = [self.rows[row].head for row in self.boxes if not self._keys_or_values(row)]
        keys = {self.rows[row].head for row in self.boxes if self._keys_or_values(row)} - {None}
        numbered = sorted({head for head in own or keys if isinstance(head, int)})
        self.heads: list[Head] = [*numbered, *dict.fromkeys(head for head in own if isinstance(head, str))]
        shared = any(self._read_by_others(row) for row in self.boxes if self._keys_or_values(row))
        self.sharing = len(self.heads) // len(keys) if shared else 1
        self.folded: set[Head] = set()  # heads of which the projections and one box for the rest are drawn
        self.shown: list[int] = []
        self.reach: dict[int, tuple[int, ...]] = {}  # of each box shown: its inputs among them
        self.readers: dict[int, list[int]] = {}

    # What there is.

    def given(self, row: int) -> bool:
        """Handed over, or with inputs that the picture does not hold."""
        equation = self.rows[row]
        return equation.given or len(self.sources[row]) < len(equation.operands)

    def parameter(self, row: int) -> bool:
        return self.given(row) and self.rows[row].role in PARAMETERS

    def _inputs(self, row: int) -> tuple[int, ...]:
        """What a box rests on, parameters and transposes aside."""
        if self.given(row):
            return ()
        found: list[int] = []
        for source in self.sources[row]:
            while self.rows[source].name.transposed and not self.given(source):
                (source,) = self.sources[source]
            if self._within_norm(source):
                found += self._inputs(source)
            elif not self.parameter(source):
                found.append(source)
        return tuple(dict.fromkeys(found))

    def _inside_another(self, row: int) -> bool:
        """A parameter, which its box names, a transpose, which happens on the way, or a step within a layer norm."""
        return self.parameter(row) or self._within_norm(row) or (self.rows[row].name.transposed and not self.given(row))

    def _within_norm(self, row: int) -> bool:
        """Whether it is a step of a layer norm, which is one box."""
        role, _, number = self.rows[row].role.rpartition("_")
        return role in NORM and not self.given(row) and f"normed_{number}" in self.roles

    def _keys_or_values(self, row: int) -> bool:
        """What several heads may share: the number of its head is then that of the keys."""
        role, head = self.rows[row].role, self.rows[row].head
        made_of = role.partition("_from_")[2] or role  # the part of dX that comes from K belongs to K
        return family(made_of) in ("k", "v") and isinstance(head, int) and not isinstance(head, KeyBlock)

    def _read_by_others(self, row: int) -> bool:
        heads = {self.rows[other].head for other in self.boxes if row in self.inputs[other]}
        return bool(heads - {self.rows[row].head, None})

    def _reach(self, row: int, shown: set[int]) -> tuple[int, ...]:
        """A box's inputs, through steps that the picture leaves out."""
        found: list[int] = []
        for source in self.inputs[row]:
            if source in shown:
                found.append(source)
            elif self.rows[source].head in self.folded:
                found += self._reach(source, shown)
        return tuple(dict.fromkeys(found))

    # As rows of blocks.

    def blocks(self) -> list[tuple[Standing, ...]]:
        """Before the heads, the heads, after them, and so on: boxes in layers, and a card for every head."""
        groups = self._few([self.heads[i : i + self.sharing] for i in range(0, len(self.heads), self.sharing)])
        kept = {head for group, _ in groups for head, _ in self._few(group)}
        self.folded = (
            set() if self.wide else {head for head in kept if head != self.heads[0] and self._has_one_end(head)}
        )
        numbers = set(range(len(groups)))
        self.shown = [row for row in self.boxes if self._is_shown(row, kept, numbers)]
        self.reach = {row: self._reach(row, set(self.shown)) for row in self.shown}
        self.readers = {row: [] for row in self.shown}
        for row, read in self.reach.items():
            for source in read:
                self.readers[source].append(row)
        stage = self._stages()
        rows: list[tuple[Standing, ...]] = []
        for number in range(max(stage.values(), default=0) + 1):
            here = [row for row in self.shown if stage[row] == number]
            if number % 2 == 0:
                rows += self._layers(here)
            else:
                cards = [card for i, (group, many) in enumerate(groups) for card in self._group(i, group, many, here)]
                rows += _levels(cards, self.wide)
        return rows

    def _few(self, items: list[T]) -> list[tuple[T, bool]]:
        """All of them, or of many the first, and the second for all the others."""
        limit = 2 if self.sharing > 1 else SIDE_BY_SIDE if self.wide else ONE_BY_ONE
        if len(items) <= limit:
            return [(item, isinstance(item, str) or item == ["i"]) for item in items]
        return [(items[0], False), (items[1], True)]

    def _is_shown(self, row: int, kept: set[Head], groups: set[int]) -> bool:
        head = self.rows[row].head
        if head is None:
            return True
        if self.sharing > 1 and self._keys_or_values(row):
            return head in groups
        if head in self.folded:
            last = max(r for r in self.boxes if self.rows[r].head == head and not self._shared(r))
            return self.rows[row].role in ENTRANCE or row == last
        return head in kept

    def _has_one_end(self, head: Head) -> bool:
        """Whether all that a head does leads to one matrix; on the way back it leads to many."""
        own = [row for row in self.boxes if self.rows[row].head == head and not self._shared(row)]
        read = {source for row in own for source in self.inputs[row]}
        return len(set(own) - read) == 1 and not isinstance(head, KeyBlock)

    def _shared(self, row: int) -> bool:
        return self.sharing > 1 and self._keys_or_values(row)

    def _stages(self) -> dict[int, int]:
        """Even before, between and after the heads, odd inside them; what is given, where it is first read."""
        stage: dict[int, int] = {}
        for row in self.shown:
            odd = self.rows[row].head is not None
            highest = max((stage[i] for i in self.reach[row]), default=int(odd))
            stage[row] = highest + (highest % 2 != odd)
        for row in self.shown:
            readers = [stage[other] for other in self.readers[row]]
            if self.given(row) and readers and not self._early(row):
                stage[row] = max(0, min(readers) - (min(readers) % 2 != stage[row] % 2))
        return stage

    def _early(self, row: int) -> bool:
        """Inputs stand at the top; what another picture works out stands where it is needed."""
        return self.rows[row].role in EARLY and isinstance(self.rows[row].step.op, Given)

    def _group(self, number: int, group: list[Head], many: bool, here: list[int]) -> list[Card]:
        """A card for every head of it, in a card of their own where they share keys and values."""
        cards = []
        for head, rest in self._few(group):
            own = [row for row in here if self.rows[row].head == head and not self._shared(row)]
            if own:
                stands_for = (rest or many) if self.sharing == 1 else rest
                last = group[-1] if self.sharing > 1 else self.heads[-1]
                cards.append(Card(Words(self._title(head, last, stands_for)), tuple(self._layers(own)), stands_for))
        if self.sharing == 1:
            return cards
        shared = [row for row in here if self._shared(row) and self.rows[row].head == number]
        made = set().union(*map(makes, cards))
        after: list[int] = []
        for row in shared:
            if (made | set(after)) & set(self.reach[row]):
                after.append(row)
        rows_of_cards = [tuple(cards)] if self.wide else [(card,) for card in cards]
        rows = (*self._layers([r for r in shared if r not in after]), *rows_of_cards, *self._layers(after))
        return [Card(self._sharing_title(number, group, many), rows, many)] if shared or cards else []

    def _layers(self, rows: list[int]) -> list[tuple[Frame, ...]]:
        """Each box below what it reads; what is given just above its first reader, inputs at the top."""
        layer: dict[int, int] = {}
        for row in rows:
            layer[row] = 1 + max((layer[i] for i in self.reach[row] if i in layer), default=-1)
        late = [row for row in rows if self.given(row) and not self._early(row)]
        for row in late:
            layer[row] = min((layer[other] - 1 for other in self.readers[row] if other in layer), default=0)
        cut = {row: self._cut(row) for row in rows}
        layers: list[list[Frame]] = []
        for number in range(min(layer.values(), default=0), max(layer.values(), default=-1) + 1):
            there = [row for row in rows if layer[row] == number]
            layers.append([self._box(row) for row in there])
            if blocks := [Frame(CUT + row, (row,), maths, of=self._of(row), colour=self._colour(row))
                          for row in there if (maths := cut[row]) is not None]:  # fmt: skip
                layers.append(blocks)
        return [tuple(boxes) for boxes in layers if boxes]

    def _box(self, row: int) -> Frame:
        equation = self.rows[row]
        read = tuple(CUT + i if isinstance(equation.step.op, Split) and self._cut(i) else i for i in self.reach[row])
        shape = shape_maths(equation.shape)
        colour, of = self._colour(row), self._of(row)
        if self.given(row):
            label: Maths = Row((equation.name.maths, Words("  "), shape))
            look = "source" if isinstance(equation.step.op, Given | Constant) else "elsewhere"
            return Frame(row, (), label, look=look, colour=colour, of=of)
        loose = not self.readers[row]
        spans = isinstance(equation.step.op, Join)
        name = (equation.name.maths, shape)
        return Frame(row, read, self._label(row), name, colour=colour, of=of, loose=loose, spans=spans)

    def _colour(self, row: int) -> str:
        return family(self.rows[row].role)

    def _of(self, row: int) -> Of:
        return Of(self.rows[row].role, self.rows[row].head)

    @property
    def wiring(self) -> dict[int, str]:
        colours = {row: self._colour(row) for row in range(len(self.rows))}
        return colours | {CUT + row: colour for row, colour in colours.items()}

    # Words.

    def _name(self, head: Head) -> str:
        return next(e.name.subscripts[-1] for e in self.rows if e.head == head and e.name.subscripts)

    def _title(self, head: Head, last: Head, many: bool) -> str:
        name = self._name(head)
        if isinstance(head, str):
            joins = [e.step.op.of for e in self.rows if isinstance(e.step.op, Join) and e.step.op.of is not None]
            return f"head {name}, one of {size_text(joins[0])}" if joins else f"head {name}"
        if not many:
            return f"block {name}" if isinstance(head, KeyBlock) else f"head {name}"
        return f"head {name}" if head == last else f"heads {name} to {self._name(last)}, each like this"

    def _sharing_title(self, number: int, group: list[Head], many: bool) -> Maths:
        names = [self._name(head) for head in group]
        heads = f"heads {names[0]} and {names[1]}" if len(names) == 2 else f"heads {names[0]} to {names[-1]}"
        matrices = [e.name.maths for e in self.rows if e.role in ("K", "V") and e.head == number]
        shared = (matrices[0], Words(" and "), matrices[-1]) if matrices else (Words("keys and values"),)
        more = len(self.heads) // self.sharing - number - 1
        return Row((Words(f"{heads} share "), *shared, Words(f"; {more} more such groups" if many else "")))

    def _cut(self, row: int) -> Maths | None:
        """A wide matrix that is split, as its blocks: [Q_1 | Q_2]; nothing for one that is not."""
        parts = [
            self.rows[other].name.maths
            for other in self.boxes
            if isinstance(self.rows[other].step.op, Split) and row in self.inputs[other]
        ]
        if not parts:
            return None
        return side_by_side((_DOTS, parts[0], _DOTS)) if isinstance(self.heads[0], str) else _shortened(parts)

    def _label(self, row: int) -> Maths:
        equation = self.rows[row]
        op = equation.step.op
        parameters = [self.rows[s].name.maths for s in self.sources[row] if self.parameter(s)]
        if equation.role.startswith("normed_"):
            return Words("layer norm")
        if isinstance(op, Relu):
            return Letter("ReLU")
        if isinstance(op, MatMul) and parameters:
            return parameters[0]
        if isinstance(op, Add) and parameters:
            return Row((Sign("+"), parameters[0]))
        if isinstance(op, Divide) and all(i in self.shown for i in self.inputs[row]):
            return Row((Sign("÷"), divisor(op)))
        if isinstance(op, Softmax):
            return Letter("softmax")
        if isinstance(op, Split):
            return Words(part(equation))
        if isinstance(op, Join) and len(equation.operands) > FEW:
            return _shortened([operand.name.maths for operand in equation.operands])
        return self._composed(row)

    def _composed(self, row: int) -> Maths:
        """A formula in names that the picture shows: steps it leaves out are written into it."""
        equation = self.rows[row]
        operands = []
        for source, operand in zip(self.sources[row], equation.operands, strict=True):
            inner = self.rows[source]
            hidden = source not in self.shown and inner.head == equation.head and inner.head in self.folded
            written = hidden and not self.given(source) and not inner.name.transposed
            operands.append(self._composed(source) if written else operand.name.maths)
        return formula(equation, tuple(operands))


def _shortened(parts: list[Maths]) -> Maths:
    """[head_1 | head_2], or of many the first and the last."""
    return side_by_side(tuple(parts) if len(parts) <= FEW else (parts[0], _DOTS, parts[-1]))


def _levels(cards: list[Card], wide: bool) -> list[tuple[Standing, ...]]:
    """Cards side by side or under one another; under one another in any case where one rests on another."""
    if not wide:
        return [(card,) for card in cards]
    levels: list[list[Card]] = []
    for card in cards:
        resting = [i for i, level in enumerate(levels) if any(makes(other) & reads(card) for other in level)]
        place = max(resting, default=-1) + 1
        levels += [[]] if place == len(levels) else []
        levels[place].append(card)
    return [tuple(level) for level in levels]
