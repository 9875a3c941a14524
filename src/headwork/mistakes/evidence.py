"""Predictions held against an answer: which of them it is, and whether that says more than chance would."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import comb, log2

import numpy as np

from headwork.mistakes import slips
from headwork.readings.values import Array
from headwork.sheets.ready import Found

# An answer names a mistake only if it says so many bits more than it takes to choose among all that are held against
# it: numbers written at random then fit one of them once in a thousand times at most.
BEYOND_CHANCE = 10.0
BEYOND_CHANCE_NEARBY = 4.0  # in an answer so close to the right one that chance is no rival

HIDDEN_AS = -1e9
SAME_PLACES = 6  # predictions that agree so far are one

Tags = tuple[str, ...]
EARLY_ROUNDING: Tags = ("early-rounding",)


def view(found: Found, matrix: Array) -> Array:
    """The part of a step's matrix that is asked for, always as rows and columns."""
    if found.row is None:
        return matrix
    row = matrix[found.row : found.row + 1]
    return row if found.column is None else row[:, found.column : found.column + 1]


def comparable(matrix: Array) -> Array:
    """Hidden entries as a number that can be taken away from itself."""
    return np.where(np.isneginf(matrix), HIDDEN_AS, matrix)


@dataclass
class Predictions:
    """Predictions for one question, those of a shape together, so that an answer is held against all at once."""

    tags: dict[tuple[int, ...], list[Tags]]
    matrices: dict[tuple[int, ...], Array]
    right: Array

    @classmethod
    def of(cls, predictions: Iterable[tuple[Tags, Array]], right: Array) -> Predictions:
        tags: dict[tuple[int, ...], list[Tags]] = defaultdict(list)
        matrices: dict[tuple[int, ...], list[Array]] = defaultdict(list)
        for names, matrix in predictions:
            tags[matrix.shape].append(names)
            matrices[matrix.shape].append(comparable(matrix))
        return cls(dict(tags), {shape: np.stack(group) for shape, group in matrices.items()}, comparable(right))

    @cached_property
    def enough(self) -> float:
        """The bits that tell one prediction from chance: the more of them differ, the more it takes."""
        shape = self.right.shape
        together = zip(self.tags.get(shape, ()), self.matrices.get(shape, ()), strict=True)
        stack = [matrix for names, matrix in together if names != EARLY_ROUNDING]
        different = np.unique(np.round([self.right.ravel(), *(m.ravel() for m in stack)], SAME_PLACES), axis=0)
        return BEYOND_CHANCE + log2(max(1, len(different) - 1))

    def fitting(self, answer: Array, within: Array, nearby: bool = False) -> list[Tags]:
        """The tags whose prediction is the answer, and says enough about it; less is enough `nearby`, where the
        answer is known not to be chance: a slip leads to it from the right one."""
        if answer.shape not in self.matrices:
            return []
        stack = self.matrices[answer.shape]
        fits = np.flatnonzero(np.all(np.abs(stack - answer) <= within, axis=(1, 2)))
        found = []
        for i in fits:
            tags = self.tags[answer.shape][i]
            enough = BEYOND_CHANCE_NEARBY if nearby or tags == EARLY_ROUNDING else self.enough
            if evidence(stack[i], self.right, within) >= enough:
                found.append(tags)
        return list(dict.fromkeys(found))

    def nearly(self, answer: Array, within: Array) -> list[Tags]:
        """A mistake and a slip: all but one or two entries of a prediction."""
        if answer.shape not in self.matrices or answer.size < 4:
            return []
        stack = self.matrices[answer.shape]
        off = np.abs(stack - answer) > within
        places = log2(comb(answer.size, 1) + comb(answer.size, 2))  # where the slip may be
        found: list[Tags] = []
        for i in np.flatnonzero((off.sum(axis=(1, 2)) <= 2) & ~np.isnan(stack).any(axis=(1, 2))):
            told = np.where(off[i], self.right, stack[i]) if answer.shape == self.right.shape else stack[i]
            if evidence(told, self.right, within) >= self.enough + places:
                found += [(*self.tags[answer.shape][i], slip) for slip in slips.slips(answer, stack[i], within)]
        return list(dict.fromkeys(found))


def evidence(prediction: Array, right: Array, within: Array) -> float:
    """How many bits the fit is worth: which entries are not as they should be, and what is there instead.

    An answer in whole numbers is read on the grid of whole numbers, however many places are asked.
    """
    if prediction.shape != right.shape:
        return float("inf")  # the shape itself tells
    apart = np.abs(prediction - right) > within
    number = int(apart.sum())
    if not number or not np.isfinite(prediction).all():
        return 0.0
    which = log2(comb(prediction.size, number))
    spread = max(float(np.ptp(right)), float(np.ptp(prediction)), float(np.max(np.abs(prediction - right))))
    if np.all(prediction == np.round(prediction)) and np.all(right == np.round(right)):
        return which + number * log2(spread + 1)  # from 2 to 5 there are four whole numbers
    return which + float(sum(log2(max(1.0, spread / room)) for room in (2 * within[apart]).ravel()))
