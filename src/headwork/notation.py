"""What a step is called on a page: roles are structure, names are notation, and a sheet chooses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headwork.graph import Head, Step
from headwork.maths import TRANSPOSED, Above, Below, Letter, Maths, Number, Sign, between, row
from headwork.ops import Transpose

# Every role, with the name it goes by unless a sheet says otherwise.
ROLES: Mapping[str, str] = {
    "X": "X",
    "context": "C",
    "W_Q": "W_Q",
    "W_K": "W_K",
    "W_V": "W_V",
    "W_O": "W_O",
    "b_Q": "b_Q",
    "b_K": "b_K",
    "b_V": "b_V",
    "b_O": "b_O",
    "mask": "mask",
    "Q_before_bias": "Q′",
    "K_before_bias": "K′",
    "V_before_bias": "V′",
    "output_before_bias": "output′",
    "Q": "Q",
    "K": "K",
    "V": "V",
    "K_transposed": "Kᵀ",
    "scores": "scores",
    "scaled": "scaled",
    "masked": "masked",
    "maxima": "maxima",
    "shifted": "shifted",
    "exponentials": "exponentials",
    "sums": "sums",
    "weights": "weights",
    "head_output": "head",
    "joined": "joined",
    "output": "output",
}


@dataclass(frozen=True)
class Name:
    """A name with its parts kept apart, so that every format can set it in its own way."""

    base: str
    subscripts: tuple[str, ...] = ()
    transposed: bool = False
    place: tuple[int, ...] = ()  # a row, or a row and a column: scores_1[3,1]

    def __str__(self) -> str:
        below = "_" + ",".join(self.subscripts) if self.subscripts else ""
        place = f"[{','.join(map(str, self.place))}]" if self.place else ""
        return f"{self.base}{below}{'ᵀ' if self.transposed else ''}{place}"

    @property
    def maths(self) -> Maths:
        """The name as a formula has it."""
        named: Maths = Letter(self.base)
        if self.subscripts:
            named = Below(named, between((Number(s) if s.isdecimal() else Letter(s) for s in self.subscripts), ","))
        if self.transposed:
            named = Above(named, TRANSPOSED)
        if self.place:
            return row(named, Sign("["), between((Number(str(i)) for i in self.place), ","), Sign("]"))
        return named

    def with_subscripts(self, *more: object) -> Name:
        return replace(self, subscripts=(*self.subscripts, *map(str, more)))

    def flipped(self) -> Name:
        return replace(self, transposed=not self.transposed)

    @staticmethod
    def read(text: str) -> Name:
        """What a sheet or a caller has written: W_Q, Z_0, d_k, Kᵀ."""
        upright = text.removesuffix("ᵀ")
        base, _, below = upright.partition("_")
        return Name(base, tuple(below.split(",")) if below else (), upright != text)


@dataclass(frozen=True)
class Notation:
    """The names of one page. Keys are roles, "Q[i]" for a row and "scores[i,j]" for an entry."""

    names: Mapping[str, str] = field(default_factory=dict)
    first_index: int = 1

    def of(self, step: Step) -> Name:
        """The name of a whole step: Q_1, W_Q,1, Kᵀ."""
        if isinstance(step.op, Transpose):
            return self.of(step.inputs[0]).flipped()
        return self.of_role(step.role, step.head)

    def of_role(self, role: str, head: Head = None) -> Name:
        return self._with_head(Name.read(self.names.get(role, ROLES.get(role, role))), head)

    def row(self, step: Step, row: int) -> Name:
        """The name of one row: q_2 where the page has a name for rows, else Q[2]."""
        if (name := self.names.get(f"{step.role}[i]")) is not None:
            return self._with_head(Name.read(name), step.head).with_subscripts(row + self.first_index)
        return replace(self.of(step), place=(row + self.first_index,))

    def entry(self, step: Step, row: int, column: int) -> Name:
        """The name of one entry: z_3,1 where the page has a name for entries, else scores_1[3,1]."""
        place = (row + self.first_index, column + self.first_index)
        if (name := self.names.get(f"{step.role}[i,j]")) is not None:
            return self._with_head(Name.read(name), step.head).with_subscripts(*place)
        return replace(self.of(step), place=place)

    def _with_head(self, name: Name, head: Head) -> Name:
        if head is None:
            return name
        return name.with_subscripts(head if isinstance(head, str) else head + self.first_index)


PLAIN = Notation()
