"""What a step is called on a page: roles are structure, names are notation, and a sheet chooses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwork.graph import Head, Step
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

    def __str__(self) -> str:
        below = "_" + ",".join(self.subscripts) if self.subscripts else ""
        return f"{self.base}{below}{'ᵀ' if self.transposed else ''}"

    def with_subscripts(self, *more: object) -> Name:
        return Name(self.base, (*self.subscripts, *map(str, more)), self.transposed)

    def flipped(self) -> Name:
        return Name(self.base, self.subscripts, not self.transposed)


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
        return self._with_head(_name(self.names.get(role, ROLES.get(role, role))), head)

    def row(self, step: Step, row: int) -> Name:
        """The name of one row: q_2 where the page has a name for rows, else Q[2]."""
        if (name := self.names.get(f"{step.role}[i]")) is not None:
            return self._with_head(_name(name), step.head).with_subscripts(row + self.first_index)
        return Name(f"{self.of(step)}[{row + self.first_index}]")

    def entry(self, step: Step, row: int, column: int) -> Name:
        """The name of one entry: z_3,1 where the page has a name for entries, else scores_1[3,1]."""
        place = (row + self.first_index, column + self.first_index)
        if (name := self.names.get(f"{step.role}[i,j]")) is not None:
            return self._with_head(_name(name), step.head).with_subscripts(*place)
        return Name(f"{self.of(step)}[{place[0]},{place[1]}]")

    def _with_head(self, name: Name, head: Head) -> Name:
        if head is None:
            return name
        return name.with_subscripts(head if isinstance(head, str) else head + self.first_index)


def _name(text: str) -> Name:
    base, _, below = text.partition("_")
    return Name(base, tuple(below.split(",")) if below else ())


PLAIN = Notation()
