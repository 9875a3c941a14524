"""The shape of a sheet changed as a person would: rows, columns, pasted matrices, switches, masks, new sheets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.conftest import until
from tests.web.test_grids import Opened, cell, worked

PASTED = {
    "a spreadsheet": "5\t6\n7\t8",
    "CSV": "5,6\n7,8",
    "NumPy": "array([[5., 6.],\n       [7., 8.]])",
    "NumPy, printed": "[[5 6]\n [7 8]]",
    "torch": "tensor([[5, 6],\n        [7, 8]], dtype=torch.int64)",
    "MATLAB": "[5 6; 7 8]",
    "LaTeX": r"\begin{pmatrix} 5 & 6 \\ 7 & 8 \end{pmatrix}",
}


def paste(page: Any, text: str) -> None:
    page.evaluate(
        "text => { const data = new DataTransfer(); data.setData('text/plain', text);"
        " document.activeElement.dispatchEvent(new ClipboardEvent('paste',"
        " { clipboardData: data, bubbles: true, cancelable: true })); }",
        text,
    )


def shape(page: Any, role: str, head: str = "") -> tuple[int, int]:
    rows = worked(page, role, head)
    return len(rows), len(rows[0])


def switch(page: Any, key: str, value: str) -> None:
    section = page.locator('.problem[data-problem="1"]')
    if not section.locator("details").evaluate("one => one.open"):
        section.locator("summary").click()
    section.locator(f'select[name="{key}"]').select_option(value)


def test_a_matrix_is_pasted_from_anywhere(opened: Opened) -> None:
    page = opened()
    for number, text in enumerate(PASTED.values()):
        cell(page, "X", 0, 0).fill(str(90 + number))
        cell(page, "X", 0, 0).click()
        paste(page, text)
        until(lambda: worked(page, "Q", "0"), [["5", "6"], ["7", "8"]])


def test_a_larger_matrix_makes_room(opened: Opened) -> None:
    page = opened()
    cell(page, "X", 1, 0).click()
    paste(page, "5\t6\n7\t8\n9\t10")
    until(lambda: worked(page, "Q", "0"), [["1", "2"], ["5", "6"], ["7", "8"], ["9", "10"]])


def test_rows_and_columns_come_and_go(opened: Opened) -> None:
    """A column of X is a row of every projection."""
    page = opened()
    cell(page, "X", 0, 1).click()
    page.get_by_role("button", name="add a column").click()
    until(lambda: page.locator('.problem[data-problem="1"] table[data-name="W_K_2"] tr').count(), 3)
    assert page.evaluate("document.activeElement.dataset.column") == "1"
    page.get_by_role("button", name="add a row").click()
    until(lambda: shape(page, "scores", "0"), (3, 3))
    page.get_by_role("button", name="remove this row").click()
    until(lambda: shape(page, "scores", "0"), (2, 2))
    page.keyboard.press("Control+z")
    until(lambda: shape(page, "scores", "0"), (3, 3))


def test_buttons_step_a_number(opened: Opened) -> None:
    page = opened()
    cell(page, "X", 0, 0).click()
    page.get_by_role("button", name="one more").click()
    page.get_by_role("button", name="one more").click()
    until(lambda: worked(page, "Q", "0")[0], ["3", "2"])


def test_switches(opened: Opened) -> None:
    page = opened()
    switch(page, "places", "4")
    until(lambda: worked(page, "scaled", "0")[0], ["2.8284", "7.0711"])
    switch(page, "scale", "none")
    until(page.locator('[data-step="scaled"]').count, 0)
    switch(page, "mask", "causal")
    until(lambda: worked(page, "masked", "0")[0], ["4", "−∞"])
    switch(page, "softmax", "steps")
    until(page.locator('[data-step="exponentials"][data-head="1"]').count, 1)
    switch(page, "heads", "1")
    until(page.locator('.problem[data-problem="1"] [data-head="1"]').count, 0)
    switch(page, "formula", "multi_head_blocks")
    until(page.locator('.problem[data-problem="1"] table[data-name="W_Q"]').count, 1)
    switch(page, "formula", "scaled_dot_product")
    until(lambda: cell(page, "K", 1, 0).input_value(), "4")


def test_kv_heads_are_shared(opened: Opened) -> None:
    page = opened()
    switch(page, "kv_heads", "1")
    until(page.locator('.problem[data-problem="1"] table[data-name="W_K_2"]').count, 0)
    assert page.locator('.problem[data-problem="1"] table[data-name="W_Q_2"]').count() == 1


def test_exact_numbers(opened: Opened) -> None:
    page = opened()
    page.locator("#exact").check()
    until(lambda: "msqrt" in page.locator('[data-step="scaled"] mtable').last.inner_html(), True)


def test_a_mask_is_clicked(opened: Opened) -> None:
    page = opened()
    switch(page, "mask", "grid")
    page.get_by_role("button", name="token 1, key 2: may be read").click()
    until(lambda: worked(page, "weights", "0")[0], ["1", "0"])
    page.get_by_role("button", name="token 1, key 2: hidden").click()
    until(lambda: worked(page, "masked", "0")[0][1], "7.07")


@pytest.mark.parametrize("fill", ["zeros", "seeded", "drawn"])
def test_a_new_sheet(opened: Opened, fill: str) -> None:
    page = opened()
    page.get_by_role("button", name="New …").click()
    dialog = page.locator("dialog")
    dialog.locator('[name="tokens"]').fill("4")
    dialog.locator('[name="heads"]').fill("3")
    dialog.locator('[name="d_model"]').fill("6")
    dialog.locator('[name="fill"]').select_option(fill)
    dialog.get_by_role("button", name="Make it").click()
    until(page.locator("h1").inner_text, "3 heads, 4 tokens" + (", sheet 1" if fill == "drawn" else ""))
    first = [worked(page, "Q", head, 0) for head in "012"]
    assert {(len(rows), len(rows[0])) for rows in first} == {(4, 2)}
    assert (first[0] == [["0", "0"]] * 4) == (fill == "zeros")


def test_a_built_in_sheet_and_one_of_ones_own(opened: Opened) -> None:
    page = opened()
    page.locator("#sheets").select_option("dot-product")
    until(lambda: page.locator("h1").inner_text() != "Two heads", True)
    page.locator("#sheets").select_option("+file")
    own = 'title = "Mine"\nformula = "dot_product"\n[given]\nQ = [[1]]\nK = [[1]]\nV = [["1/3"]]\n'
    page.locator("dialog textarea").fill(own + '[[part]]\nfind = ["output"]\n')
    page.get_by_role("button", name="Open it").click()
    until(page.locator("h1").inner_text, "Mine")
    assert worked(page, "head_output", problem=0) == [["13"]]  # one over three, in MathML
