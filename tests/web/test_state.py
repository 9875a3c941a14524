"""The whole state in the link; what is taken along; links and pastes by people who mean no good."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from headwork.sheets.load import load, parse_sheet
from headwork.web.answering import PATIENCE
from headwork.web.serve import Bench
from headwork.web.tables import table_of
from tests.web.conftest import until
from tests.web.test_grids import Opened, cell, worked
from tests.web.test_switches import paste

SCRIPT = '<img src=x onerror="document.title=\'run\'"><script>document.title="run"</script>'


def packed(value: Any) -> str:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    content = deflate.compress(json.dumps(value).encode()) + deflate.flush()
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def test_the_link_carries_everything(opened: Opened) -> None:
    page = opened()
    page.locator("#exact").check()
    cell(page, "X", 0, 0).fill("7/2")
    until(lambda: worked(page, "Q", "0")[0][0], "3.5")
    until(lambda: "#state=" in page.evaluate("location.href"), True)
    page.wait_for_timeout(500)
    link = page.evaluate("location.href")
    other = opened(link[link.index("#") :])
    assert cell(other, "X", 0, 0).input_value() == "7/2"
    assert other.locator("#exact").is_checked()
    assert len(link) < 2000


def test_a_built_in_sheet_by_name(opened: Opened) -> None:
    page = opened("#sheet=thinking-machine")
    assert page.locator("h1").inner_text() == load("thinking-machine").title
    page.evaluate("location.hash = '#sheet=dot-product'")
    until(page.locator("h1").inner_text, load("dot-product").title)


@pytest.mark.parametrize(
    ("form", "ending"), [("toml", ".toml"), ("markdown", ".md"), ("latex", ".tex"), ("svg", ".svg")]
)
def test_what_is_taken_along(opened: Opened, tmp_path: Path, form: str, ending: str) -> None:
    page = opened()
    cell(page, "X", 0, 0).fill("17")
    until(lambda: worked(page, "Q", "0")[0][0], "17")
    page.get_by_role("button", name="Out …").click()
    page.locator('dialog select[name="form"]').select_option(form)
    with page.expect_download() as found:
        page.get_by_role("button", name="Take it").click()
    path = tmp_path / found.value.suggested_filename
    found.value.save_as(path)
    assert path.suffix == ending
    text = path.read_text("utf-8")
    if form == "toml":
        assert parse_sheet(text, "out").problems[1].given["X", None][0][0] == 17
    else:
        assert ("<svg" if form == "svg" else "17") in text


def test_a_sharp_picture(opened: Opened, tmp_path: Path) -> None:
    page = opened()
    page.get_by_role("button", name="Out …").click()
    page.locator('dialog select[name="form"]').select_option("png")
    with page.expect_download() as found:
        page.get_by_role("button", name="Take it").click()
    found.value.save_as(tmp_path / "figure.png")
    content = (tmp_path / "figure.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20], "big") > 900  # pixels across
    assert len(content) > 10_000


@pytest.mark.parametrize(
    "hash",
    [
        "#sheet=../../etc/passwd",
        f"#sheet={SCRIPT}",
        "#state=!!!",
        "#state=" + "A" * 300_000,
        "#state=" + packed({"table": "nothing"}),
        "#state=" + packed({"table": {"title": SCRIPT, "problem": [{"title": SCRIPT, "formula": SCRIPT, "part": []}]}}),
        "#state=" + packed({"table": {"problem": [{"given": {"X": 5}, "part": [{}]}]}}),
        "#state=" + packed("x" * 10_000_000),
        "#state=" + packed({"table": json.loads("[" * 900 + "]" * 900)}),
        "#answers=" + packed({"answers": {"1.a": SCRIPT}, "table": 3}),
    ],
)
def test_a_hostile_link_says_so_and_the_page_goes_on(opened: Opened, hash: str) -> None:
    page = opened(hash)
    until(lambda: page.locator("#status").is_visible(), True)
    assert page.title() == "headwork: the bench"
    cell(page, "X", 0, 0).fill("5")
    until(lambda: worked(page, "Q", "0")[0][0], "5")


def test_a_sheet_of_somebody_elses_shows_its_text_and_runs_none_of_it(opened: Opened) -> None:
    table = table_of(load("two-heads"))
    table["title"] = table["summary"] = SCRIPT
    for problem in table["problem"]:
        problem["title"] = problem["text"] = SCRIPT
        for part in problem["part"]:
            part["text"] = part["label"] = part["answer"] = SCRIPT
            break
    page = opened("#state=" + packed({"table": table}))
    assert page.locator("h1").inner_text() == SCRIPT
    for mode in ("Steps", "What if", "Practice", "Work"):
        page.get_by_role("button", name=mode).click()
        page.wait_for_timeout(250)
    assert page.locator("#view img, #view script:not([type]), #side img").count() == 0
    assert page.title() == "headwork: the bench"


@pytest.mark.parametrize("text", ["<script>alert(1)</script> 1", "[" * 5000, "9 " * 9000, "x" * 10_000_000, "1 2\n3"])
def test_a_hostile_paste_is_refused_where_it_stands(opened: Opened, text: str) -> None:
    page = opened()
    cell(page, "X", 0, 0).click()
    paste(page, text)
    until(lambda: page.locator("#status").is_visible(), True)
    assert page.locator("#status").inner_text()
    assert worked(page, "Q", "0") == [["1", "2"], ["3", "4"]]
    page.keyboard.press("Control+z")
    cell(page, "X", 0, 0).fill("6")
    until(lambda: worked(page, "Q", "0")[0][0], "6")


def test_arithmetic_that_explodes_is_stopped_and_the_page_goes_on(opened: Opened, served: Bench) -> None:
    """Forty-four tokens of roots: closed forms of a size that nobody waits for."""
    page = opened()
    served.answering.patience = PATIENCE
    rows = [[f"sqrt({2 + i * 44 + j})/{3 + i + j}" for j in range(44)] for i in range(44)]
    given = dict.fromkeys(("Q", "K", "V"), rows)
    part = {"label": "a", "kind": "value", "text": "", "find": ["head_output"], "given": {}}
    problem = {"title": "", "formula": "scaled_dot_product", "mask": "none", "given": given, "part": [part]}
    page.evaluate(
        "hash => { location.hash = hash; }", "#state=" + packed({"table": {"title": "X", "problem": [problem]}})
    )
    until(lambda: "was stopped" in page.locator("#status").inner_text(), True, seconds=20)
    cell(page, "X", 0, 0).fill("5")
    until(lambda: worked(page, "Q", "0")[0][0], "5")
