"""Several items in one problem: X as a list of matrices. Each is worked as a problem of its own, gradients over all."""

from collections.abc import Mapping
from dataclasses import replace
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
    tables = isinstance(parts, list) and all(isinstance(part, dict) for part in parts)
    if formula is None or not isinstance(given, dict) or not isinstance(parts, list) or not tables:
        return [read_problem(table, default_title)]  # which says what is wrong
    roles = OF_X if formula.projects else OF_BARE
    lists = {role: given[role] for role in roles if role in given and depth(given[role]) == 3}
    if not lists:
        return [read_problem(table, default_title)]
    number = _number(lists)
    sizes = table.get("sizes", {})
    if isinstance(sizes, dict) and isinstance(told := sizes.get("batch"), int) and told != number:
        raise HeadworkError(f"batch = {told}, but {next(iter(lists))} holds {number} items; give as many")
    title = table.get("title", default_title)

    def item(index: int, asked: list[dict[str, Any]]) -> Problem:
        own = {
            "title": f"{title}, item {index + 1}",
            "given": {**given, **{role: value[index] for role, value in lists.items()}},
            "sizes": {"batch": number, **sizes} if isinstance(sizes, dict) else sizes,
            "part": asked,
        }
        return read_problem({**table, **own, **_names(table, index, number, next(iter(lists)))}, default_title)

    learned = [part for part in parts if part.get("kind") == "gradient"]
    found = []
    for index in range(number):
        kept = [p for p in parts if p not in learned and (index == 0 or p.get("kind", "value") in NUMBERS)]
        found += [item(index, kept)] if kept else []
    if learned:
        if shared := next((role for role in roles if role in given and role not in lists), None):
            raise HeadworkError(
                f"{shared} is one matrix for {number} items; gradients need one for every item, in a list"
            )
        each = [item(index, [_own(part, index, number) for part in learned]) for index in range(number)]
        found.append(replace(together(each), title=f"{title}, all items"))
    return found


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
