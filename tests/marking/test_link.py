"""Hand-in links: what they carry is marked as any answers are, and whatever they carry, nothing hangs or runs."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from headwork.marking.answers import read_answers
from headwork.marking.mark import mark
from headwork.marking.one_file import from_link

ANSWERS = {"1.a": {"joined": [["1", "2", "5", "6"], ["3", "4", "7", "8"]]}}


def link(value: Any, address: str = "https://example.org/bench/") -> str:
    return f"{address}#answers={packed(json.dumps(value).encode())}"


def packed(content: bytes) -> str:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.urlsafe_b64encode(deflate.compress(content) + deflate.flush()).decode().rstrip("=")


def test_a_link_is_marked_as_the_same_answers_in_a_file() -> None:
    (read,) = read_answers(Path(link({"student": "Ada", "answers": ANSWERS})))
    assert read.student == "Ada"
    assert [part.score for part in mark("two-heads", read).parts] == [
        part.score for part in mark("two-heads", ANSWERS).parts
    ]


def test_a_mark_in_a_link_counts_for_nothing() -> None:
    claimed = {"student": "Eve", "score": 4, "marks": {"1.a": 1}, "answers": {"1.a": {"joined": [["9"] * 4] * 2}}}
    assert mark("two-heads", from_link(link(claimed))).score == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("#answers=", "cannot be read|cut short"),
        ("#answers=%%%", "cannot be read|cut short"),
        (link({"answers": ANSWERS})[:-9], "cut short|cannot be read"),
        (link([1]), "carries no answers"),
        (link({"answers": "all right"}), "carries no answers"),
        (f"#answers={packed(b'[' * 100_000)}", "cannot be read"),
        (f"#answers={packed(b' ' * 50_000_000)}", "unpacks to more than"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, says: str) -> None:
    assert any(word in from_link(text).unreadable for word in says.split("|"))
