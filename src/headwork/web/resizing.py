"""Rows and columns added and removed: every matrix that shares the size grows or shrinks with it."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

from headwork.build import Sizes
from headwork.errors import HeadworkError
from headwork.sheets.checks import LARGEST_SIDE
from headwork.sheets.fields import role_and_head
from headwork.sheets.sheet import Problem
from headwork.sheets.sizes import KnownSizes, infer_sizes
from headwork.web.tables import Table, sheet_of

Rows = list[list[Any]]


def resized(table: Table, where: dict[str, Any], axis: int, add: bool) -> Table:
    """A row (axis 0) or column (1) added after the one of this cell, or that one removed; zeros where it is new."""
    number = int(where["problem"])
    problem = sheet_of(table).problems[number]
    first = problem.notation.first_index
    role, head = role_and_head(str(where["name"]), first)
    sizes = KnownSizes(problem)
    name = sizes.names(role)[axis]
    size = sizes.alias(name.rstrip("*+"))
    if size == "one":
        raise HeadworkError(f"{where['name']} is a single {'row' if axis == 0 else 'column'} and stays one")
    matrix = _found(table, where)
    width = (len(matrix) if axis == 0 else len(matrix[0])) // sizes.sharing(name, role, head)
    found = infer_sizes(problem)
    moves = _together(problem, sizes, found, size, int(where["row"] if axis == 0 else where["column"]) % width)
    made = deepcopy(table)
    own: Table = made["problem"][number]
    for size, at in moves.items():
        _refuse(size, _past(found) if size == "past" else getattr(found, size, width), add)
        for given in [own.get("given", {}), *(part.get("given", {}) for part in own["part"])]:
            for called, rows in given.items():
                given[called] = _changed(rows, sizes, role_and_head(called, first), size, at, add)
        for key in ("mask", "bias"):
            if isinstance(own.get(key), list):
                own[key] = _each(own[key], partial(_changed, sizes=sizes, key=(key, None), size=size, at=at, add=add))
        _keep_told(own, problem, size, add)
    _keep_names(own, found, moves, add)
    return made


def _together(problem: Problem, sizes: KnownSizes, found: Sizes, size: str, at: int) -> dict[str, int]:
    """The sizes that change with this one, each with its place: all keys are the earlier tokens and the new ones, what
    is turned by its position is as many queries as keys, and what is added to X is as wide as X."""
    past = _past(found)
    if sizes.past and size == "tokens":
        return {"tokens": at, "keys": at + past}
    if sizes.past and size in ("past", "keys"):
        return {"keys": at, **({"past": at} if at < past else {"tokens": at - past})}
    if problem.rotary and size in ("tokens", "keys") and not past:
        return {"tokens": at, "keys": at}
    wide = ("d_model", sizes.alias("d_out") if sizes.projected else "d_v")
    return dict.fromkeys(wide, at) if problem.around != "none" and size in wide else {size: at}


def _past(sizes: Sizes) -> int:
    return sizes.keys - sizes.tokens if isinstance(sizes.keys, int) and isinstance(sizes.tokens, int) else 0


def _keep_names(own: Table, sizes: Sizes, moves: dict[str, int], add: bool) -> None:
    """A name for every token, and none too many."""
    for key in ("tokens", "keys"):
        names = own.get(key)
        size = key if names and len(names) == getattr(sizes, key) else "keys"
        if not names or size not in moves:
            continue
        at = moves[size]
        own[key] = [*names[: at + 1], _new_name(names), *names[at + 1 :]] if add else [*names[:at], *names[at + 1 :]]


def _new_name(names: list[str]) -> str:
    return next(name for n in range(1, len(names) + 2) if (name := f"new {n}" if n > 1 else "new") not in names)


def _each(value: list[Any], change: Callable[[Rows], Rows]) -> list[Any]:
    """A matrix, or one for every head; what goes by a name stays."""
    if isinstance(value[0], list) and not isinstance(value[0][0], list):
        return change(value)
    return [one if isinstance(one, str) else change(one) for one in value]


def _found(table: Table, where: dict[str, Any]) -> Rows:
    problem = table["problem"][int(where["problem"])]
    whose = problem if where.get("part") is None else next(p for p in problem["part"] if p["label"] == where["part"])
    rows: Rows = whose["given"][where["name"]]
    return rows


def _refuse(size: str, width: int, add: bool) -> None:
    if not add and width == 1:
        raise HeadworkError(f"{size} is 1 already; a matrix has at least one row and one column")
    if add and width >= LARGEST_SIDE:
        raise HeadworkError(f"{size} is {width} already; at most {LARGEST_SIDE} are worked")


def _changed(rows: Rows, sizes: KnownSizes, key: tuple[str, int | None], size: str, at: int, add: bool) -> Rows:
    """The matrix with the size changed wherever its rows or columns count it; in every head's block of it."""
    for axis, name in enumerate(sizes.names(key[0])):
        if sizes.alias(name.rstrip("*+")) == size:
            blocks = sizes.sharing(name, *key)
            lines = rows if axis == 0 else [list(column) for column in zip(*rows, strict=True)]
            lines = _in_blocks(lines, blocks, at, add)
            rows = lines if axis == 0 else [list(row) for row in zip(*lines, strict=True)]
    return rows


def _in_blocks(lines: Rows, blocks: int, at: int, add: bool) -> Rows:
    width = len(lines) // blocks
    made: Rows = []
    for start in range(0, len(lines), width):
        block = lines[start : start + width]
        made += [*block[: at + 1], ["0"] * len(block[0]), *block[at + 1 :]] if add else block[:at] + block[at + 1 :]
    return made


def _keep_told(own: Table, problem: Problem, size: str, add: bool) -> None:
    """Sizes that the sheet tells beside its matrices."""
    told = own.get("sizes", {}).get(size)
    if isinstance(told, int):
        own["sizes"][size] = told + (1 if add else -1)
    if size in ("keys", "tokens") and isinstance(problem.blocks, tuple):
        own["blocks"] = len(problem.blocks)


def laid(table: Table, where: dict[str, Any], rows: list[list[str]]) -> Table:
    """Numbers pasted from a cell on, the matrix grown where they need more room."""
    down, across = int(where["row"]) + len(rows), int(where["column"]) + len(rows[0])
    if max(down, across) > LARGEST_SIDE:
        raise HeadworkError(f"what was pasted needs {down}×{across} entries; at most {LARGEST_SIDE}×{LARGEST_SIDE}")
    while len(_found(table, where)) < down:
        table = resized(table, {**where, "row": len(_found(table, where)) - 1}, 0, True)
    while len(_found(table, where)[0]) < across:
        table = resized(table, {**where, "column": len(_found(table, where)[0]) - 1}, 1, True)
    made = deepcopy(table)
    matrix = _found(made, where)
    for i, row in enumerate(rows, int(where["row"])):
        for j, text in enumerate(row, int(where["column"])):
            matrix[i][j] = str(text)
    return made
