"""Pointing, the lecturer's steps, what if, and practice, as a person would use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from headwork.cli import app
from tests.web.conftest import until
from tests.web.test_grids import Opened, cell, worked


def entry(page: Any, role: str, head: str, row: int, column: int) -> Any:
    block = f'.problem[data-problem="1"] .block[data-step="{role}"][data-head="{head}"]'
    return page.locator(f'{block} mtd.pointable[data-row="{row}"][data-column="{column}"]')


def lit(page: Any, kind: str) -> set[tuple[str, ...]]:
    found = page.locator(f".{kind}").evaluate_all(
        "all => all.map(one => { const { role, head } = one.closest('[data-role]').dataset;"
        " return [role, head, one.dataset.row, one.dataset.column]; })"
    )
    return {tuple(spot) for spot in found}


def test_an_entry_shows_where_it_came_from(opened: Opened) -> None:
    """The scores' first entry is made of a row of Q and a row of K, and those of X and the projections."""
    page = opened()
    entry(page, "scores", "0", 0, 0).hover()
    panel = page.locator("#panel")
    until(lambda: panel.inner_text().replace(" ", "").replace("\n", ""), "scores1[1,1]=1·2+2·1=2+2=4")
    made_of = {(role, "0", *place) for role, place in (("Q", "00"), ("Q", "01"))}
    made_of |= {("K_transposed", "0", "0", "0"), ("K_transposed", "0", "1", "0")}
    assert lit(page, "lit") == made_of
    assert {("X", "", "0", "0"), ("W_Q", "0", "1", "1"), ("W_K", "0", "0", "0"), ("K", "0", "0", "1")} <= lit(
        page, "behind"
    )
    assert not {spot for spot in lit(page, "behind") if spot[0] in ("W_V", "W_O") or spot[1] == "1"}
    assert "behind" in cell(page, "X", 0, 0).get_attribute("class")


def test_pointing_by_keyboard_and_pinned_while_numbers_change(opened: Opened) -> None:
    page = opened()
    entry(page, "scores", "0", 0, 0).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    until(lambda: "scores1[2,2]" in page.locator("#panel").inner_text().replace("\n", "").replace(" ", ""), True)
    page.keyboard.press("Enter")
    until(lambda: "Pinned" in page.locator("#panel").inner_text(), True)
    cell(page, "X", 1, 1).fill("5")
    until(lambda: page.locator("#panel").inner_text().replace("\n", "").replace(" ", "").split("Pinned")[0][-3:], "=30")
    page.keyboard.press("Escape")
    assert page.locator("#panel").is_hidden()


def test_the_figure_and_the_equations_are_one_thing(opened: Opened) -> None:
    """A box lights up its step and leads to it; a step lights up its box."""
    page = opened()
    box = page.locator('.problem[data-problem="1"] figure [data-role="weights"][data-head="1"]')
    box.hover()
    step = page.locator('.problem[data-problem="1"] .block[data-step="weights"][data-head="1"]')
    until(lambda: "together" in step.get_attribute("class"), True)
    assert page.locator('.block.together:not([data-step="weights"])').count() == 0
    box.click()
    until(lambda: page.evaluate("document.activeElement.closest('.block')?.dataset.step"), "weights")
    assert page.evaluate("document.activeElement.closest('.block').dataset.head") == "1"
    entry(page, "scaled", "0", 0, 0).hover()
    lit_box = page.locator('.problem[data-problem="1"] figure [data-role="scaled"][data-head="0"]')
    until(lambda: "together" in lit_box.get_attribute("class"), True)
    box.focus()
    page.keyboard.press("Enter")
    until(lambda: page.evaluate("document.activeElement.closest('.block')?.dataset.step"), "weights")


def test_steps_one_by_one_with_the_result_left_open(opened: Opened) -> None:
    page = opened("#sheet=thinking-machine")
    page.get_by_role("button", name="Steps").click()
    said = page.locator(".steps-bar output")
    until(said.inner_text, "1 of 20")
    assert page.locator(".block:visible").count() == 0
    page.locator("h1").click()
    page.keyboard.press("ArrowRight")
    until(said.inner_text, "2 of 20: what comes out?")
    hidden = "one => getComputedStyle(one).visibility"
    result = page.locator(".block.now mtable[data-own] mtd > *").first
    assert result.evaluate(hidden) == "hidden"
    page.keyboard.press("ArrowRight")
    until(said.inner_text, "2 of 20")
    assert result.evaluate(hidden) == "visible"
    page.keyboard.press("ArrowLeft")
    until(said.inner_text, "1 of 20")
    page.get_by_role("button", name="full screen").click()
    page.wait_for_selector("body.full")
    page.get_by_label("leave results open").uncheck()
    page.locator("h1").click()
    page.keyboard.press("ArrowRight")
    until(said.inner_text, "2 of 20")
    page.keyboard.press("f")
    page.wait_for_selector("body:not(.full)")
    page.get_by_role("button", name="Work").click()
    until(page.locator(".later").count, 0)


def test_what_if(opened: Opened) -> None:
    """The first step where they part, both sides, how far they end apart; and it follows an edit."""
    page = opened()
    page.get_by_role("button", name="What if").click()
    page.locator('select[name="tag"]').select_option("forgot-output-projection")
    shown = page.locator(".shown")
    until(lambda: "They part first in M. In the end M is 2×4" in (shown.text_content() or ""), True)
    page.locator('select[name="tag"]').select_option("forgot-scale")
    until(lambda: "0.04677" in shown.inner_text(), True)
    page.locator('select[name="way"]').select_option("1")
    until(page.locator(".side.mistaken").count, 5)  # scaled, weights and head 1, joined, M
    assert page.locator('.side.mistaken [data-role="scaled"] .differs').count() == 4
    cell(page, "X", 0, 0).fill("0")
    cell(page, "X", 0, 1).fill("0")
    until(page.locator('.side.mistaken [data-role="scaled"] .differs').count, 1)


