"""Follow-through: what a student's own earlier answers lead to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from headwork.graph import Step, read
from headwork.marking.table import Numbers
from headwork.marking.truth import Truth
from headwork.readings.exact import EXACT, Matrix
from headwork.readings.floats import Floats
from headwork.sheets.ready import Found


@dataclass
class Earlier:
    """What a student has answered so far in a problem: the numbers, and which of them were wrong."""

    exact: dict[Step, list[list[Any]]] = field(default_factory=dict)
    near: dict[Step, list[list[float]]] = field(default_factory=dict)
    wrong: dict[Step, int] = field(default_factory=dict)
    trivial: set[Step] = field(default_factory=set)

    def remember(self, truth: Truth, found: Found, answer: Numbers, wrong: bool) -> None:
        """The answer, laid over the truth, is what later answers may follow from."""
        step = found.step
        matrix = self.exact.setdefault(step, [list(row) for row in truth.exact[step]])
        near = self.near.setdefault(step, [list(row) for row in truth.near[step]])
        for i, row in enumerate(answer, found.row or 0):
            for j, number in enumerate(row, found.column or 0):
                matrix[i][j], near[i][j] = number.value, number.near
        if wrong:
            self.wrong[step] = self.wrong.get(step, 0) + 1
        if _trivial(matrix) and not _trivial(truth.exact[step]):
            self.trivial.add(step)

    def behind(self, truth: Truth, step: Step) -> Own | None:
        """The earlier answers that a step rests on; None where there are none, or none worth following."""
        sources = truth.sources(step, frozenset(self.exact))
        if not sources or self.trivial.intersection(sources):
            return None
        exact = {source: tuple(map(tuple, self.exact[source])) for source in sources}
        carried = sum(self.wrong.get(source, 0) for source in sources)
        return Own(truth, step, exact, {source: self.near[source] for source in sources}, carried)


@dataclass
class Own:
    """The earlier answers that one step rests on, and how many of them were marked wrong."""

    truth: Truth
    step: Step
    exact: Mapping[Step, Matrix]
    near: Mapping[Step, Floats]
    carried: int

    @cached_property
    def meaning(self) -> dict[Step, Matrix]:
        """What they lead to, in closed form."""
        return read(self.step, EXACT, {**self.truth.handed_exact, **self.exact})


def _trivial(matrix: Any) -> bool:
    """All entries equal: nothing is left to follow through."""
    flat = [x for row in matrix for x in row]
    return len(flat) > 1 and all(type(x) is type(flat[0]) and x == flat[0] for x in flat)
