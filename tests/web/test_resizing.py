"""A row or a column more: everything that shares the size grows with it, and shrinks back to what it was."""

from __future__ import annotations

from typing import Any

import pytest

from headwork.errors import HeadworkError
from headwork.sheets.load import load
from headwork.sheets.shelf import built_in
from headwork.web.page import Page
from headwork.web.resizing import resized
from headwork.web.tables import table_of


def grown(
    table: dict[str, Any], name: str, at: int, axis: int, *, add: bool = True, problem: int = 0
) -> dict[str, Any]:
    return resized(table, {"problem": problem, "part": None, "name": name, "row": at, "column": at}, axis, add)


@pytest.mark.parametrize("name", built_in())
def test_every_given_matrix_of_every_sheet_grows_and_shrinks_back(name: str) -> None:
    """But for what is a single row, and pairs of columns that are turned together."""
    table = table_of(load(name))
    for number, problem in enumerate(table["problem"]):
        for given in problem["given"]:
            for axis in (0, 1):
                if (name, axis) == ("rotary", 1) and given in ("Q", "K"):
                    continue
                larger = grown(table, given, 0, axis, problem=number)
                assert Page(larger).html()
                assert grown(larger, given, 1, axis, add=False, problem=number) == table, (given, axis)


def test_a_new_token_has_a_name_and_takes_it_away_again() -> None:
    table = table_of(load("encoder-block"))
    once = grown(table, "X", 0, 0)
    assert once["problem"][0]["tokens"] == ["the", "new", "cat"]
    twice = grown(once, "X", 2, 0)
    assert twice["problem"][0]["tokens"] == ["the", "new", "cat", "new 2"]
    assert "new 2" in Page(twice).html()
    assert grown(once, "X", 0, 0, add=False)["problem"][0]["tokens"] == ["new", "cat"]


def test_a_cache_grows_with_what_it_keeps() -> None:
    """Earlier tokens and new ones are all of the keys, wherever a row was added."""
    table = table_of(load("growing-cache"))
    for name, past, new in (("K_past", 3, 1), ("K_new", 2, 2), ("Q", 2, 2)):
        given = grown(table, name, 0, 0)["problem"][0]["given"]
        assert [len(given[one]) for one in ("K_past", "K_new", "Q", "V")] == [past, new, new, past + new]


def test_the_last_row_stays() -> None:
    table = table_of(load("growing-cache"))
    with pytest.raises(HeadworkError, match="tokens is 1 already"):
        grown(table, "V", 2, 0, add=False)
