"""A student's answers to one part, taken question by question."""

from collections.abc import Mapping
from typing import Any

from headwork.marking.table import Boxes, Malformed
from headwork.sheets.questions import Asked


class Answered:
    """What was handed in, by name; what is left over was not asked for."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = {str(name).replace(" ", ""): value for name, value in given.items()}
        self.used: set[str] = set()

    def take(self, question: Asked, by_entry: bool = False) -> Any:
        """The answer as it was handed in; None where there is none."""
        for name in (question.name, *sorted(question.also)):
            if name in self.given:
                self.used.add(name)
                return self.given[name]
        if question.group is not None and (found := self._one_of(*question.group)) is not None:
            return found
        return self._entry_by_entry(question) if by_entry else None

    def _one_of(self, role: str, number: int) -> Any:
        """One head's matrix out of a list of them."""
        heads = self.given.get(role)
        if heads is None:
            return None
        self.used.add(role)
        if not isinstance(heads, list) or number >= len(heads):
            raise Malformed(f"'{role}' asks for every head: give a list of matrices, or one answer for each head")
        return heads[number]

    def _entry_by_entry(self, question: Asked) -> Any:
        """A matrix or a row spread over answers such as Q_1[2,1]: a form has a box for each, a CSV a column."""
        present = {name for row in question.entries for name in row if name in self.given}
        self.used |= present
        return Boxes([self.given.get(name) for name in row] for row in question.entries) if present else None

    def left_over(self) -> list[str]:
        return [name for name in self.given if name not in self.used]
