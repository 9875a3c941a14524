"""Steps, the only interpreter of them and the only editor of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from headwork.errors import HeadworkError
from headwork.ops import Op

T = TypeVar("T")
Op_co = TypeVar("Op_co", bound=Op, covariant=True)
Rules = Mapping[type[Op], Callable[..., T]]
Head = int | str | None  # an index from 0; a letter for a typical head; None for what belongs to no head


class KeyBlock(int):
    """A block of keys: where there are no heads, a step may belong to one of these, counted as heads are."""


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """One named line: an operation, the steps it works on, its role and its head.

    Steps are compared by identity: two heads may hold equal numbers and are two steps all the same.
    """

    op: Op
    inputs: tuple[Step, ...]
    role: str
    head: Head = None

    def __post_init__(self) -> None:
        wanted = max(1, len(self.inputs)) if self.op.takes is None else self.op.takes
        if len(self.inputs) != wanted:
            raise HeadworkError(
                f"step {self.role}: {type(self.op).__name__} takes {wanted} input(s), not {len(self.inputs)}"
            )

    def __repr__(self) -> str:
        head = "" if self.head is None else f", head {self.head}"
        return f"<{type(self.op).__name__} {self.role}{head}>"


class StepOf(Step, Generic[Op_co]):
    """A step of one operation, whose data a rule reads: what a table hands to the rule that it has for that one."""

    __slots__ = ()
    op: Op_co


Last = Step | tuple[Step, ...]  # where a graph ends: in one step, or in several
L = TypeVar("L", Step, tuple[Step, ...])


def ends(last: Last) -> tuple[Step, ...]:
    return (last,) if isinstance(last, Step) else last


@lru_cache(maxsize=64)  # steps never change, and one graph is read and edited many times in a row
def in_order(last: Last) -> tuple[Step, ...]:
    """Every step that `last` rests on, each once, inputs before what is made of them."""
    found: dict[Step, None] = {}
    waiting = [*reversed(ends(last))]
    while waiting:
        step = waiting[-1]
        if missing := [s for s in step.inputs if s not in found]:
            waiting.extend(reversed(missing))
        else:
            found[step] = None
            waiting.pop()
    return tuple(found)


def read(last: Last, rules: Rules[T], handed: Mapping[Step, T] | None = None) -> dict[Step, T]:
    """Read every step once, inputs first; return what each means under `rules`.

    `handed` maps steps to meanings that are given rather than worked out; what only they rest on is not read.
    """
    handed = handed or {}
    steps = needed(last, handed)
    recipe = Recipe((step for step in steps if step not in handed), rules)
    return recipe.follow({step: handed[step] for step in steps if step in handed})


class Recipe(Generic[T]):
    """Which steps are worked out, in which order, each by which rule. Kept, it can be followed with other matrices."""

    def __init__(self, steps: Iterable[Step], rules: Rules[T]) -> None:
        self.lines = [(step, rules[type(step.op)], step.inputs) for step in steps]

    def follow(self, handed: Mapping[Step, T]) -> dict[Step, T]:
        """What is handed over, and what every step makes of it."""
        meaning = dict(handed)
        for step, rule, inputs in self.lines:
            meaning[step] = rule(step, *[meaning[s] for s in inputs])
        return meaning


def needed(last: Last, handed: Collection[Step]) -> list[Step]:
    """The steps that `last` still rests on when some are handed over."""
    if not handed:
        return list(in_order(last))
    wanted = set(ends(last))
    backwards = []
    for step in reversed(in_order(last)):
        if step in wanted:
            backwards.append(step)
            if step not in handed:
                wanted.update(step.inputs)
    return backwards[::-1]


def rewrite(last: L, edit: Callable[[Step], Step | None]) -> L:
    """The graph with every step for which `edit` returns another one replaced by it.

    `edit` sees each step with its inputs already rewritten; None leaves the step as it is.
    """
    new: dict[Step, Step] = {}  # for the steps that changed
    for step in in_order(last):
        moved = step
        if not new.keys().isdisjoint(step.inputs):
            moved = Step(step.op, tuple(new.get(s, s) for s in step.inputs), step.role, step.head)
        found = edit(moved) or moved
        if found is not step:
            new[step] = found
    if isinstance(last, Step):
        return new.get(last, last)
    changed = tuple(new.get(step, step) for step in last)
    return last if changed == last else changed  # nothing changed: the very same graph
