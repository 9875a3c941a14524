"""One student's file of answers: TOML, JSON or a filled-in notebook.

    student = "Ada"              # or the file's name
    [a]
    Q_1 = [["1", "2"], ["3", "4"]]
    [b]
    "scores_1[2,1]" = "7/2"

A file is data: it is read by a parser, its numbers keep their text, and nothing in it is ever run. What cannot be
read is reported for that student, and the others are marked.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwork.errors import HeadworkError
from headwork.marking.notebook import notebook_answers

LARGEST_FILE = 1_000_000  # bytes of one student's answers


@dataclass(frozen=True)
class Answers:
    """One student's: part → name → what was written. Parts are "a", or "2.a" on a sheet of several problems."""

    student: str
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unreadable: str = ""
    sheet: str = ""  # which one is answered, where what was handed in says so


def from_bytes(name: str, content: bytes) -> Answers:
    """One student's file; what cannot be read is said, not raised."""
    path = Path(name)
    try:
        return from_table(READERS[path.suffix.lower()](_text(content)), path.stem)
    except HeadworkError as error:
        return Answers(path.stem, unreadable=f"{path.name} {error}")


def from_table(table: Mapping[str, Any], student: str) -> Answers:
    """Answers from nested tables: {"a": {"Q": …}}, {"2": {"a": {…}}} or {"2.a": {…}}."""
    parts: dict[str, Mapping[str, Any]] = {}
    for key, value in table.items():
        if key == "student" and isinstance(value, str):
            student = value.strip()[:100] or student
        elif not isinstance(value, Mapping):
            raise HeadworkError(f"holds '{str(key)[:40]}' outside a part; put it under [a] or another part's label")
        elif str(key).isdecimal() and value and all(isinstance(v, Mapping) for v in value.values()):
            parts |= {f"{key}.{label}": part for label, part in value.items()}
        else:
            parts[str(key)] = value
    return Answers(student, parts)


def _text(content: bytes) -> str:
    """The file's text, unless it is too large to be one student's work, or not UTF-8."""
    if len(content) > LARGEST_FILE:
        raise HeadworkError(f"has too many bytes; answers have at most {LARGEST_FILE:,}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise HeadworkError("is not text in UTF-8; save it in that encoding") from None


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=str)
    except tomllib.TOMLDecodeError as error:
        raise HeadworkError(f"is not a TOML file: {str(error)[:160]}") from None
    except (ValueError, RecursionError):
        raise HeadworkError("holds a number or nesting too long to read; shorten it") from None


def _json(text: str) -> dict[str, Any]:
    try:
        table = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise HeadworkError(f"is not a JSON file: {str(error)[:160]}") from None
    except (ValueError, RecursionError):
        raise HeadworkError("holds nesting too deep to read") from None
    if not isinstance(table, dict):
        raise HeadworkError('must hold an object, such as {"a": {"Q": [["1", "2"]]}}')
    return table


READERS = {".toml": _toml, ".json": _json, ".ipynb": notebook_answers}
