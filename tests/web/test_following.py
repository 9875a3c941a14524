"""The page follows the numbers: in the right order, and those who hear it are told once."""

from __future__ import annotations

from typing import Any

from tests.web.conftest import until
from tests.web.test_grids import Opened, cell, worked
from tests.web.test_modes import entry

# Every reply waits until it is let go: a machine that is as slow as this test wants it.
SLOW = """() => {
  const ask = window.fetch;
  window.held = [];
  window.fetch = (...request) => new Promise((resolve) => {
    window.held.push(async () => resolve(await ask(...request)));
  });
}"""
# What a screen reader would say: what changes in a place that is live.
HEARD = """() => {
  window.heard = [];
  new MutationObserver((all) => {
    const places = all.map(({ target }) => (target.closest ? target : target.parentElement).closest("[aria-live]"));
    for (const one of new Set(places)) {
      if (one && one.ariaLive !== "off" && !one.hidden) window.heard.push([one.id, one.textContent]);
    }
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def let_go(page: Any, number: int) -> None:
    until(lambda: page.evaluate("window.held.length") > number, True)
    page.evaluate(f"window.held[{number}]()")


def drag(page: Any, input: Any, far: int) -> None:
    """Pulled in a hundred small moves, and let go."""
    box = input.bounding_box()
    x, y = box["x"] + 8, box["y"] + 8
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + far, y, steps=100)
    page.mouse.up()


def test_an_edit_that_is_answered_after_another_sheet_has_come_is_dropped(opened: Opened) -> None:
    """The answer is about a page that is no longer there."""
    page = opened()
    page.evaluate(SLOW)
    cell(page, "X", 0, 0).fill("5")
    page.locator("#sheets").select_option("dot-product")
    let_go(page, 1)
    until(lambda: page.locator("h1").inner_text() != "Two heads", True)
    let_go(page, 0)
    page.wait_for_timeout(300)
    cell(page, "Q", 0, 0, problem=0).fill("9")
    let_go(page, 2)
    page.wait_for_selector("mtd.changed", state="attached")
    assert page.locator("h1").inner_text() == "Dot-product attention"
    assert cell(page, "Q", 0, 0, problem=0).input_value() == "9"


def test_an_edit_made_while_another_sheet_is_on_its_way_is_dropped(opened: Opened) -> None:
    """It was asked for later, and is still about the page before."""
    page = opened()
    page.evaluate(SLOW)
    page.locator("#sheets").select_option("thinking-machine")
    cell(page, "X", 0, 0).fill("5")
    let_go(page, 0)
    until(lambda: page.locator("h1").inner_text() != "Two heads", True)
    let_go(page, 1)
    page.wait_for_timeout(300)
    cell(page, "X", 0, 0, problem=0).fill("9")
    let_go(page, 2)
    page.wait_for_selector("mtd.changed", state="attached")


def test_an_edit_is_worked_when_the_sheet_that_was_asked_for_meanwhile_does_not_come(opened: Opened) -> None:
    page = opened()
    page.evaluate(SLOW)
    cell(page, "X", 0, 0).fill("5")
    page.evaluate("location.hash = '#sheet=no-such-sheet'")
    let_go(page, 1)
    until(lambda: "no sheet" in page.locator("#status").inner_text(), True)
    let_go(page, 0)
    let_go(page, 2)
    until(lambda: worked(page, "Q", "0")[0], ["5", "2"])


def test_an_edit_made_while_its_own_page_comes_anew_is_kept(opened: Opened) -> None:
    """Exact is ticked, and a number is typed before the exact page is there."""
    page = opened()
    page.evaluate(SLOW)
    page.locator("#exact").check()
    cell(page, "X", 0, 0).click()
    page.keyboard.type("7")
    let_go(page, 1)  # the edit, which the whole page overtakes
    let_go(page, 0)
    until(lambda: page.evaluate("window.held.length"), 3)
    page.keyboard.type("/2")  # goes on where the caret was
    for number in (2, 3):
        let_go(page, number)
    until(lambda: worked(page, "Q", "0")[0][0], "3.5")
    assert cell(page, "X", 0, 0).input_value() == "7/2"


def test_an_edit_that_waits_for_its_answer_is_kept_when_the_page_comes_anew(opened: Opened) -> None:
    page = opened()
    page.evaluate(SLOW)
    cell(page, "X", 0, 0).fill("9")
    page.locator("#exact").check()
    for number in (0, 1, 2):
        let_go(page, number)
    until(lambda: worked(page, "Q", "0")[0][0], "9")
    assert cell(page, "X", 0, 0).input_value() == "9"


def test_a_drag_is_told_once(opened: Opened) -> None:
    """Pinned arithmetic follows a drag to be seen, not to be heard; at the end it is heard, once."""
    page = opened()
    entry(page, "scores", "0", 0, 0).click()
    until(lambda: "Pinned" in page.locator("#panel").inner_text(), True)
    page.evaluate(HEARD)
    drag(page, cell(page, "X", 0, 0), 60)
    until(lambda: page.evaluate("window.heard.filter(([id]) => id === 'said').length"), 1)
    page.wait_for_timeout(300)
    heard = page.evaluate("window.heard.map(([id, text]) => id)")
    assert sorted(heard) == ["panel", "said"]
    assert "entries changed" in page.locator("#said").inner_text()


def test_what_is_pinned_stays_pinned_while_its_matrix_comes_anew(opened: Opened) -> None:
    page = opened()
    entry(page, "weights", "0", 0, 0).click()
    until(lambda: "Pinned" in page.locator("#panel").inner_text(), True)
    cell(page, "X", 0, 0).fill("5")  # now other weights are nearly 0, and the whole block comes anew
    until(lambda: worked(page, "Q", "0")[0], ["5", "2"])
    until(lambda: "Pinned" in page.locator("#panel").inner_text(), True)
    until(lambda: entry(page, "weights", "0", 0, 0).get_attribute("class"), "pointable own")


def test_changed_entries_stay_lit_through_a_drag_and_fade_after_it(opened: Opened) -> None:
    page = opened()
    drag(page, cell(page, "X", 0, 0), 60)
    page.wait_for_selector("mtd.changed:not(.fading)", state="attached")
    until(page.locator("mtd.changed").count, 0)


def test_exact_arithmetic_is_exact(opened: Opened) -> None:
    """With exact numbers on the page, the panel has them too: a root, not its decimals."""
    page = opened()
    page.locator("#exact").check()
    until(lambda: "msqrt" in page.locator('[data-step="scaled"] mtable').last.inner_html(), True)
    entry(page, "scaled", "0", 0, 0).hover()
    until(lambda: "≈" in page.locator("#panel").inner_text() or not page.locator("#panel").inner_text(), False)
    assert "msqrt" in page.locator("#panel").inner_html()
