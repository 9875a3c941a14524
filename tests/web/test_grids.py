"""What is given, edited as a person would: keys, mouse, nonsense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.web.conftest import until

Opened = Callable[..., Any]


def cell(page: Any, role: str, row: int, column: int, head: str = "", problem: int = 1) -> Any:
    table = f'.problem[data-problem="{problem}"] table.cells[data-role="{role}"][data-head="{head}"]'
    return page.locator(f'{table} input[data-row="{row}"][data-column="{column}"]')


def worked(page: Any, role: str, head: str = "", problem: int = 1) -> list[list[str]]:
    """The last matrix of the block that works a step out, as its rows of texts."""
    block = f'.problem[data-problem="{problem}"] .block[data-step="{role}"][data-head="{head}"]'
    rows = page.locator(f'{block} mtable[data-role="{role}"]').last.locator("mtr")
    found = rows.evaluate_all(
        "rows => rows.map(row => [...row.children].map(cell => { const shown = cell.cloneNode(true);"
        " shown.querySelectorAll('mphantom').forEach(gap => gap.remove()); return shown.textContent; }))"
    )
    return [[str(text) for text in row] for row in found]


def focused(page: Any) -> tuple[str, str, str]:
    found = page.evaluate(
        "(() => { const at = document.activeElement; const { row, column } = at.dataset;"
        " return [at.closest('table')?.dataset.name ?? '', row, column]; })()"
    )
    return tuple(found)


def test_what_is_typed_is_worked(opened: Opened) -> None:
    page = opened()
    until(lambda: worked(page, "Q", "0"), [["1", "2"], ["3", "4"]])
    cell(page, "X", 0, 0).fill("7/2")
    page.wait_for_selector("mtd.changed", state="attached")
    until(lambda: worked(page, "Q", "0"), [["3.5", "2"], ["3", "4"]])


def test_arrows_tab_enter_and_delete(opened: Opened) -> None:
    page = opened()
    cell(page, "X", 0, 0).click()
    for key, at in [
        ("ArrowRight", ("X", "0", "1")),
        ("ArrowDown", ("X", "1", "1")),
        ("ArrowLeft", ("X", "1", "0")),
        ("ArrowUp", ("X", "0", "0")),
        ("Tab", ("X", "0", "1")),
        ("Shift+Tab", ("X", "0", "0")),
        ("Enter", ("X", "1", "0")),
    ]:
        page.keyboard.press(key)
        assert focused(page) == at, key
    page.keyboard.press("Delete")
    assert cell(page, "X", 1, 0).input_value() == "0"
    until(lambda: worked(page, "Q", "0"), [["1", "2"], ["0", "4"]])


def test_undo_and_redo(opened: Opened) -> None:
    page = opened()
    cell(page, "X", 0, 0).fill("5")
    page.keyboard.press("Control+z")
    until(lambda: worked(page, "Q", "0")[0], ["1", "2"])
    until(cell(page, "X", 0, 0).input_value, "1")
    page.keyboard.press("Control+y")
    until(lambda: worked(page, "Q", "0")[0], ["5", "2"])


def test_nonsense_is_marked_where_it_stands_and_the_last_good_numbers_stay(opened: Opened) -> None:
    page = opened()
    bad = cell(page, "X", 0, 1)
    bad.fill("two")
    page.wait_for_selector("input[aria-invalid]")
    assert bad.get_attribute("aria-invalid") == "true"
    assert "'two' is not a number" in page.locator("#status").inner_text()
    until(lambda: worked(page, "Q", "0"), [["1", "2"], ["3", "4"]])
    bad.fill("√2")
    page.wait_for_selector("input[aria-invalid]", state="detached")
    until(lambda: worked(page, "Q", "0")[0], ["1", "1.41"])
    assert page.locator("#status").is_hidden()


@pytest.mark.parametrize(("key", "text"), [("PageUp", "2"), ("Alt+ArrowDown", "0"), ("Shift+PageUp", "1.1")])
def test_keys_step_a_number(opened: Opened, key: str, text: str) -> None:
    page = opened()
    cell(page, "X", 0, 0).click()
    page.keyboard.press(key)
    assert cell(page, "X", 0, 0).input_value() == text


def test_a_number_is_dragged_and_one_undo_takes_it_back(opened: Opened) -> None:
    page = opened()
    box = cell(page, "X", 0, 0).bounding_box()
    x, y = box["x"] + 8, box["y"] + 8
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 37, y, steps=6)
    page.mouse.up()
    assert cell(page, "X", 0, 0).input_value() == "6"
    until(lambda: worked(page, "Q", "0")[0], ["6", "2"])
    page.keyboard.press("Control+z")
    until(cell(page, "X", 0, 0).input_value, "1")