def answer(page: Any, name: str, texts: list[str]) -> None:
    inputs = page.locator(f'table[data-practice][data-name="{name}"] input')
    for i, text in enumerate(texts):
        inputs.nth(i).fill(text)
    page.keyboard.press("Tab")


def marks(page: Any, name: str) -> list[str]:
    found = page.locator(f'table[data-practice][data-name="{name}"] input').evaluate_all(
        "all => all.map(one => one.dataset.mark)"
    )
    return [str(mark) for mark in found]


def verdict(page: Any, name: str) -> str:
    grid = page.locator(".answer-grid", has=page.locator(f'table[data-name="{name}"]'))
    return str(grid.locator(".verdict").inner_text())


def practise(page: Any) -> None:
    page.get_by_role("button", name="Practice").click()
    page.wait_for_selector(".score:not(:empty)")


def test_practice_marks_every_entry_and_names_the_mistake(opened: Opened) -> None:
    page = opened()
    practise(page)
    answer(page, "Q_1", ["1", "2", "5", "four"])
    until(lambda: marks(page, "Q_1"), ["right", "right", "wrong", "nonsense"])
    assert "'four' is not a number" in verdict(page, "Q_1")
    answer(page, "joined", list("12345678"))
    until(lambda: "merged-untransposed" in verdict(page, "joined"), True)
    answer(page, "joined", list("12563478"))
    until(lambda: verdict(page, "joined"), "right")
    assert page.locator(".score").inner_text() == "10 of 44 entries"


def test_hints_in_steps(opened: Opened) -> None:
    page = opened()
    practise(page)
    page.locator('table[data-practice][data-name="Q_1"] input').nth(1).click()
    for level, says in enumerate(["The formula", "The row and the column", "The arithmetic"], 1):
        page.get_by_role("button", name="Hint").click()
        until(lambda: page.locator(".hint b").inner_text(), f"{says} (hint {level} of 3)")
    assert page.locator(".hint").inner_text().replace("\n", "").replace(" ", "").endswith("=2")


def test_blanks_fade_and_every_step_can_be_practised(opened: Opened) -> None:
    page = opened()
    practise(page)
    assert page.locator('table[data-practice="open"]').count() == 10
    page.locator("#every").check()
    until(page.locator("table[data-practice]").count, 17)
    page.locator("#worked").fill("4")
    page.locator("#worked").dispatch_event("change")
    until(page.locator('table[data-practice="worked"]').count, 4)
    joined = page.locator('table[data-practice="worked"][data-name="joined"] input')
    assert [joined.nth(i).input_value() for i in range(8)] == list("12563478")


def test_progress_survives_a_reload_and_can_be_forgotten(opened: Opened) -> None:
    page = opened()
    practise(page)
    answer(page, "Q_1", ["1", "2"])
    until(lambda: marks(page, "Q_1")[:2], ["right", "right"])
    assert "kept in this browser" in page.locator(".practice-bar").inner_text()
    page.reload()
    page.wait_for_selector("body[data-ready]")
    practise(page)
    until(lambda: marks(page, "Q_1")[:2], ["right", "right"])
    page.get_by_role("button", name="Forget my answers").click()
    until(lambda: marks(page, "Q_1")[:2], ["blank", "blank"])


def test_a_new_sheet_of_the_same_kind(opened: Opened) -> None:
    page = opened()
    practise(page)
    X = page.locator('.problem[data-problem="1"] table[data-name="X"] input')
    before = [X.nth(i).input_value() for i in range(4)]
    page.get_by_role("button", name="New sheet of this kind").click()
    until(lambda: [X.nth(i).input_value() for i in range(4)] != before, True)
    assert page.locator("table[data-practice]").count() == 10
    page.get_by_role("button", name="Work").click()
    until(lambda: len(worked(page, "Q", "0")), 2)


def test_what_is_handed_in_is_marked_by_the_command_line(opened: Opened, tmp_path: Path) -> None:
    """The link carries the answers; the mark is made again from them."""
    page = opened()
    practise(page)
    answer(page, "joined", list("12563479"))
    page.get_by_role("button", name="Hand in").click()
    page.locator('dialog input[name="student"]').fill("Ada <b>")
    page.get_by_role("button", name="Make it").click()
    link = page.locator("dialog textarea").input_value()
    assert "#answers=" in link
    done = CliRunner().invoke(app, ["mark", "two-heads", link, "--format", "json"])
    assert done.exit_code == 0, done.output
    (marked,) = (
        json.loads(done.output)["students"] if "students" in json.loads(done.output) else json.loads(done.output)
    )
    assert marked["student"] == "Ada <b>"
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Hand in").click()
    page.locator('dialog select[name="how"]').select_option("file")
    with page.expect_download() as found:
        page.get_by_role("button", name="Make it").click()
    found.value.save_as(tmp_path / "answers.json")
    assert json.loads((tmp_path / "answers.json").read_text())["1.a"]["joined"][1] == ["3", "4", "7", "9"]
    other = opened(link[link.index("#") :])
    until(lambda: marks(other, "joined")[-2:], ["right", "wrong"])
