"""What a graph, right or mistaken, predicts for a step: fast, over and over with different matrices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from headwork.errors import HeadworkError, ShapeError
from headwork.graph import Last, Recipe, Rules, Step, in_order, needed
from headwork.mistakes.operations import SHAPES
from headwork.ops import Given, Shape
from headwork.readings.exact import Matrix
from headwork.readings.floats import Floats, to_floats

T = TypeVar("T")
RoleAndHead = tuple[str, Any]  # a role and a head
MOST_KEPT = 500  # a class that leaves out ever other answers must not fill the memory


def float_handed(handed: Mapping[Step, Matrix]) -> dict[Step, Floats]:
    return {step: to_floats(matrix) for step, matrix in handed.items()}


class Variant(Generic[T]):
    """A graph that is read many times. Its steps are known by role and head, so that a rewritten graph answers
    for the steps of the one it was made from. `rules` say in what numbers."""

    def __init__(self, last: Last, rules: Rules[T], original: Last | None = None) -> None:
        self.last, self.rules = last, rules
        self.order = in_order(last)
        self.all = set(self.order)
        self.by_key: dict[RoleAndHead, Step] = {}
        for step in self.order:
            self.by_key.setdefault((step.role, step.head), step)
        self.untouched = _alike(self.order, in_order(original)) if original is not None else set()
        self._routes: dict[tuple[Step, frozenset[Step]], Route[T] | None] = {}

    def here(self, step: Step) -> Step | None:
        """This graph's step for one of the original's."""
        return step if step in self.all else self.by_key.get((step.role, step.head))

    def value(self, step: Step, handed: Mapping[Step, T]) -> T:
        """The step's matrix; what is handed over is taken as it is."""
        found = self.predict(step, handed)
        if found is None:
            raise HeadworkError(f"{step!r} cannot be worked out from what is given")
        return found

    def predict(self, step: Step, handed: Mapping[Step, T]) -> T | None:
        """The same; None where this graph does not lead to the step or its matrices no longer fit."""
        route = self.route(step, handed)
        return None if route is None else route.value(handed)

    def route(self, step: Step, handed: Mapping[Step, T]) -> Route[T] | None:
        """The way from what is handed over to a step, kept for matrices of the same shapes."""
        key = (step, frozenset(handed))
        if key not in self._routes:
            if len(self._routes) >= MOST_KEPT:
                self._routes.clear()
            self._routes[key] = self._route(step, handed)
        return self._routes[key]

    def _route(self, step: Step, handed: Mapping[Step, T]) -> Route[T] | None:
        target = self.here(step)
        if target is None:
            return None
        known = {here: s for s in handed if (here := self.here(s)) is not None and here is not target}
        steps = needed(target, known)
        work = [s for s in steps if s not in known]
        if any(isinstance(s.op, Given) for s in work):
            return None
        taken = {s: known[s] for s in steps if s in known}
        fits = Recipe(work, FITTING).follow({here: shape_of(handed[s]) for here, s in taken.items()})
        if fits[target] is None:
            return None
        return Route(target, taken, Recipe(work, self.rules), not self.untouched.issuperset(work))

    def everything(
        self, handed: Mapping[Step, T], known: Mapping[Step, T] | None = None, rules: Rules[T] | None = None
    ) -> dict[Step, T]:
        """Every step that can be worked out. `known` are steps of another variant, worked out from the same matrices:
        what this one shares with it is not worked out again."""
        meaning = {step: known[step] for step in self.order if step in known} if known else {}
        meaning |= {here: matrix for s, matrix in handed.items() if (here := self.here(s)) is not None}
        work = [step for step in self.order if step not in meaning]
        shape = Recipe(work, FITTING).follow({step: shape_of(matrix) for step, matrix in meaning.items()})
        return Recipe((step for step in work if shape[step] is not None), rules or self.rules).follow(meaning)

    def by_name(self, meaning: Mapping[Step, T]) -> dict[RoleAndHead, T]:
        """The same by role and head."""
        return {key: meaning[step] for key, step in self.by_key.items() if step in meaning}


class Route(Generic[T]):
    """A step of a variant, what of the matrices handed over it takes, and how it is worked out of them."""

    def __init__(self, target: Step, taken: Mapping[Step, Step], recipe: Recipe[T], mistaken: bool) -> None:
        self.target, self.recipe, self.mistaken = target, recipe, mistaken
        self.taken = list(taken.items())

    def value(self, handed: Mapping[Step, T]) -> T:
        return self.recipe.follow({here: handed[step] for here, step in self.taken})[self.target]


def _alike(steps: Collection[Step], originals: Collection[Step]) -> set[Step]:
    """The steps that work as in the original. A step that only rests on a changed one is a new step, but alike."""
    known = {_way(step) for step in originals}
    return {step for step in steps if _way(step) in known}


def _way(step: Step) -> tuple[Any, ...]:
    return step.role, step.head, step.op, tuple((s.role, s.head) for s in step.inputs)


def shape_of(matrix: Any) -> Shape:
    """Of an array, which knows it, or of rows."""
    return matrix.shape if hasattr(matrix, "shape") else (len(matrix), len(matrix[0]))


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
