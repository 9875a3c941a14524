"""Several items in one problem: X as a list of matrices. Each is worked as a problem of its own."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from headwork.errors import HeadworkError
from headwork.formulas import FORMULAS
from headwork.sheets.checks import LARGEST_SIDE, depth
from headwork.sheets.sheet import NUMBERS

# What every item has of its own; what else comes as a list is one matrix for every head.
OF_X = ("X", "context", "X_past")
OF_BARE = ("Q", "K", "V", "K_past", "V_past", "K_new", "V_new")


def items(table: Mapping[str, Any], default_title: str) -> list[Mapping[str, Any]]:
    """The table of every item; the table itself where there is one. Shapes have the number of items before them.

    What is not about numbers is asked once, with the first item.
    """
    formula, given = FORMULAS.get(str(table.get("formula"))), table.get("given")
    if formula is None or not isinstance(given, dict):
        return [table]
    roles = OF_X if formula.projects else OF_BARE
    lists = {role: given[role] for role in roles if role in given and depth(given[role]) == 3}
    if not lists:
        return [table]
    number = _number(lists)
    parts = table.get("part")
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return [table]  # `read_problem` says what is wrong with them
    if any(part.get("kind") == "gradient" for part in parts):
        raise HeadworkError(
            f"{next(iter(lists))} holds {number} items, and gradients add up over them; write the items below one "
            "another in one matrix, and let a mask hide each from the others"
        )
    sizes = table.get("sizes", {})
    if isinstance(sizes, dict) and isinstance(told := sizes.get("batch"), int) and told != number:
        raise HeadworkError(f"batch = {told}, but {next(iter(lists))} holds {number} items; give as many")
    found: list[Mapping[str, Any]] = []
    for item in range(number):
        kept = [part for part in parts if item == 0 or part.get("kind", "value") in NUMBERS]
        if kept:
            own = {
                "title": f"{table.get('title', default_title)}, item {item + 1}",
                "given": {**given, **{role: value[item] for role, value in lists.items()}},
                "sizes": {"batch": number, **sizes} if isinstance(sizes, dict) else sizes,
                "part": kept,
            }
            found.append({**table, **own, **_names(table, item, number, next(iter(lists)))})
    return found


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
