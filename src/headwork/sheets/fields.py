"""The keys of a problem and of a part: what each may hold, checked one by one."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headwork.errors import HeadworkError
from headwork.formulas import FORMULAS, SQRT_D_K, Scale, formula_named
from headwork.notation import GRADIENTS, ROLES, Notation, is_role
from headwork.numbers.parse import NumberError, parse_number
from headwork.numbers.surd import Real
from headwork.readings.exact import HIDDEN, Entry, Matrix
from headwork.sheets.sheet import KINDS, LOSSES, SOFTMAXES, Key, Part, Problem
from headwork.sheets.sizes import PATTERNS, pattern

T = TypeVar("T")

LARGEST_SIDE = 128  # rows, columns or heads: a sheet is worked entry by entry
_PROBLEM = [
    *("title", "text", "formula", "heads", "kv_heads", "scale", "mask", "softmax", "blocks", "places"),
    *("first_index", "vectors", "notation", "given", "sizes", "marking", "part"),
]
_PART = ["label", "kind", "text", "find", "given", "answer", "mean", "variance", "loss", "target", "rate"]
_SIZES = ["batch", "tokens", "keys", "d_model", "d_context", "d_k", "d_v", "d_out", "heads", "kv_heads"]


def read_problem(table: Mapping[str, Any], default_title: str) -> Problem:
    """One problem from its table."""
    _only(table, _PROBLEM)
    first = _key("first_index", _integer, table.get("first_index", 1), 0, 1)
    return Problem(
        title=_key("title", _text, table.get("title", default_title)),
        text=_key("text", _text, table.get("text", "")),
        formula=_key("formula", _one_of, table.get("formula"), FORMULAS),
        heads=_key("heads", _count, table.get("heads")),
        kv_heads=_key("kv_heads", _count, table.get("kv_heads")),
        scale=_key("scale", _scale, table.get("scale"), str(table.get("formula"))),
        mask=_key("mask", _mask, table.get("mask", "none")),
        blocks=_key("blocks", _blocks, table.get("blocks"), str(table.get("formula"))),
        softmax=_key("softmax", _one_of, table.get("softmax", "whole"), SOFTMAXES),
        places=_key("places", _integer, table.get("places", 2), 0, 50),
        notation=Notation(_key("notation", _names, table.get("notation", {})), first),
        columns=_key("vectors", _one_of, table.get("vectors", "rows"), ("rows", "columns")) == "columns",
        given=_key("given", _given, table.get("given", {}), first),
        sizes=_key("sizes", _sizes, table.get("sizes", {})),
        marking=_key("marking", _table, table.get("marking", {})),
        parts=_key("part", _parts, table.get("part"), first),
    )


def _parts(tables: Any, first: int) -> tuple[Part, ...]:
    if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) for t in tables):
        raise HeadworkError("at least one [[part]] is needed, each with what to find")
    parts = tuple(
        _at(f"part '{_short(table.get('label', number))}'", _part, table, number, first)
        for number, table in enumerate(tables, 1)
    )
    labels = [part.label for part in parts]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise HeadworkError(f"label '{twice}' stands on two parts; give each its own")
    return parts


def _part(table: Mapping[str, Any], number: int, first: int) -> Part:
    _only(table, _PART)
    kind = _key("kind", _one_of, table.get("kind", "value"), KINDS)
    part = Part(
        label=_text(table.get("label", str(number))),
        kind=kind,
        text=_key("text", _text, table.get("text", "")),
        find=_key("find", _find, table.get("find", [])),
        given=_key("given", _given, _with_target(table), first),
        answer=_key("answer", _text, table.get("answer", "")),
        mean=_key("mean", _optional_number, table.get("mean")),
        variance=_key("variance", _optional_number, table.get("variance")),
        loss=_key("loss", _one_of, table["loss"], LOSSES) if "loss" in table else "",
        rate=_key("rate", _optional_number, table.get("rate")),
    )
    if kind in ("value", "prove", "moments") and not part.find:
        raise HeadworkError(f"key 'find' is missing; a part of kind '{kind}' needs it")
    if kind != "gradient" and (stray := [key for key in ("loss", "target", "rate") if key in table]):
        raise HeadworkError(f"key '{stray[0]}' belongs to a part of kind 'gradient', not '{kind}'")
    if kind == "explain" and not part.answer:
        raise HeadworkError("key 'answer' is missing; a part of kind 'explain' needs it")
    return part


def _with_target(table: Mapping[str, Any]) -> Any:
    """What a part gives; the target of its loss is one matrix more."""
    given = table.get("given", {})
    return {**given, "target": table["target"]} if "target" in table and isinstance(given, dict) else given


def _given(table: Any, first: int) -> dict[Key, Matrix]:
    if not isinstance(table, dict):
        raise HeadworkError("must be a table of matrices")
    found: dict[Key, Matrix] = {}
    for name, value in table.items():
        role, head = role_and_head(name, first)
        if pattern(role) is None:
            raise HeadworkError(f"'{name}' cannot be given; choose from {', '.join(PATTERNS)}")
        matrices = _key(name, _matrices, value, role.removeprefix("d_").startswith("b_"))
        if isinstance(matrices, list):
            if head is not None:
                raise HeadworkError(f"'{name}' is one head's matrix, but a list of matrices was given")
            found |= {(role, h): matrix for h, matrix in enumerate(matrices)}
        else:
            found[role, head] = matrices
    return found


def role_and_head(name: str, first: int) -> Key:
    """ "Q_2" is role Q, head 1 when heads are counted from 1."""
    if is_role(name):
        return name, None
    role, _, number = name.rpartition("_")
    if is_role(role) and re.fullmatch("[0-9]{1,9}", number):
        head = int(number) - first
        if head < 0:
            raise HeadworkError(f"'{name}': heads are counted from {first} on this sheet")
        return role, head
    raise HeadworkError(f"unknown role '{name[:40]}'; choose from {', '.join(ROLES)}, or one head's such as Q_{first}")


def _matrices(value: Any, vector: bool) -> Matrix | list[Matrix]:
    """One matrix, or one for every head; a bias may be written as a flat row."""
    depth = _depth(value)
    if vector and depth in (1, 2):
        # One flat row, or one flat row for every head.
        return _matrix([value]) if depth == 1 else [_matrix([row]) for row in value]
    if depth == 2:
        return _matrix(value)
    if depth == 3:
        if len(value) > LARGEST_SIDE:
            raise HeadworkError(f"holds {len(value)} matrices; at most {LARGEST_SIDE}")
        return [_at(f"matrix {i}", _matrix, v) for i, v in enumerate(value, 1)]
    raise HeadworkError("must be a matrix, written [[1, 2], [3, 4]], or a list of matrices")


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, list) and value and depth < 4:
        value, depth = value[0], depth + 1
    return depth


def _matrix(rows: Any) -> Matrix:
    if not isinstance(rows, list) or not all(isinstance(row, list) and row for row in rows) or not rows:
        raise HeadworkError("must be a matrix with at least one row and one column, written [[1, 2], [3, 4]]")
    if len(rows) > LARGEST_SIDE or len(rows[0]) > LARGEST_SIDE:
        raise HeadworkError(f"is {len(rows)}×{len(rows[0])}; at most {LARGEST_SIDE}×{LARGEST_SIDE} is worked")
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise HeadworkError(f"is ragged: row 1 has {len(rows[0])} entries but row {number} has {len(row)}")
    return tuple(tuple(_entry(x, i, j) for j, x in enumerate(row, 1)) for i, row in enumerate(rows, 1))


def _entry(value: Any, row: int, column: int) -> Entry:
    try:
        return _number(value)
    except NumberError as error:
        raise HeadworkError(f"row {row}, column {column}: {error}") from None


def _number(value: Any) -> Real:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise NumberError(f"{type(value).__name__} where a number belongs")
    return parse_number(value)


def _mask(value: Any) -> str | Matrix:
    if isinstance(value, str):
        return _one_of(value, ("none", "causal"))
    if not isinstance(value, list) or not value or not all(isinstance(row, list) and row for row in value):
        raise HeadworkError('must be "none", "causal", or a matrix of true/false or of numbers')
    rows = [[_mask_entry(x) for x in row] for row in value]
    if any(len(row) != len(rows[0]) for row in rows):
        raise HeadworkError("is ragged: every row needs as many entries")
    return tuple(tuple(row) for row in rows)


def _mask_entry(value: Any) -> Entry:
    """true may be read; false and "-inf" are hidden; a number is added as it is."""
    if isinstance(value, bool):
        return parse_number(0) if value else HIDDEN
    if value in ("-inf", "-∞", "−∞"):
        return HIDDEN
    return _number(value)


def _scale(value: Any, formula: str) -> Scale:
    scaled = formula_named(formula).scaled
    if value is None:
        return SQRT_D_K if scaled else None
    if value == "none":
        return None
    if not scaled:
        raise HeadworkError(f"{formula} is not scaled; use scaled_dot_product or remove the key")
    if value == SQRT_D_K:
        return SQRT_D_K
    number = _number(value)
    if not number:
        raise HeadworkError('is 0, and nothing can be divided by it; write "none" for no scaling')
    return number


def _blocks(value: Any, formula: str) -> int | tuple[int, ...]:
    if value is None:
        return 2 if formula_named(formula).blocks else 1
    if not formula_named(formula).blocks:
        raise HeadworkError(f"{formula} takes all keys at once; use blockwise or remove the key")
    if isinstance(value, list):
        return tuple(_integer(size, 1, LARGEST_SIDE) for size in value)
    return _integer(value, 1, LARGEST_SIDE)


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise HeadworkError("must be a table")
    return value


def _names(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise HeadworkError("must be a table from roles to names")
    for key, name in value.items():
        role = re.sub(r"\[i(,j)?\]$", "", key)
        if key == "gradient":
            _key(key, _one_of, name, GRADIENTS)
            continue
        if not is_role(role):
            raise HeadworkError(f"unknown role '{role}'; choose from {', '.join(ROLES)}")
        if not isinstance(name, str) or not re.fullmatch(r"[^\W_][^\s\\{}$<>&#%\"'`]{0,19}", name):
            raise HeadworkError(f"'{key}' needs a name of 1 to 20 letters and digits, such as Z or W_Q")
    return value


def _sizes(value: Any) -> dict[str, int | str]:
    if not isinstance(value, dict):
        raise HeadworkError("must be a table of sizes")
    _only(value, _SIZES)
    for name, size in value.items():
        _key(name, parse_size, size)
    return value


def parse_size(value: Any) -> int | str:
    """A positive number, or a symbol: a letter with an optional subscript such as n or d_k."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z]\w{0,11}", value, re.ASCII):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10**9:
        return value
    raise HeadworkError(f"{value!r} is not a size; give a whole number from 1 on, or a symbol such as n or d_k")


