"""A switch of the page set: the sheet's table with another formula, mask, scale, softmax, number of heads or places."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from headwork.errors import HeadworkError
from headwork.sheets.ready import Ready
from headwork.sheets.sheet import Problem
from headwork.web.building import rebuilt
from headwork.web.tables import HIDES, Table, sheet_of, table_of, written

PLAIN: dict[str, Callable[[Any], Any]] = {"softmax": str, "places": int, "blocks": int, "scale": written}
REBUILT = ("formula", "heads", "kv_heads")


def switched(table: Table, number: int, key: str, value: Any) -> Table:
    """The table with one key of one problem set."""
    if key in REBUILT:
        sheet = sheet_of(table)
        changed = list(sheet.problems)
        changed[number] = _rebuilt(changed[number], key, value)
        return table_of(replace(sheet, problems=tuple(changed)))
    if key == "mask":
        value = _mask_grid(sheet_of(table).problems[number]) if value == "grid" else value
    elif key in PLAIN:
        value = PLAIN[key](value)
    else:
        raise HeadworkError(f"there is no switch '{key[:40]}'")
    problems = [{**p, key: value} if i == number else p for i, p in enumerate(table["problem"])]
    return {**table, "problem": problems}


def _rebuilt(problem: Problem, key: str, value: Any) -> Problem:
    if key == "formula":
        return rebuilt(problem, str(value))
    if key == "heads":
        return rebuilt(problem, problem.formula, heads=int(value))
    return rebuilt(problem, problem.formula, kv_heads=int(value))


def _mask_grid(problem: Problem) -> list[list[str]]:
    """The mask that there is, as a grid to click; where there is none nothing is hidden."""
    sizes = Ready(problem).sizes
    if not isinstance(sizes.tokens, int) or not isinstance(sizes.keys, int):
        raise HeadworkError("the number of tokens is not told, so there is no grid; choose none or causal")
    causal, first = problem.mask == "causal", sizes.keys - sizes.tokens
    return [[HIDES if causal and j > first + i else "0" for j in range(sizes.keys)] for i in range(sizes.tokens)]
