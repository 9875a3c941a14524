"""Every mistake of the catalogue, planted in every built-in sheet that gives occasion for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwork.mistakes.catalogue import CATALOGUE
from headwork.sheets.load import load
from headwork.sheets.shelf import built_in
from headwork.web.ask import answer
from headwork.web.tables import table_of

ENDS = ("They part first in", "it makes no difference", "nobody gets through with it")


def ask(**request: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer(json.dumps(request)))
    return found


@pytest.mark.parametrize("name", built_in())
def test_every_mistake_opens(name: str) -> None:
    table = table_of(load(name))
    for number in range(len(table["problem"])):
        for mistake in ask(do="mistakes", table=table, problem=number)["mistakes"]:
            assert mistake["tag"] in CATALOGUE
            for way in range(len(mistake["ways"])):
                reply = ask(do="whatif", table=table, problem=number, tag=mistake["tag"], way=way)
                assert any(end in reply["html"] for end in ENDS), reply


def test_a_mistake_that_ends_in_a_division_by_0_says_so() -> None:
    reply = ask(do="whatif", table=table_of(load("two-blocks")), problem=0, tag="no-exponential", way=0)
    assert (
        "nobody gets through with it: step head: sums_2 holds a 0, and nothing but 0 can be divided by it"
        in reply["html"]
    )
