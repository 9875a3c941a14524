"""A matrix as people type it, its numbers kept as text: [[1, 1/2], [0.5, 3]], "1 1/2; 0.5 3", one row, one number."""

import re
from fractions import Fraction
from math import nan
from typing import Any

from headwork.errors import HeadworkError
from headwork.marking.tolerance import Written, read_number
from headwork.numbers.parse import NumberError
from headwork.sheets.fields import LARGEST_SIDE

LONGEST = 20_000  # characters of one answer
Texts = list[list[Any]]
Numbers = tuple[tuple[Written, ...], ...]

# An entry that was left blank, or typed into a box of its own where it cannot be read. NaN is near no number: it is
# never right.
MISSING = Written(Fraction(0), nan, None)


class Boxes(list[Any]):
    """Rows of texts that were typed box by box: what one box holds says nothing about the others."""


class Malformed(HeadworkError):
    """An answer that cannot be read; it is not a wrong one."""


def is_blank(value: Any) -> bool:
    """Nothing, an empty text, or a table of such."""
    if isinstance(value, list):
        return all(is_blank(entry) for entry in value)
    return _empty(value)


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def numbers(value: Any) -> Numbers:
    """The numbers of an answer, as rows."""
    rows = texts(value)
    if len({len(row) for row in rows}) > 1:
        raise Malformed(f"is ragged: its rows have {', '.join(str(len(row)) for row in rows[:6])} entries")
    if not rows or not rows[0]:
        raise Malformed("holds no numbers")
    read = _number_or_missing if isinstance(value, Boxes) else _number
    found = tuple(
        tuple(MISSING if _empty(x) else read(x, i, j) for j, x in enumerate(row, 1)) for i, row in enumerate(rows, 1)
    )
    if all(number is MISSING for row in found for number in row):
        raise Malformed("holds no number that can be read")
    return found


def texts(value: Any) -> Texts:
    """Rows of texts from a list of lists, a list, a text or a single number."""
    if isinstance(value, str):
        return _from_text(value)
    if not isinstance(value, list):
        return [[value]]
    rows = value if all(isinstance(row, list) for row in value) else [value]
    if len(rows) > LARGEST_SIDE or any(len(row) > LARGEST_SIDE for row in rows):
        raise Malformed(f"has more than {LARGEST_SIDE} rows or columns")
    return rows


def _from_text(text: str) -> Texts:
    if len(text) > LONGEST:
        raise Malformed(f"has {len(text):,} characters; at most {LONGEST:,} are read")
    text = text.strip()
    if text.startswith("["):
        if not re.fullmatch(r"\[\s*(\[[^\[\]]*\]\s*,?\s*)*\]|\[[^\[\]]*\]", text):
            raise Malformed("has brackets that do not make a matrix; write [[1, 2], [3, 4]]")
        rows = re.findall(r"\[([^\[\]]*)\]", text)
        return [[entry.strip().strip("\"'") for entry in row.split(",") if entry.strip()] for row in rows]
    rows = [row for row in re.split(r"[;\n]", text) if row.strip()]
    return [re.split(r"\s*,\s*|\s+", row.strip()) for row in rows]


def _number(value: Any, row: int, column: int) -> Written:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Malformed(f"row {row}, column {column}: {type(value).__name__} where a number belongs")
    try:
        return read_number(value)
    except NumberError as error:
        raise Malformed(f"row {row}, column {column}: {_short(str(error))}") from None


def _number_or_missing(value: Any, row: int, column: int) -> Written:
    try:
        return _number(value, row, column)
    except Malformed:
        return MISSING


def _short(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:157]}…"
