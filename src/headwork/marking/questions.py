"""What a part asks for, question by question, and the names under which an answer is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwork.marking.table import Malformed
from headwork.sheets.ready import Found, Ready
from headwork.sheets.sheet import Part


@dataclass(frozen=True)
class Question:
    """A step, a row or an entry that is asked for."""

    name: str
    found: Found
    also: frozenset[str]  # other names: what the page prints
    group: tuple[str, int] | None = None  # "Q" asks for all heads at once: the role, and which of them this is


def questions(part: Part, ready: Ready) -> tuple[Question, ...]:
    """The questions of a part, in order."""
    asked: list[Question] = []
    for name in part.find:
        several = ready.find(name)
        for number, found in enumerate(several):
            own = name.replace(" ", "") if len(several) == 1 else _full_name(found, ready)
            group = (name.replace(" ", ""), number) if len(several) > 1 else None
            asked.append(Question(own, found, _printed(found, ready) - {own}, group))
    if not part.find:
        steps = ready.computed()
        asked = [Question(_full_name(Found(s), ready), Found(s), _printed(Found(s), ready)) for s in steps]
    return tuple(asked)


def _full_name(found: Found, ready: Ready) -> str:
    """Q_1, scores_2[3,1]: role, head, place."""
    first = ready.problem.notation.first_index
    head = found.step.head
    below = "" if head is None else f"_{head + first if isinstance(head, int) else head}"
    place = [str(i + first) for i in (found.row, found.column) if i is not None]
    return f"{found.step.role}{below}" + (f"[{','.join(place)}]" if place else "")


def _printed(found: Found, ready: Ready) -> frozenset[str]:
    notation = ready.problem.notation
    full = _full_name(found, ready)
    if found.row is None:
        return frozenset({str(notation.of(found.step)), full})
    if found.column is None:
        return frozenset({str(notation.row(found.step, found.row)), full})
    return frozenset({str(notation.entry(found.step, found.row, found.column)), full})


class Answered:
    """A student's answers to one part, taken name by name; what is left over was not asked for."""

    def __init__(self, given: Mapping[str, Any], first_index: int) -> None:
        self.given = {str(name).replace(" ", ""): value for name, value in given.items()}
        self.first = first_index
        self.used: set[str] = set()

    def take(self, question: Question, shape: tuple[int, ...] | None) -> Any:
        """The answer as it was handed in; None where there is none."""
        for name in (question.name, *sorted(question.also)):
            if name in self.given:
                self.used.add(name)
                return self.given[name]
        if question.group is not None and (found := self._one_of(*question.group)) is not None:
            return found
        return self._entry_by_entry(question, shape) if shape is not None else None

    def _one_of(self, role: str, number: int) -> Any:
        """One head's matrix out of a list of them."""
        heads = self.given.get(role)
        if heads is None:
            return None
        self.used.add(role)
        if not isinstance(heads, list) or number >= len(heads):
            raise Malformed(f"'{role}' asks for every head: give a list of matrices, or one answer for each head")
        return heads[number]

    def _entry_by_entry(self, question: Question, shape: tuple[int, ...]) -> Any:
        """A whole matrix spread over answers such as Q_1[2,1]: a CSV has one column for each."""
        if question.found.row is not None:
            return None
        places = [
            [f"{question.name}[{i + self.first},{j + self.first}]" for j in range(shape[1])] for i in range(shape[0])
        ]
        present = {name for row in places for name in row if name in self.given}
        self.used |= present
        return [[self.given.get(name) for name in row] for row in places] if present else None

    def left_over(self) -> list[str]:
        return [name for name in self.given if name not in self.used]
