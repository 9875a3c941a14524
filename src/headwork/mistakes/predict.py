"""What a graph, right or mistaken, predicts for a step: float64, fast, over and over with different matrices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from headwork.errors import HeadworkError
from headwork.graph import Step, in_order, needed
from headwork.mistakes.operations import VALUES, HideOthers, ZeroHidden
from headwork.numbers.digits import to_float
from headwork.ops import Add, MatMul
from headwork.readings.exact import Hidden, Matrix
from headwork.readings.values import Array

Round = Callable[[Step, Array], Array]
MOST_PLANS = 500
_Line = tuple[Step, Callable[..., Array], tuple[Step, ...]]


def to_array(matrix: Matrix) -> Array:
    """Exact numbers next to their float64."""
    return np.array([[-np.inf if isinstance(x, Hidden) else to_float(x) for x in row] for row in matrix])


def float_handed(handed: Mapping[Step, Matrix]) -> dict[Step, Array]:
    return {step: to_array(matrix) for step, matrix in handed.items()}


class Graph:
    """A graph that is read many times. Its steps are known by role and head, so that a rewritten graph answers
    for the steps of the one it was made from; plans of what has to be worked out are kept."""

    def __init__(self, last: Step, original: Step | None = None) -> None:
        self.last = last
        self.order = list(in_order(last))
        self.all = set(self.order)
        self.by_key: dict[tuple[str, Any], Step] = {}
        for step in self.order:
            self.by_key.setdefault((step.role, step.head), step)
        self.untouched = _alike(self.order, list(in_order(original))) if original is not None else set()
        self.plans: dict[tuple[Step, frozenset[Step]], list[_Line] | None] = {}

    def here(self, step: Step) -> Step | None:
        """This graph's step for one of the original's."""
        return step if step in self.all else self.by_key.get((step.role, step.head))

    def value(self, step: Step, handed: Mapping[Step, Array]) -> Array:
        """The step's matrix; what is handed over is taken as it is."""
        found = self.predict(step, handed)
        if found is None:
            raise HeadworkError(f"{step!r} cannot be worked out from what is given")
        return found

    def predict(self, step: Step, handed: Mapping[Step, Array], rounding: Round | None = None) -> Array | None:
        """The same; None where this graph does not lead to the step or its matrices no longer fit."""
        target = self.here(step)
        if target is None:
            return None
        mine = {here: array for s, array in handed.items() if (here := self.here(s)) is not None and here is not target}
        lines = self._plan(target, mine.keys())
        if lines is None:
            return None
        return _run(lines, mine, rounding)

    def everything(self, handed: Mapping[Step, Array], rounding: Round | None = None) -> dict[tuple[str, Any], Array]:
        """Every step that can be worked out, by role and head, in one pass."""
        meaning: dict[Step, Array] = {here: array for s, array in handed.items() if (here := self.here(s)) is not None}
        for step in self.order:
            if step in meaning or not step.inputs or not all(s in meaning for s in step.inputs):
                continue
            value = _run([(step, VALUES[type(step.op)], step.inputs)], meaning, rounding)
            if value is not None:
                meaning[step] = value
        return {key: meaning[step] for key, step in self.by_key.items() if step in meaning}

    def touches(self, step: Step, handed: Collection[Step]) -> bool:
        """Whether the mistake lies between what is handed over and the step."""
        target = self.here(step)
        if target is None:
            return False
        mine = {here for s in handed if (here := self.here(s)) is not None and here is not target}
        return any(line[0] not in self.untouched for line in self._plan(target, mine) or ())

    def _plan(self, target: Step, handed: Collection[Step]) -> list[_Line] | None:
        key = (target, frozenset(handed))
        if key not in self.plans:
            if len(self.plans) >= MOST_PLANS:  # a class that leaves out ever other answers must not fill the memory
                self.plans.clear()
            steps = needed(target, dict.fromkeys(handed))
            work = [(s, VALUES[type(s.op)], s.inputs) for s in steps if s not in handed]
            self.plans[key] = work if all(inputs for _, _, inputs in work) else None
        return self.plans[key]


def _alike(steps: list[Step], originals: list[Step]) -> set[Step]:
    """The steps that work as in the original. A step that only rests on a changed one is a new step, but alike."""
    known = {_way(step) for step in originals}
    return {step for step in steps if _way(step) in known}


def _way(step: Step) -> tuple[Any, ...]:
    return step.role, step.head, step.op, tuple((s.role, s.head) for s in step.inputs)


def _run(lines: list[_Line], handed: Mapping[Step, Array], rounding: Round | None) -> Array | None:
    meaning = dict(handed)
    value: Array | None = None
    for step, rule, inputs in lines:
        operands = [meaning[s] for s in inputs]
        if isinstance(step.op, MatMul | Add | ZeroHidden | HideOthers) and not _fit(step, operands):
            return None
        try:
            value = rule(step, *operands)
        except ValueError:  # NumPy's word for matrices that do not fit
            return None
        if rounding is not None:
            value = rounding(step, value)
        meaning[step] = value
    return value


def _fit(step: Step, operands: list[Array]) -> bool:
    """NumPy would stretch what a page would not add, and multiply what holds −∞."""
    left, right = operands
    if isinstance(step.op, MatMul):
        return bool(left.shape[-1] == right.shape[-2])
    return left.shape[-1] == right.shape[-1] and right.shape[-2] in (1, left.shape[-2])
