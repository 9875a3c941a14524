"""What once hung, crashed or lied: every sheet under tests/attacks is worked, in every form of page, within 2 s."""

from __future__ import annotations

import json
import re
from pathlib import Path
from time import perf_counter

import pytest

import headwork
from headwork.render.json import working_json
from headwork.render.save import rendered

SHEETS = sorted((Path(__file__).parent / "attacks").glob("*.toml"))
SECONDS = 2.0


@pytest.mark.parametrize("path", SHEETS, ids=[path.stem for path in SHEETS])
def test_a_sheet_that_once_went_wrong(path: Path) -> None:
    """A line "# says: …" is on the page, blanks aside; "# refused: …" is in the message."""
    wanted = re.findall(r"^# (says|refused): (.*)$", path.read_text("utf-8"), re.MULTILINE)
    start = perf_counter()
    try:
        working = headwork.solve(path)
        page = " ".join(rendered(working, ".txt").split())
        assert json.loads(working_json(working))["schema"] == 1
        assert rendered(working, ".html")
        outcome = "says"
    except headwork.HeadworkError as error:
        page, outcome = str(error), "refused"
    assert perf_counter() - start < SECONDS
    assert {kind for kind, _ in wanted} == {outcome}, page
    for _, words in wanted:
        assert words in page
