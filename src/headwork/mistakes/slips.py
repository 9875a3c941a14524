"""Slips of the pen: an answer that is nearly a matrix we know.

A slip is told from the answer alone, held against the right matrix (or against one that follows, or one that a
mistake predicts): which entries differ, and how. Rounding too early is the one slip that is worked forward instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from headwork.graph import Step
from headwork.mistakes.predict import Round
from headwork.readings.values import Array

ADVICE = {
    "sign": "A sign looks flipped: check the minus signs.",
    "one-entry": "Only one entry differs: work that one again.",
    "swapped-entries": "Two entries look exchanged: check their places.",
    "transposed": "Rows and columns look exchanged.",
    "early-rounding": "This looks rounded on the way: keep two more decimals until the end.",
}
FEWEST_ENTRIES = 3  # in a smaller answer "all right but one" says nothing


def slips(answer: Array, matrix: Array, within: Array) -> Iterator[str]:
    """The slips that lead from the matrix to the answer, the widest last; `within` is how far apart two entries count
    as the same.

    >>> a = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> list(slips(a, a * [[1, 1], [-1, 1]], a * 0 + 0.01)), list(slips(a, a.T, a * 0 + 0.01))
    (['sign'], ['swapped-entries', 'transposed'])
    """
    if answer.shape == matrix.shape:
        wrong = _differ(answer, matrix, within)
        yield from _in_place(answer, matrix, within, wrong)
    if answer.shape == matrix.T.shape and min(matrix.shape) > 1 and not _differ(answer, matrix.T, within).any():
        yield "transposed"


def _in_place(answer: Array, matrix: Array, within: Array, wrong: NDArray[np.bool_]) -> Iterator[str]:
    number = int(wrong.sum())
    if not number:
        return
    theirs, ours, room = answer[wrong], matrix[wrong], within[wrong]
    flipped = bool(np.all(np.abs(theirs + ours) <= room))
    if flipped:
        yield "sign"
    if number == 1 and not flipped and answer.size >= FEWEST_ENTRIES:
        yield "one-entry"
    if number == 2 and bool(np.all(np.abs(theirs - ours[::-1]) <= room)):
        yield "swapped-entries"


def _differ(answer: Array, matrix: Array, within: Array) -> NDArray[np.bool_]:
    return ~(np.abs(answer - matrix) <= within)  # so that NaN differs from everything


def early_roundings() -> Iterator[Round]:
    """Ways of rounding too early: every step to so many places, or the weights alone."""
    for places in (0, 1, 2, 3):
        yield partial(_every_step, places)
        yield partial(_weights_alone, places)


def _every_step(places: int, step: Step, value: Array) -> Array:
    return half_up(value, places)


def _weights_alone(places: int, step: Step, value: Array) -> Array:
    return half_up(value, places) if step.role == "weights" else value


def half_up(value: Array, places: int) -> Array:
    """Rounded as at school: halves away from zero. float64 noise just below a half counts as the half."""
    scaled = np.abs(value) * 10.0**places
    rounded: Array = np.sign(value) * np.floor(scaled + 0.5 + 1e-9) / 10.0**places
    return np.where(np.isfinite(value), rounded, value)
