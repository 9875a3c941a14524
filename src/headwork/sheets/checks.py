"""One value of a sheet's table, checked: a number, a text, a matrix, one of several; and where it went wrong."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headwork.errors import HeadworkError, did_you_mean
from headwork.numbers.parse import NumberError, parse_number
from headwork.numbers.surd import Real
from headwork.readings.exact import Entry, Matrix

T = TypeVar("T")

LARGEST_SIDE = 128  # rows, columns or heads: a sheet is worked entry by entry


def as_number(value: Any) -> Real:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise NumberError(f"{type(value).__name__} where a number belongs")
    return parse_number(value)


def as_optional_number(value: Any) -> Real | None:
    return None if value is None else as_number(value)


def as_integer(value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise HeadworkError(f"{shortened(value)} is not a whole number from {low} to {high}")
    return value


def as_count(value: Any) -> int | None:
    return None if value is None else as_integer(value, 1, LARGEST_SIDE)


def as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise HeadworkError(f"{shortened(value)} is not text; put it in quotes")
    return value.strip()


def as_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise HeadworkError(f"{shortened(value)} is neither true nor false; write one of the two, without quotes")
    return value


def one_of(value: Any, allowed: Any) -> str:
    if value not in tuple(allowed):
        found = "nothing" if value is None else shortened(value)
        choice = did_you_mean(str(value), allowed) or f"; choose from {', '.join(allowed)}"
        raise HeadworkError(f"{found} was given{choice}")
    return str(value)


def as_table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise HeadworkError("must be a table")
    return value


def only_keys(table: Mapping[str, Any], allowed: list[str]) -> None:
    if unknown := [key for key in table if key not in allowed]:
        key = shortened(unknown[0]).strip(chr(39))
        meant = did_you_mean(str(unknown[0]), allowed) or f"; allowed are {', '.join(allowed)}"
        raise HeadworkError(f"unknown key '{key}'{meant}")


def as_matrices(value: Any, vector: bool) -> Matrix | list[Matrix]:
    """One matrix, or one for every head; a bias may be written as a flat row."""
    deep = depth(value)
    if vector and deep in (1, 2):
        # One flat row, or one flat row for every head.
        return as_matrix([value]) if deep == 1 else [as_matrix([row]) for row in value]
    if deep == 2:
        return as_matrix(value)
    if deep == 3:
        if len(value) > LARGEST_SIDE:
            raise HeadworkError(f"holds {len(value)} matrices; at most {LARGEST_SIDE}")
        return [at(f"matrix {i}", as_matrix, v) for i, v in enumerate(value, 1)]
    raise HeadworkError("must be a matrix, written [[1, 2], [3, 4]], or a list of matrices")


def depth(value: Any) -> int:
    found = 0
    while isinstance(value, list) and value and found < 4:
        value, found = value[0], found + 1
    return found


def as_matrix(rows: Any) -> Matrix:
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
        return as_number(value)
    except NumberError as error:
        raise HeadworkError(f"row {row}, column {column}: {error}") from None


def at_key(key: str, read: Callable[..., T], *arguments: Any) -> T:
    return at(f"key '{key}'", read, *arguments)


def at(place: str, read: Callable[..., T], *arguments: Any) -> T:
    """Run a check; if it fails, say where."""
    try:
        return read(*arguments)
    except HeadworkError as error:
        raise HeadworkError(f"{place}: {error}") from None


def shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
