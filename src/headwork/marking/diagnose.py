"""Which mistakes predict these numbers? Singly first, then in pairs; only what could be told from the right answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np

from headwork.graph import Step
from headwork.marking import slips
from headwork.marking.mistakes import CATALOGUE
from headwork.marking.predict import Graph
from headwork.readings.values import Array
from headwork.sheets.ready import Found

# An answer names a mistake only if it says enough: so many bits more than chance would give.
ENOUGH_BITS = 11.0
ENOUGH_BITS_FOR_TWO = 17.0
ENOUGH_BITS_FOR_ROUNDING = 4.0  # so close to the right answer that chance is no rival

Tags = tuple[str, ...]


def advice(tags: Tags) -> str:
    """One line for a diagnosis."""
    return " ".join(slips.ADVICE.get(tag) or CATALOGUE[tag].advice for tag in tags)


def view(found: Found, matrix: Array) -> Array:
    """The part of a step's matrix that is asked for, always as rows and columns."""
    if found.row is None:
        return matrix
    row = matrix[found.row : found.row + 1]
    return row if found.column is None else row[:, found.column : found.column + 1]


@dataclass
class Table:
    """Predictions for one question, those of a shape together, so that an answer is held against all at once."""

    tags: dict[tuple[int, ...], list[Tags]]
    matrices: dict[tuple[int, ...], Array]

    @classmethod
    def of(cls, predictions: Iterable[tuple[Tags, Array]]) -> Table:
        tags: dict[tuple[int, ...], list[Tags]] = defaultdict(list)
        matrices: dict[tuple[int, ...], list[Array]] = defaultdict(list)
        for names, matrix in predictions:
            tags[matrix.shape].append(names)
            matrices[matrix.shape].append(matrix)
        return cls(dict(tags), {shape: np.stack(group) for shape, group in matrices.items()})

    def fitting(self, answer: Array, within: Array, right: Array, enough: float) -> list[Tags]:
        """The tags whose prediction is the answer, and says enough about it."""
        if answer.shape not in self.matrices:
            return []
        stack = self.matrices[answer.shape]
        fits = np.flatnonzero(np.all(np.abs(stack - answer) <= within, axis=(1, 2)))
        found = []
        for i in fits:
            tags = self.tags[answer.shape][i]
            least = ENOUGH_BITS_FOR_ROUNDING if tags == ("early-rounding",) else enough
            if evidence(stack[i], right, within) >= least:
                found.append(tags)
        return list(dict.fromkeys(found))

    def nearly(self, answer: Array, within: Array, right: Array, enough: float) -> list[Tags]:
        """A mistake and a slip: all but one or two entries of a prediction."""
        if answer.shape not in self.matrices or answer.size < 4:
            return []
        stack = self.matrices[answer.shape]
        off = np.abs(stack - answer) > within
        found: list[Tags] = []
        for i in np.flatnonzero((off.sum(axis=(1, 2)) <= 2) & ~np.isnan(stack).any(axis=(1, 2))):
            if (
                evidence(np.where(off[i], right, stack[i]) if right.shape == answer.shape else stack[i], right, within)
                < enough
            ):
                continue
            found += [(*self.tags[answer.shape][i], slip) for slip in slips.slips(answer, stack[i], within)]
        return list(dict.fromkeys(found))


def evidence(prediction: Array, right: Array, within: Array) -> float:
    """How many bits the fit is worth: entries that are not as they should be, times the finesse of each.

    An answer in whole numbers is read on the grid of whole numbers, however many places are asked.
    """
    if prediction.shape != right.shape:
        return float("inf")  # the shape itself tells
    apart = np.abs(prediction - right) > within
    finite = prediction[np.isfinite(prediction)]
    if not apart.any() or finite.size < prediction.size:
        return 0.0
    whole = bool(np.all(prediction == np.round(prediction)) and np.all(right == np.round(right)))
    spread = max(float(np.ptp(right)), float(np.ptp(prediction)), float(np.max(np.abs(prediction - right))))
    grid = np.maximum(2 * within[apart], 1.0 if whole else 0.0)
    return float(sum(log2(max(1.0, spread / g)) for g in grid.ravel()))


