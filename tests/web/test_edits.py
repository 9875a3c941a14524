"""An edit changes exactly what a page made anew would have changed."""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from headwork.mistakes.make import Plan, new_sheet
from headwork.sheets.load import load, parse_sheet
from headwork.sheets.shelf import built_in
from headwork.web.ask import answer
from headwork.web.page import Page
from headwork.web.tables import sheet_of, table_of
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
    given = [rows for problem in made["problem"] for rows in problem["given"].values()]
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
        table = edits(table, generator)
        page.edited(table, sheet_of(table))
        anew = Page(table)
        assert [piece.html for piece in page.pieces] == [piece.html for piece in anew.pieces]
        assert page.html() == anew.html()


def test_what_is_sent_is_what_changed() -> None:
    """Every entry that is sent differs from what stood there; what is not sent does not."""
    before = table_of(load("two-heads"))
    after = deepcopy(before)
    after["problem"][1]["given"]["X"][0][0] = "5"
    old, new = Page(before), Page(after)
    reply = json.loads(answer(json.dumps({"do": "edit", "table": after, "was": before})))
    sent = {(block, place): text for block, place, text in reply["cells"]}
    for number, (was, now) in enumerate(zip(old.pieces, new.pieces, strict=True)):
        if str(number) in reply["blocks"]:
            assert reply["blocks"][str(number)] == now.html != was.html
            continue
        assert was.frame == now.frame
        for place, (there, here) in enumerate(zip(was.cells, now.cells, strict=True)):
            assert sent.get((number, place), there) == here
            assert ((number, place) in sent) == (there != here)


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
