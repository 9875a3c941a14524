"""An edit changes exactly what a page made anew would have changed."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from itertools import count
from random import Random
from typing import Any

import pytest

from headwork.mistakes.make import Plan, new_sheet
from headwork.sheets.load import load, parse_sheet
from headwork.sheets.shelf import built_in
from headwork.web.ask import answer
from headwork.web.page import Page
from headwork.web.tables import renumbered, sheet_of, table_of
from tests.render.test_pointing import MASKED

TEXTS = ["0", "-3", "1/3", "2.5", "sqrt(2)", "7", "1", "-0.125", "12"]
SHEETS = {
    **{name: load(name) for name in built_in()},
    "masked": parse_sheet(MASKED, "masked"),
    **{f"drawn {n}": new_sheet(Plan(tokens=2, d_model=6), seed=5, number=n) for n in range(4)},
}


def edits(table: dict[str, Any], generator: Random) -> dict[str, Any]:
    """Another number in one entry of what is given."""
    made = deepcopy(table)
    owners = [owner for problem in made["problem"] for owner in (problem, *problem["part"])]
    given = [rows for owner in owners for rows in owner["given"].values()]
    rows = generator.choice(given)
    row = generator.choice(rows)
    row[generator.randrange(len(row))] = generator.choice(TEXTS)
    return made


@pytest.mark.parametrize("name", SHEETS)
def test_an_edited_page_is_the_page_made_anew(name: str) -> None:
    generator = Random(name)
    table = table_of(SHEETS[name])
    page = Page(table)
    for _ in range(6):
        was, table = table, edits(table, generator)
        assert renumbered(page.sheet, table, was) == sheet_of(table)
        before = [piece.html for piece in page.pieces]
        sent = page.edited(table, sheet_of(table))
        anew = Page(table)
        assert [piece.html for piece in page.pieces] == [piece.html for piece in anew.pieces]
        assert page.html() == anew.html()
        assert patched(before, sent) == [piece.html for piece in anew.pieces]


# What an edit can change alone: an entry, a heat map, a note. The page finds them by the same three names.
PLACE = re.compile(r'(<(mtd|figure|p)(?: class="(?:heat|note)"|[^>]*id=[^>]*)>)(.*?)</\2>', re.DOTALL)


def patched(lines: list[str], sent: dict[str, Any]) -> list[str]:
    """The lines as a reader sees them who put in what was sent."""
    made = list(lines)
    for number, html in sent["blocks"].items():
        made[number] = html
    for number in {block for block, _, _ in sent["cells"]}:
        made[number] = put(made[number], {place: text for block, place, text in sent["cells"] if block == number})
    return made


def put(html: str, texts: dict[int, str]) -> str:
    places = count()
    return PLACE.sub(lambda found: f"{found[1]}{texts.get(next(places), found[3])}</{found[2]}>", html)


def test_what_is_sent_is_what_changed() -> None:
    """Every entry that is sent differs from what stood there, and makes the page that would be made anew."""
    before = table_of(load("two-heads"))
    after = deepcopy(before)
    after["problem"][1]["given"]["X"][0][0] = "1/2"
    old, new = Page(before), Page(after)
    reply = json.loads(answer(json.dumps({"do": "edit", "table": after, "was": before})))
    sent = {(block, place): text for block, place, text in reply["cells"]}
    assert reply["blocks"] == {}, "numbers alone changed, in matrices, maps and notes"
    for number, (was, now) in enumerate(zip(old.pieces, new.pieces, strict=True)):
        there, here = ([found[3] for found in PLACE.finditer(piece.html)] for piece in (was, now))
        assert PLACE.sub(r"\1", was.html) == PLACE.sub(r"\1", now.html)
        for place, (gone, came) in enumerate(zip(there, here, strict=True)):
            assert sent.pop((number, place), gone) == came
    assert sent == {}


def test_what_is_more_than_numbers_comes_as_a_whole() -> None:
    """Another number of weights is nearly 0 or 1, and each has a note."""
    before = table_of(load("two-heads"))
    after = deepcopy(before)
    after["problem"][1]["given"]["X"][0][0] = "5"
    reply = json.loads(answer(json.dumps({"do": "edit", "table": after, "was": before})))
    page = Page(after)
    assert reply["blocks"]
    assert all(page.pieces[int(number)].html == html for number, html in reply["blocks"].items())


def test_an_edit_keeps_nothing_of_an_error() -> None:
    """Nonsense is told cell by cell, and the next edit is worked as if it had not been."""
    before = table_of(load("two-heads"))
    wrong, after = deepcopy(before), deepcopy(before)
    wrong["problem"][1]["given"]["X"][0] = ["x", "1/0"]
    after["problem"][1]["given"]["X"][0][0] = "5"
    reply = json.loads(answer(json.dumps({"do": "edit", "table": wrong, "was": before})))
    places = [
        (cell["where"]["name"], cell["where"]["row"], cell["where"]["column"]) for cell in reply["error"]["cells"]
    ]
    assert places == [("X", 0, 0), ("X", 0, 1)]
    assert json.loads(answer(json.dumps({"do": "edit", "table": after, "was": before})))["cells"]