class Diagnosis:
    """The catalogue held against one problem: rewritten graphs, and what each predicts, worked out once."""

    def __init__(self, last: Step) -> None:
        self.right = Graph(last)
        self.single = [(tag, Graph(g, last)) for tag, m in CATALOGUE.items() for g in m.made_in(last)]
        self._pairs: list[tuple[Tags, Graph]] | None = None
        self._tables: dict[tuple[Any, Found, int], Table] = {}
        self._worked: dict[tuple[Any, int], list[tuple[Tags, dict[tuple[str, Any], Array]]]] = {}

    def pairs(self) -> list[tuple[Tags, Graph]]:
        """Two mistakes at once; of those that can be made in one head, only the way that makes them in all."""
        if self._pairs is None:
            self._pairs = []
            tags = list(CATALOGUE)
            for one in tags:
                for graph in CATALOGUE[one].made_everywhere(self.right.last):
                    for other in tags[tags.index(one) + 1 :]:
                        both = CATALOGUE[other].made_everywhere(graph)
                        self._pairs += [((one, other), Graph(g)) for g in both]
        return self._pairs

    def table(self, key: Any, found: Found, handed: Mapping[Step, Array], number: int) -> Table:
        """Predictions of so many mistakes at once. `key` names what is handed over, so that tables can be kept."""
        if (key, found, number) not in self._tables:
            step = (found.step.role, found.step.head)
            predictions = ((tags, worked[step]) for tags, worked in self._all(key, handed, number) if step in worked)
            self._tables[key, found, number] = Table.of((tags, view(found, matrix)) for tags, matrix in predictions)
        return self._tables[key, found, number]

    def _all(
        self, key: Any, handed: Mapping[Step, Array], number: int
    ) -> list[tuple[Tags, dict[tuple[str, Any], Array]]]:
        if (key, number) not in self._worked:
            graphs = [((tag,), graph) for tag, graph in self.single] if number == 1 else self.pairs()
            worked = [(tags, graph.everything(handed)) for tags, graph in graphs]
            if number == 1:
                worked += [
                    (("early-rounding",), self.right.everything(handed, rounding))
                    for rounding in slips.early_roundings()
                ]
            self._worked[key, number] = worked
        return self._worked[key, number]

    def diagnose(
        self,
        key: Any,
        found: Found,
        answer: Array,
        within: Array,
        right: Array,
        handed: Mapping[Step, Array],
        own: Mapping[Step, Array] | None = None,
    ) -> list[Tags]:
        """Every mistake, or pair of mistakes, that the answer is consistent with; `own` are a student's earlier
        answers, where they lead elsewhere than the truth does."""
        table = self.table(key, found, handed, 1)
        named = table.fitting(answer, within, right, ENOUGH_BITS)
        if own is not None and not named:
            named += self._from_own(found, answer, within, handed, own)
        named += [(slip,) for slip in slips.slips(answer, right, within)]
        if named:
            return _without_vaguer(named)
        if answer.size < 2:
            return []
        named = self.table(key, found, handed, 2).fitting(answer, within, right, ENOUGH_BITS_FOR_TWO)
        named += table.nearly(answer, within, right, ENOUGH_BITS_FOR_TWO)
        return list(dict.fromkeys(named))

    def _from_own(
        self, found: Found, answer: Array, within: Array, handed: Mapping[Step, Array], own: Mapping[Step, Array]
    ) -> list[Tags]:
        """A mistake made only now, on top of earlier answers that may hold others."""
        base = {**handed, **own}
        follows = self.right.predict(found.step, base)
        if follows is None:
            return []
        right = view(found, follows)
        predicted = (
            ((tag,), view(found, matrix))
            for tag, graph in self.single
            if graph.touches(found.step, base) and (matrix := graph.predict(found.step, base)) is not None
        )
        named = Table.of(predicted).fitting(answer, within, right, ENOUGH_BITS)
        return named + [(slip,) for slip in slips.slips(answer, right, within)]


def _without_vaguer(named: list[Tags]) -> list[Tags]:
    """A named mistake says more than "one entry"."""
    kept = list(dict.fromkeys(named))
    return [tags for tags in kept if tags != ("one-entry",)] or kept
