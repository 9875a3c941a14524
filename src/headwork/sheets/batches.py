"""Several items in one problem: X as a list of matrices. Each is worked as a problem of its own, gradients over all."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from headwork.errors import HeadworkError
from headwork.formulas import FORMULAS
from headwork.sheets.checks import LARGEST_SIDE, depth
from headwork.sheets.fields import read_problem
from headwork.sheets.sheet import NUMBERS, Problem
from headwork.sheets.together import together

# What every item has of its own; what else comes as a list is one matrix for every head.
OF_X = ("X", "context", "X_past")
OF_BARE = ("Q", "K", "V", "K_past", "V_past", "K_new", "V_new")


def read_items(table: Mapping[str, Any], default_title: str) -> list[Problem]:
    """The problem of every item, and for what adds up over them one of all; the problem itself where there is one item.

    Shapes have the number of items before them. What is not about numbers is asked once, with the first item.
    """
    formula, given, parts = FORMULAS.get(str(table.get("formula"))), table.get("given"), table.get("part")
    tables = isinstance(parts, list) and parts and all(isinstance(part, dict) for part in parts)
    if formula is None or not isinstance(given, dict) or not isinstance(parts, list) or not tables:
        return [read_problem(table, default_title)]  # which says what is wrong
    roles = OF_X if formula.projects else OF_BARE
    lists = {role: given[role] for role in roles if role in given and depth(given[role]) == 3}
    if not lists:
        return [read_problem(table, default_title)]
    parts = [{"label": str(number), **part} for number, part in enumerate(parts, 1)]  # the same with every item
    items = _Items({**table, "part": parts}, str(table.get("title", default_title)), lists, _number(lists))
    learned = [part for part in parts if part.get("kind") == "gradient"]
    asked = [part for part in parts if part not in learned]
    numbers = [part for part in asked if part.get("kind", "value") in NUMBERS]
    found = [
        items.problem(item, numbers if item else asked)
        for item in range(items.number)
        if numbers or (asked and not item)
    ]
    if learned and (shared := next((role for role in roles if role in given and role not in lists), None)):
        raise HeadworkError(
            f"{shared} is one matrix for {items.number} items; gradients need one for every item, in a list"
        )
    return [*found, *([items.together(learned)] if learned else [])]


@dataclass(frozen=True)
class _Items:
    """A table with so many items: the roles of which each has its own matrix, and those matrices."""

    table: Mapping[str, Any]
    title: str
    lists: Mapping[str, list[Any]]
    number: int

    def problem(self, item: int, parts: list[dict[str, Any]]) -> Problem:
        """One item with some of the parts."""
        sizes, marking = self.table.get("sizes", {}), self.table.get("marking")
        first = next(iter(self.lists))
        if isinstance(sizes, dict):
            if isinstance(told := sizes.get("batch"), int) and told != self.number:
                raise HeadworkError(f"batch = {told}, but {first} holds {self.number} items; give as many")
            sizes = {"batch": self.number, **sizes}
        own = {
            "title": f"{self.title}, item {item + 1}",
            "given": {**self.table["given"], **{role: each[item] for role, each in self.lists.items()}},
            "sizes": sizes,
            "part": parts,
            **_names(self.table, item, self.number, first),
        }
        if isinstance(marking, dict) and isinstance(points := marking.get("points"), dict):
            here = [part["label"] for part in parts]
            elsewhere = [part["label"] for part in self.table["part"] if part["label"] not in here]
            own["marking"] = {**marking, "points": {k: v for k, v in points.items() if k not in elsewhere}}
        return read_problem({**self.table, **own}, self.title)

    def together(self, parts: list[dict[str, Any]]) -> Problem:
        """All items at once."""
        each = [self.problem(item, [_own(part, item, self.number) for part in parts]) for item in range(self.number)]
        return replace(together(each), title=f"{self.title}, all items")


def _own(part: Mapping[str, Any], item: int, number: int) -> dict[str, Any]:
    """A part about gradients with what it gives for one item alone: a list of targets, or of ∂L/∂output."""

    def of(role: str, value: Any) -> Any:
        if depth(value) == 3 and len(value) != number:
            raise HeadworkError(f"{role} holds {len(value)} matrices for {number} items; give as many")
        return value[item] if depth(value) == 3 else value

    given = part.get("given")
    own = {"given": {role: of(role, value) for role, value in given.items()}} if isinstance(given, dict) else {}
    return {**part, **own, **({"target": of("target", part["target"])} if "target" in part else {})}


def _names(table: Mapping[str, Any], item: int, number: int, role: str) -> dict[str, Any]:
    """What an item's tokens are called, where every item has names of its own; and which of them are padding there."""
    own: dict[str, Any] = {}
    everyone: list[Any] = []
    for key in ("tokens", "keys"):
        names = table.get(key)
        if isinstance(names, list) and names and all(isinstance(each, list) for each in names):
            if len(names) != number:
                raise HeadworkError(f"{key} names {len(names)} items, but {role} holds {number}; give as many")
            own[key] = names[item]
            everyone += chain.from_iterable(names)
    padding = table.get("padding")
    if own and isinstance(padding, list):
        here = own.get("keys") or own.get("tokens") or ()
        own["padding"] = [name for name in padding if name in here or name not in everyone]
    return own


def _number(lists: Mapping[str, list[Any]]) -> int:
    (first, one), *others = lists.items()
    for role, matrices in others:
        if len(matrices) != len(one):
            raise HeadworkError(f"{first} holds {len(one)} items but {role} {len(matrices)}; give one for every item")
    if len(one) > LARGEST_SIDE:
        raise HeadworkError(f"{first} holds {len(one)} items; at most {LARGEST_SIDE}")
    return len(one)
