"""What a graph, right or mistaken, predicts for a step: float64, fast, over and over with different matrices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import numpy as np

from headwork.errors import HeadworkError, ShapeError
from headwork.graph import Recipe, Rules, Step, in_order, needed
from headwork.mistakes.operations import SHAPES, VALUES
from headwork.numbers.digits import to_float
from headwork.ops import Given, Shape
from headwork.readings.exact import Hidden, Matrix
from headwork.readings.values import Array

Round = Callable[[Step, Array], Array]
RoleAndHead = tuple[str, Any]  # a role and a head
MOST_KEPT = 500  # a class that leaves out ever other answers must not fill the memory


def to_array(matrix: Matrix) -> Array:
    """Exact numbers next to their float64."""
    return np.array([[-np.inf if isinstance(x, Hidden) else to_float(x) for x in row] for row in matrix])


def float_handed(handed: Mapping[Step, Matrix]) -> dict[Step, Array]:
    return {step: to_array(matrix) for step, matrix in handed.items()}


class Variant:
    """A graph that is read many times. Its steps are known by role and head, so that a rewritten graph answers
    for the steps of the one it was made from."""

    def __init__(self, last: Step, original: Step | None = None) -> None:
        self.last = last
        self.order = list(in_order(last))
        self.all = set(self.order)
        self.by_key: dict[RoleAndHead, Step] = {}
        for step in self.order:
            self.by_key.setdefault((step.role, step.head), step)
        self.untouched = _alike(self.order, list(in_order(original))) if original is not None else set()
        self._routes: dict[tuple[Step, frozenset[Step]], Route | None] = {}

    def here(self, step: Step) -> Step | None:
        """This graph's step for one of the original's."""
        return step if step in self.all else self.by_key.get((step.role, step.head))

    def value(self, step: Step, handed: Mapping[Step, Array]) -> Array:
        """The step's matrix; what is handed over is taken as it is."""
        found = self.predict(step, handed)
        if found is None:
            raise HeadworkError(f"{step!r} cannot be worked out from what is given")
        return found

    def predict(self, step: Step, handed: Mapping[Step, Array]) -> Array | None:
        """The same; None where this graph does not lead to the step or its matrices no longer fit."""
        route = self.route(step, handed)
        return None if route is None else route.value(handed)

    def route(self, step: Step, handed: Mapping[Step, Array]) -> Route | None:
        """The way from what is handed over to a step, kept for matrices of the same shapes."""
        key = (step, frozenset(handed))
        if key not in self._routes:
            if len(self._routes) >= MOST_KEPT:
                self._routes.clear()
            self._routes[key] = self._route(step, handed)
        return self._routes[key]

    def _route(self, step: Step, handed: Mapping[Step, Array]) -> Route | None:
        target = self.here(step)
        if target is None:
            return None
        known = {here: s for s in handed if (here := self.here(s)) is not None and here is not target}
        steps = needed(target, known)
        work = [s for s in steps if s not in known]
        if any(isinstance(s.op, Given) for s in work):
            return None
        taken = {s: known[s] for s in steps if s in known}
        fits = Recipe(work, FITTING).follow({here: handed[s].shape for here, s in taken.items()})
        if fits[target] is None:
            return None
        return Route(target, taken, Recipe(work, VALUES), not self.untouched.issuperset(work))

    def everything(
        self, handed: Mapping[Step, Array], known: Mapping[Step, Array] | None = None, rounding: Round | None = None
    ) -> dict[Step, Array]:
        """Every step that can be worked out. `known` are steps of another variant, worked out from the same matrices:
        what this one shares with it is not worked out again."""
        meaning = {step: known[step] for step in self.order if step in known} if known else {}
        meaning |= {here: array for s, array in handed.items() if (here := self.here(s)) is not None}
        work = [step for step in self.order if step not in meaning]
        shape = Recipe(work, FITTING).follow({step: array.shape for step, array in meaning.items()})
        rules = VALUES if rounding is None else {op: partial(_rounded, rounding, rule) for op, rule in VALUES.items()}
        return Recipe((step for step in work if shape[step] is not None), rules).follow(meaning)

    def by_name(self, meaning: Mapping[Step, Array]) -> dict[RoleAndHead, Array]:
        """The same by role and head."""
        return {key: meaning[step] for key, step in self.by_key.items() if step in meaning}


class Route:
    """A step of a variant, what of the matrices handed over it takes, and how it is worked out of them."""

    def __init__(self, target: Step, taken: Mapping[Step, Step], recipe: Recipe[Array], mistaken: bool) -> None:
        self.target, self.recipe, self.mistaken = target, recipe, mistaken
        self.taken = list(taken.items())

    def value(self, handed: Mapping[Step, Array]) -> Array:
        return self.recipe.follow({here: handed[step] for here, step in self.taken})[self.target]


def _alike(steps: Collection[Step], originals: Collection[Step]) -> set[Step]:
    """The steps that work as in the original. A step that only rests on a changed one is a new step, but alike."""
    known = {_way(step) for step in originals}
    return {step for step in steps if _way(step) in known}


def _way(step: Step) -> tuple[Any, ...]:
    return step.role, step.head, step.op, tuple((s.role, s.head) for s in step.inputs)


def _rounded(rounding: Round, rule: Callable[..., Array], step: Step, *inputs: Array) -> Array:
    return rounding(step, rule(step, *inputs))


def _if_it_fits(rule: Callable[..., Shape], step: Step, *inputs: Shape | None) -> Shape | None:
    try:
        return None if None in inputs else rule(step, *inputs)
    except ShapeError:
        return None


# Shapes, with None for a step that cannot be worked out: matrices that do not fit, or that nobody handed over.
FITTING: Rules[Shape | None] = {
    **{op: partial(_if_it_fits, rule) for op, rule in SHAPES.items()},
    Given: lambda step: None,
}
