"""TOML to `Sheet`. Every mistake in a file ends here, as one message with the file, the key and the remedy."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwork.errors import HeadworkError, SheetError, did_you_mean
from headwork.sheets.batches import read_items
from headwork.sheets.sheet import Sheet
from headwork.sheets.shelf import built_in, text_of

LARGEST_FILE = 1_000_000  # bytes: a sheet is written for people
_TOP = {"title", "summary", "problem"}


def load(source: str | Path) -> Sheet:
    """A sheet from a built-in name or a path.

    >>> load("two-heads").title
    'Two heads'
    """
    return parse_sheet(sheet_text(source), str(source))


def sheet_text(source: str | Path) -> str:
    """A built-in sheet's text, or a file's."""
    return text_of(str(source)) if str(source) in built_in() else _read(Path(source))


def _read(path: Path) -> str:
    if path.is_dir():
        raise SheetError(f"{path} is a directory; give a .toml file in it")
    if not path.exists():
        meant = did_you_mean(str(path), built_in()) or f"; give a path or one of: {', '.join(built_in())}"
        raise SheetError(f"there is no sheet '{path}'{meant}")
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise SheetError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_FILE:
        raise SheetError(f"{path} has too many bytes; a sheet has at most {LARGEST_FILE:,}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SheetError(f"{path} is not text in UTF-8; a sheet is a TOML file") from None


def parse_sheet(text: str, source: str) -> Sheet:
    """A sheet from its text; `source` is what errors call it."""
    try:
        table = tomllib.loads(text, parse_float=str)  # decimals stay text: 0.1 is one tenth
    except tomllib.TOMLDecodeError as error:
        raise SheetError(f"{source} is not a TOML file: {error}") from None
    except (ValueError, RecursionError):
        raise SheetError(f"{source} holds a number or nesting too long to read; shorten it") from None
    if not table:
        raise SheetError(f"{source} is empty; a sheet needs at least a formula and one [[part]]")
    try:
        return read_sheet(table, source)
    except HeadworkError as error:
        raise SheetError(f"{source}: {error}") from None


def read_sheet(table: Mapping[str, Any], source: str) -> Sheet:
    """A sheet from the table that its text stands for."""
    if "problem" not in table:
        alone = {k: v for k, v in table.items() if k != "summary"}
        each = tuple(read_items(alone, "Sheet"))
        title = each[0].title if len(each) == 1 else str(table.get("title", "Sheet"))
        return Sheet(title, each, str(table.get("summary", "")), source)
    if unknown := set(table) - _TOP:
        raise HeadworkError(
            f"unknown key '{min(unknown)}' beside [[problem]]; with several problems put it under each of them"
        )
    problems = table["problem"]
    if not isinstance(problems, list) or not problems or not all(isinstance(p, dict) for p in problems):
        raise HeadworkError("key 'problem' must be written as [[problem]] tables")
    title = str(table.get("title", "Sheet"))
    read = []
    for number, problem in enumerate(problems, 1):
        try:
            read += read_items(problem, f"Problem {number}")
        except HeadworkError as error:
            raise HeadworkError(f"problem {number}: {error}") from None
    return Sheet(title, tuple(read), str(table.get("summary", "")), source)