def _find(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise HeadworkError('must be a list of names, such as ["Q", "scores_1[2,1]"]')
    return tuple(value)


def _optional_number(value: Any) -> Real | None:
    return None if value is None else _number(value)


def _count(value: Any) -> int | None:
    return None if value is None else _integer(value, 1, LARGEST_SIDE)


def _integer(value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise HeadworkError(f"{_short(value)} is not a whole number from {low} to {high}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise HeadworkError(f"{_short(value)} is not text; put it in quotes")
    return value.strip()


def _one_of(value: Any, allowed: Any) -> str:
    if value not in tuple(allowed):
        found = "nothing" if value is None else _short(value)
        raise HeadworkError(f"{found} was given; choose from {', '.join(allowed)}")
    return str(value)


def _only(table: Mapping[str, Any], allowed: list[str]) -> None:
    if unknown := [key for key in table if key not in allowed]:
        raise HeadworkError(f"unknown key '{_short(unknown[0]).strip(chr(39))}'; allowed are {', '.join(allowed)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _key(key: str, read: Callable[..., T], *arguments: Any) -> T:
    return _at(f"key '{key}'", read, *arguments)


def _at(place: str, read: Callable[..., T], *arguments: Any) -> T:
    """Run a check; if it fails, say where."""
    try:
        return read(*arguments)
    except HeadworkError as error:
        raise HeadworkError(f"{place}: {error}") from None
