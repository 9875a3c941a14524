"""A matrix as people type it, its numbers kept as text: [[1, 1/2], [0.5, 3]], "1 1/2; 0.5 3", one row, one number; with
decimal commas, from NumPy's print or its array(…), from MATLAB, from LaTeX."""

import re
from dataclasses import replace
from fractions import Fraction
from math import nan
from typing import Any

from headwork.marking.printed import Malformed as Malformed
from headwork.marking.printed import plain
from headwork.marking.tolerance import Written, read_number
from headwork.numbers.parse import NumberError
from headwork.sheets.checks import LARGEST_SIDE

Texts = list[list[Any]]
Numbers = tuple[tuple[Written, ...], ...]

# An entry that was left blank, or typed into a box of its own where it cannot be read. NaN is near no number: it is
# never right.
NOTHING = frozenset({"", "?", "-", "–", "—", "_", "n/a", "..."})  # what people write where they have no number
MISSING = Written(Fraction(0), nan, None)

_LISTS = re.compile(r"\[\s*(?:\[[^\[\]]*\][\s,;]*)*\]|(?:\[[^\[\]]*\][\s,;]*)+")  # with brackets around, or without
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)


class Boxes(list[Any]):
    """Rows of texts that were typed box by box: what one box holds says nothing about the others."""


def is_blank(value: Any) -> bool:
    """Nothing, an empty text, or a table of such."""
    if isinstance(value, list | dict):
        return all(is_blank(entry) for entry in (value.values() if isinstance(value, dict) else value))
    return _empty(value)


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip().casefold() in NOTHING)


def numbers(value: Any, shape: tuple[int, int] | None = None) -> Numbers:
    """The numbers of an answer, as rows. Where commas may stand between numbers or inside them, the `shape` that is
    asked for decides."""
    rows = texts(value)
    if shape is not None and isinstance(value, str) and not _has(rows, shape):
        others = (_with_decimal_commas(value), _with_semicolons(value))
        rows = next((other for other in others if _has(other, shape)), rows)
    if len({len(row) for row in rows}) > 1:
        raise Malformed(f"is ragged: its rows have {', '.join(str(len(row)) for row in rows[:6])} entries")
    if not rows or not rows[0]:
        raise Malformed("holds no numbers")
    _refuse_thousands(rows)
    read = _number_or_missing if isinstance(value, Boxes) else _number
    found = tuple(
        tuple(MISSING if _empty(x) else read(x, i, j) for j, x in enumerate(row, 1)) for i, row in enumerate(rows, 1)
    )
    if all(number is MISSING for row in found for number in row):
        raise Malformed("holds no number that can be read")
    return found


def unpadded(answer: Numbers, asked: int) -> Numbers:
    """A program prints all numbers of a matrix alike: tensor([[0.8800, 0.1200]]). Zeros at the end that none of them
    needs are its own, and beyond the places `asked` for they claim nothing."""
    claims = [x for row in answer for x in row if x.places is not None]
    if len(claims) < 2 or max(x.places or 0 for x in claims) <= asked:
        return answer
    needed = max(asked, *(x.needed for x in claims))
    return tuple(
        tuple(replace(x, places=needed) if x.places is not None and x.places > needed else x for x in row)
        for row in answer
    )


def texts(value: Any) -> Texts:
    """Rows of texts from a list of lists, a list, a text or a single number."""
    if isinstance(value, str):
        return _from_text(plain(value))
    if not isinstance(value, list):
        return [[value]]
    while len(value) == 1 and _of_lists(value) and _of_lists(value[0]):  # a batch of one is its only item
        value = value[0]
    rows = value if _of_lists(value) else [value]
    if len(rows) > LARGEST_SIDE or any(len(row) > LARGEST_SIDE for row in rows):
        raise Malformed(f"has more than {LARGEST_SIDE} rows or columns")
    return rows


def _of_lists(value: list[Any]) -> bool:
    return bool(value) and all(isinstance(row, list) for row in value)


def _from_text(text: str) -> Texts:
    if not text.startswith("["):
        return [_entries(row) for row in re.split(r"[;\n]", text) if row.strip()]
    if not _LISTS.fullmatch(text):
        raise Malformed("has brackets that do not make a matrix; write [[1, 2], [3, 4]]")
    rows = re.findall(r"\[([^\[\]]*)\]", text)
    if len(rows) == 1 and re.search(r"[;\n]", rows[0]):  # MATLAB: [1 2; 3 4], or a line for each row
        return [_entries(row) for row in re.split(r"[;\n]", rows[0].replace("...\n", " ")) if row.strip()]
    return [_bracketed(row) for row in rows]


def _entries(row: str) -> list[str]:
    return re.split(r"\s*,\s*|\s+", row.strip().removesuffix(",").rstrip())


def _bracketed(row: str) -> list[str]:
    """Split by commas where there are some: [1 / 2, 3]. NumPy prints none."""
    split = row.split(",") if "," in row else row.split()
    return [entry.strip().strip("\"'") for entry in split if entry.strip()]


def _with_decimal_commas(text: str) -> Texts:
    """The same text, read with commas inside numbers: 0,88 0,12; 0,73 0,27."""
    inner = re.sub(r"\][\s,;]*\[", ";", plain(text)).strip("[] \n")
    return [re.split(r",?\s+", row.strip()) for row in re.split(r"[;\n]", inner) if row.strip()]


def _with_semicolons(text: str) -> Texts:
    """The same with semicolons between numbers and a line for each row: 0,88; 0,12."""
    return [re.split(r"\s*;\s*", row.strip(" ;")) for row in plain(text).splitlines() if row.strip()]


def _has(rows: Texts, shape: tuple[int, int]) -> bool:
    return len(rows) == shape[0] and all(len(row) == shape[1] for row in rows)


def _refuse_thousands(rows: Texts) -> None:
    """1,234 alone may be either; beside 0,5 it is not."""
    with_commas = [x.strip() for row in rows for x in row if isinstance(x, str) and "," in x]
    if with_commas and all(_THOUSANDS.fullmatch(x) for x in with_commas):
        plain = with_commas[0].replace(",", "")
        raise Malformed(
            f"holds '{with_commas[0]}', which may be {with_commas[0].replace(',', '.')} or {plain}; write one"
        )


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
