"""A student's answers to one part, taken question by question."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any
from unicodedata import normalize

from headwork.marking.table import Boxes, Malformed
from headwork.sheets.questions import Asked

ALIKE = 0.6  # from here on two names are near enough to ask


class Answered:
    """What was handed in, by name; what is left over was not asked for.

    A name counts as it is printed or as a program takes it; and however else its letters and numbers are put together
    (Q1, q_1, Weights_2), where only one question can be meant.
    """

    def __init__(self, given: Mapping[str, Any], asked: Iterable[Asked]) -> None:
        self.used: set[str] = set()
        self._asked = list(asked)
        self._names = {name for q in self._asked for name in (q.name, *q.also, *(q.group or ())[:1])}
        self._spelled = _spelled(self._asked)
        self.given = {self._meant(str(name).replace(" ", "")): value for name, value in given.items()}

    def _meant(self, name: str) -> str:
        """The question's own name for what was written."""
        matrix, bracket, place = name.partition("[")
        if name in self._names or matrix in self._names:
            return name
        for written, rest in ((name, ""), (matrix, bracket + place)):
            if (meant := self._spelled.get(_letters_and_numbers(written))) is not None:
                return meant + rest
        return name

    def known(self, name: str) -> bool:
        """Whether a question is meant by what was written."""
        return self._meant(name).partition("[")[0] in {each.partition("[")[0] for each in self._names}

    def take(self, question: Asked, by_entry: bool = False) -> Any:
        """The answer as it was handed in; None where there is none."""
        for name in (question.name, *sorted(question.also)):
            if name in self.given:
                self.used.add(name)
                return self.given[name]
        if question.group is not None and (found := self._one_of(*question.group)) is not None:
            return found
        found = self._entry_by_entry(question) if by_entry else None
        if found is None and (near := self._near_miss(question)):
            raise Malformed(f"is not there, but '{near[:40]}' is: write {question.name} if that is meant")
        return found

    def _near_miss(self, question: Asked) -> str | None:
        """What was written in place of a question's name, if it is nearer to that one than to any other asked for."""
        for name in self.given:
            if name not in self._names and name.partition("[")[0] not in self._names:
                every = {_plain(q.name): q.name for q in self._asked}
                nearest = get_close_matches(_plain(name), every, 1, ALIKE)
                if nearest and every[nearest[0]] == question.name:
                    self.used.add(name)
                    return name
        return None

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


def _spelled(asked: Iterable[Asked]) -> dict[tuple[str, ...], str]:
    """Every question by the letters and numbers of its names; those that two questions share are nobody's."""
    meant: dict[tuple[str, ...], set[str]] = {}
    for question in asked:
        for name in (question.name, *question.also):
            meant.setdefault(_letters_and_numbers(name), set()).add(question.name)
        if question.group is not None:
            meant.setdefault(_letters_and_numbers(question.group[0]), set()).add(question.group[0])
    return {spelling: names.pop() for spelling, names in meant.items() if len(names) == 1}


def _letters_and_numbers(name: str) -> tuple[str, ...]:
    """("headoutput", "1") for head_output_1, headOutput₁ and Head-Output_{1}."""
    name = normalize("NFKC", name)
    return "".join(re.findall(r"[^\W\d_]", name.casefold())), *re.findall(r"\d+", name)


def _plain(name: str) -> str:
    return re.sub(r"\W|_", "", name.casefold())
