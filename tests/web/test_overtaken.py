"""Replies that come when something newer was asked: none is shown, nothing that was done is lost."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.web.conftest import until
from tests.web.test_following import SLOW, let_go
from tests.web.test_grids import Opened, cell, worked
from tests.web.test_modes import answer, entry, marks, practise
from tests.web.test_switches import paste, switch


def rows(page: Any, name: str) -> int:
    return int(page.locator(f'.problem[data-problem="1"] table[data-name="{name}"] tr').count())


def test_two_rows_in_a_row(opened: Opened) -> None:
    """The second is asked for before the first has come."""
    page = opened()
    cell(page, "X", 0, 0).click()
    page.evaluate(SLOW)
    page.get_by_role("button", name="add a row").click()
    page.get_by_role("button", name="add a row").click()
    let_go(page, 0)
    let_go(page, 1)
    until(lambda: rows(page, "X"), 4)


def test_two_switches_in_a_row(opened: Opened) -> None:
    page = opened()
    page.evaluate(SLOW)
    switch(page, "places", "4")
    page.locator('.problem[data-problem="1"] select[name="scale"]').select_option("none")
    let_go(page, 0)
    let_go(page, 1)
    until(page.locator('.problem[data-problem="1"] .block[data-step="scaled"]').count, 0)
    assert page.locator('.problem[data-problem="1"] [name="places"]').input_value() == "4"


def test_a_row_is_not_added_to_a_sheet_that_came_meanwhile(opened: Opened) -> None:
    page = opened()
    cell(page, "X", 0, 0).click()
    page.evaluate(SLOW)
    page.get_by_role("button", name="add a row").click()
    page.get_by_role("button", name="add a row").click()
    page.locator("#sheets").select_option("dot-product")
    let_go(page, 0)
    let_go(page, 1)
    until(page.locator("h1").inner_text, "Dot-product attention")


def test_two_places_of_a_mask_in_a_row(opened: Opened) -> None:
    page = opened()
    switch(page, "mask", "grid")
    until(page.locator("table.mask button").count, 4)
    page.evaluate(SLOW)
    page.locator("table.mask button").nth(1).click()
    page.locator("table.mask button").nth(2).click()
    let_go(page, 0)
    let_go(page, 1)
    until(lambda: worked(page, "masked", "0")[0][1], "−∞")
    until(lambda: worked(page, "masked", "0")[1][0], "−∞")
    page.keyboard.press("Control+z")
    let_go(page, 2)
    until(lambda: worked(page, "masked", "0")[1][0] != "−∞", True)
    assert worked(page, "masked", "0")[0][1] == "−∞"


def test_an_answer_that_the_page_cannot_follow_is_said_and_the_next_is_followed(opened: Opened) -> None:
    page = opened()
    page.evaluate(
        "() => { const ask = window.fetch;"
        " window.fetch = async () => { window.fetch = ask; return new Response('{\"blocks\": {}}'); }; }"
    )
    cell(page, "X", 0, 0).fill("5")
    until(lambda: "could not follow" in page.locator("#status").inner_text(), True)
    cell(page, "X", 0, 0).fill("6")
    until(lambda: worked(page, "Q", "0")[0][0], "6")


def test_exact_is_taken_back_where_it_cannot_be_had(opened: Opened) -> None:
    page = opened()
    page.evaluate('() => { window.fetch = async () => new Response(\'{"error": {"message": "stopped"}}\'); }')
    page.locator("#exact").click()
    until(page.locator("#exact").is_checked, False)


def test_arithmetic_of_numbers_that_have_changed_is_not_shown(opened: Opened) -> None:
    """Both are about the same pinned entry."""
    page = opened()
    entry(page, "scores", "0", 0, 0).click()
    until(lambda: "Pinned" in page.locator("#panel").inner_text(), True)
    page.evaluate(SLOW)
    for number, text in ((0, "5"), (2, "7")):
        cell(page, "X", 0, 0).fill(text)
        let_go(page, number)
        until(partial(page.evaluate, "window.held.length"), number + 2)
    let_go(page, 3)
    until(lambda: said(page), "7·2+2·7")
    let_go(page, 1)
    page.wait_for_timeout(300)
    assert said(page) == "7·2+2·7"


def said(page: Any) -> str:
    text: str = page.locator("#panel").inner_text().replace("\n", "").replace(" ", "")
    return text.split("=")[1] if "=" in text else text


def test_practice_that_is_left_before_it_has_come_does_not_come(opened: Opened) -> None:
    """And what was answered before stays kept."""
    page = opened()
    practise(page)
    answer(page, "Q_1", ["1", "2"])
    until(lambda: marks(page, "Q_1")[:2], ["right", "right"])
    page.get_by_role("button", name="Work", exact=True).click()
    until(lambda: len(worked(page, "Q", "0")), 2)
    page.evaluate(SLOW)
    page.get_by_role("button", name="Practice").click()
    page.get_by_role("button", name="Work", exact=True).click()
    let_go(page, 1)
    until(page.locator("table[data-practice]").count, 0)
    let_go(page, 0)
    page.wait_for_timeout(300)
    assert page.locator("table[data-practice], .practice-bar").count() == 0
    page.get_by_role("button", name="Practice").click()
    let_go(page, 2)
    let_go(page, 3)
    until(lambda: marks(page, "Q_1")[:2], ["right", "right"])


def test_hints_come_in_their_order(opened: Opened) -> None:
    page = opened()
    practise(page)
    page.locator('table[data-practice][data-name="Q_1"] input').nth(1).click()
    page.evaluate(SLOW)
    page.get_by_role("button", name="Hint").click()
    page.get_by_role("button", name="Hint").click()
    let_go(page, 1)
    until(lambda: page.locator(".hint b").inner_text(), "The row and the column (hint 2 of 3)")
    shown = page.locator(".hint").inner_html()
    let_go(page, 0)
    page.wait_for_timeout(300)
    assert page.locator(".hint").inner_html() == shown


def test_a_new_sheet_of_this_kind_does_not_come_over_another(opened: Opened) -> None:
    page = opened()
    practise(page)
    page.evaluate(SLOW)
    page.get_by_role("button", name="New sheet of this kind").click()
    page.locator("#sheets").select_option("thinking-machine")
    let_go(page, 1)
    let_go(page, 2)
    until(lambda: page.locator("h1").inner_text() != "Two heads", True)
    let_go(page, 0)
    page.wait_for_timeout(300)
    assert page.locator("h1").inner_text() != "Two heads"


def test_the_mistake_that_was_chosen_last_is_shown(opened: Opened) -> None:
    page = opened()
    page.get_by_role("button", name="What if").click()
    page.wait_for_selector('select[name="tag"] option:nth-child(2)', state="attached")
    page.evaluate(SLOW)
    page.locator('select[name="tag"]').select_option("forgot-scale")
    page.locator('select[name="tag"]').select_option("forgot-output-projection")
    let_go(page, 1)
    shown = page.locator(".shown")
    until(lambda: (shown.text_content() or "").partition(":")[0], "forgot-output-projection")
    let_go(page, 0)
    page.wait_for_timeout(300)
    assert (shown.text_content() or "").startswith("forgot-output-projection")


def test_what_if_keeps_its_mistake_when_the_page_comes_anew_and_goes_when_it_is_left(opened: Opened) -> None:
    page = opened()
    page.get_by_role("button", name="What if").click()
    page.locator('select[name="tag"]').select_option("forgot-scale")
    until(lambda: "0.04677" in page.locator(".shown").inner_text(), True)
    page.locator("#exact").check()
    until(lambda: page.locator('[data-step="scaled"] msqrt').count() > 0, True)
    until(lambda: page.locator('select[name="tag"]').input_value(), "forgot-scale")
    until(lambda: "forgot-scale" in (page.locator(".shown").text_content() or ""), True)
    page.get_by_role("button", name="Work", exact=True).click()
    page.evaluate(SLOW)
    page.get_by_role("button", name="What if").click()
    page.get_by_role("button", name="Work", exact=True).click()
    let_go(page, 0)
    page.wait_for_timeout(300)
    assert page.locator("#side").is_hidden()


def test_what_is_pasted_is_laid_out_on_the_page_that_has_come_meanwhile(opened: Opened) -> None:
    page = opened()
    cell(page, "X", 0, 0).click()
    page.evaluate(SLOW)
    paste(page, "5 6\n7 8")
    page.locator("#exact").check()
    let_go(page, 1)
    until(lambda: page.locator('[data-step="scaled"] msqrt').count() > 0, True)
    let_go(page, 0)
    let_go(page, 2)
    until(lambda: worked(page, "Q", "0"), [["5", "6"], ["7", "8"]])
