"""A hand-in link of the bench: the answers, deflated, in what stands after `#answers=`. Never a mark."""

import json
import zlib
from base64 import urlsafe_b64decode
from binascii import Error
from typing import Any

from headwork.errors import HeadworkError
from headwork.marking.one_file import LARGEST_FILE, Answers, from_table

MARK = "#answers="


def is_link(text: str) -> bool:
    return MARK in text


def from_link(text: str) -> Answers:
    """The answers that a link carries; what cannot be read is said, not raised."""
    packed = text.partition(MARK)[2].partition("&")[0]
    try:
        return _answers(_unpacked(packed))
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


def _answers(found: Any) -> Answers:
    if not isinstance(found, dict) or not isinstance(found.get("answers"), dict):
        raise HeadworkError("carries no answers; copy the one that Hand in makes")
    return from_table({"student": str(found.get("student", "")), **found["answers"]}, "student")
