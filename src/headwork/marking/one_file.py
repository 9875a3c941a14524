"""One student's answers: a file of TOML or JSON, a filled-in notebook, or a link of the bench.

    student = "Ada"              # or the file's name
    [a]
    Q_1 = [["1", "2"], ["3", "4"]]
    [b]
    "scores_1[2,1]" = "7/2"

A file is data: it is read by a parser, its numbers keep their text, and nothing in it is ever run. What cannot be
read is reported for that student, and the others are marked.

A cell of a notebook answers a part when its first line is a comment such as `# part a` (or its metadata says
{"headwork": {"part": "a"}}). Below stand answers: `Q_1 = [[1, 2], [3, 4]]`, over as many lines as it takes. A link has
the answers, deflated, in what stands after `#answers=`. Never a mark.
"""

import json
import re
import tomllib
import zlib
from base64 import urlsafe_b64decode
from binascii import Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwork.errors import HeadworkError

LARGEST_FILE = 1_000_000  # bytes of one student's answers
MARK = "#answers="  # of a link
_PART = re.compile(r"#\s*part\s+(\S{1,20})\s*$", re.IGNORECASE)
_ANSWER = re.compile(r"^([^\W\d][\w,]*(?:\[[\d\s,]+\])?)[ \t]*=(?!=)", re.MULTILINE)


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


def _notebook(text: str) -> dict[str, Any]:
    """Part → name → text: the code cells are read, never run."""
    try:
        cells = json.loads(text)["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        sources = [(cell, "".join(cell["source"])) for cell in code]  # a text, or a list of lines
    except RecursionError:
        raise HeadworkError("holds nesting too deep to read") from None
    except (ValueError, KeyError, TypeError):
        raise HeadworkError("is not a notebook that can be read; save it again as .ipynb") from None
    parts: dict[str, Any] = {}
    for cell, source in sources:
        part = _part(cell, source)
        if part is not None:
            parts.setdefault(part, {}).update(_assignments(source))
    if not parts:
        raise HeadworkError("has no cell that answers a part; start each with a line such as '# part a'")
    return parts


def _part(cell: Any, source: str) -> str | None:
    metadata = cell.get("metadata")
    noted = metadata.get("headwork") if isinstance(metadata, dict) else None
    if isinstance(noted, dict) and isinstance(noted.get("part"), str):
        return str(noted["part"])
    match = _PART.match(source.strip().partition("\n")[0])
    return match[1] if match else None


def _assignments(source: str) -> dict[str, str]:
    """name = everything up to the next name; comments dropped."""
    plain = re.sub(r"#.*", "", source)
    starts = list(_ANSWER.finditer(plain))
    ends = [*(match.start() for match in starts), len(plain)][1:]
    texts = {
        m[1].replace(" ", ""): _unquoted(plain[m.end() : end].strip()) for m, end in zip(starts, ends, strict=True)
    }
    return {name: text for name, text in texts.items() if text != "..."}  # which stands where nothing does yet


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


READERS = {".toml": _toml, ".json": _json, ".ipynb": _notebook}


def from_link(text: str) -> Answers:
    """The answers that a link carries; what cannot be read is said, not raised."""
    packed = text.partition(MARK)[2].partition("&")[0]
    try:
        found = _unpacked(packed)
        if not isinstance(found, dict) or not isinstance(found.get("answers"), dict):
            raise HeadworkError("carries no answers; copy the one that Hand in makes")
        return from_table({"student": str(found.get("student", "")), **found["answers"]}, "student")
    except HeadworkError as error:
        return Answers(f"link {text[-12:]}", unreadable=f"the link {error}")


def _unpacked(packed: str) -> Any:
    try:
        content = urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        reader = zlib.decompressobj(-15)
        found = reader.decompress(content, LARGEST_FILE)
        if reader.unconsumed_tail:
            raise HeadworkError(f"unpacks to more than {LARGEST_FILE:,} bytes; answers have fewer")
        if not reader.eof:
            raise HeadworkError("is cut short; copy all of it, between quotes")
        return json.loads(found.decode("utf-8"), parse_float=str, parse_int=str, parse_constant=str)
    except (Error, zlib.error, ValueError, RecursionError):
        raise HeadworkError("cannot be read; copy all of it, between quotes") from None
