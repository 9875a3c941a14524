"""Everything that the page can do, used once as a person would: keyboard, mouse, clipboard, files.

Every function here takes a page that shows the built-in sheet of two heads, and leaves it as it likes.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwork.marking.one_file import from_link
from headwork.sheets.load import load, parse_sheet
from tests.web.conftest import until
from tests.web.test_grids import cell, focused, worked
from tests.web.test_modes import answer, entry, marks, practise, verdict
from tests.web.test_switches import PASTED, paste, switch

Tour = Callable[[Any, Path], None]


def typed(page: Any, folder: Path) -> None:
    """Numbers of every kind, Delete, undo and redo; nonsense is marked and the last good numbers stay."""
    for text, shown in (("7/2", "3.5"), ("√2", "1.41"), ("0,25", "0.25"), ("-3", "−3")):
        cell(page, "X", 0, 0).fill(text)
        until(lambda: worked(page, "Q", "0")[0][0], shown)
    cell(page, "X", 0, 0).fill("three")
    page.wait_for_selector("input[aria-invalid]")
    assert "'three' is not a number" in page.locator("#status").inner_text()
    assert worked(page, "Q", "0")[0][0] == "−3"
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")  # which takes the whole number
    page.keyboard.press("Delete")
    until(lambda: worked(page, "Q", "0")[0][0], "0")
    for key, at in (("Tab", "01"), ("Enter", "11"), ("ArrowLeft", "10"), ("ArrowUp", "00")):
        page.keyboard.press(key)
        assert focused(page) == ("X", *at), key
    cell(page, "X", 0, 0).fill("8")
    until(lambda: worked(page, "Q", "0")[0][0], "8")
    page.keyboard.press("Control+z")
    until(lambda: worked(page, "Q", "0")[0][0], "0")
    page.get_by_role("button", name="Redo").click()
    until(lambda: worked(page, "Q", "0")[0][0], "8")


def pasted(page: Any, folder: Path) -> None:
    """From a spreadsheet, CSV, NumPy, torch, MATLAB, LaTeX; several cells copied go where they are pasted."""
    for number, text in enumerate(PASTED.values()):
        cell(page, "X", 0, 0).fill(str(90 + number))
        cell(page, "X", 0, 0).click()
        paste(page, text)
        until(lambda: worked(page, "Q", "0"), [["5", "6"], ["7", "8"]])
    cell(page, "X", 0, 0).click()
    paste(page, "x" * 10_000_000)
    until(lambda: "10,000,000 characters" in page.locator("#status").inner_text(), True)


def dragged_and_stepped(page: Any, folder: Path) -> None:
    """By mouse, by keys and by buttons."""
    box = cell(page, "X", 0, 0).bounding_box()
    page.mouse.move(box["x"] + 8, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 45, box["y"] + 8, steps=6)
    page.mouse.up()
    until(lambda: worked(page, "Q", "0")[0][0], "6")
    page.keyboard.press("PageDown")
    until(lambda: worked(page, "Q", "0")[0][0], "5")
    page.get_by_role("button", name="one more").click()
    until(lambda: worked(page, "Q", "0")[0][0], "6")


def rows_and_columns(page: Any, folder: Path) -> None:
    def rows(name: str) -> int:
        return int(page.locator(f'.problem[data-problem="1"] table[data-name="{name}"] tr').count())

    cell(page, "X", 0, 0).click()
    page.get_by_role("button", name="add a column").click()
    until(lambda: rows("W_K_2"), 3)
    page.get_by_role("button", name="add a row").click()
    until(lambda: rows("X"), 3)
    page.get_by_role("button", name="remove this row").click()
    until(lambda: rows("X"), 2)


def switched(page: Any, folder: Path) -> None:
    """Every switch there is."""
    switch(page, "places", "4")
    until(lambda: worked(page, "scaled", "0")[0], ["2.8284", "7.0711"])
    switch(page, "scale", "other")
    page.locator('dialog input[name="by"]').fill("1/2")
    page.keyboard.press("Enter")
    until(lambda: worked(page, "scaled", "0")[0], ["8", "20"])
    switch(page, "scale", "sqrt(d_k)")
    until(lambda: worked(page, "scaled", "0")[0][0], "2.8284")
    page.locator("#exact").check()
    until(lambda: page.locator('[data-step="scaled"] msqrt').count() > 0, True)
    page.locator("#exact").uncheck()
    switch(page, "mask", "causal")
    until(lambda: worked(page, "masked", "0")[0], ["2.8284", "−∞"])
    switch(page, "mask", "grid")
    page.get_by_role("button", name="token 1, key 2: hidden").click()
    until(lambda: worked(page, "masked", "0")[0][1], "7.0711")
    switch(page, "softmax", "steps")
    until(page.locator('[data-step="exponentials"][data-head="1"]').count, 1)
    switch(page, "kv_heads", "1")
    until(page.locator('.problem[data-problem="1"] table[data-name="W_K_2"]').count, 0)
    switch(page, "heads", "1")
    until(page.locator('.problem[data-problem="1"] [data-head="1"]').count, 0)
    switch(page, "formula", "multi_head_blocks")
    until(page.locator('.problem[data-problem="1"] table[data-name="W_Q"]').count, 1)


def in_blocks(page: Any, folder: Path) -> None:
    """Blockwise attention has a switch for the number of blocks."""
    page.locator("#sheets").select_option("two-blocks")
    until(lambda: page.locator('select[name="blocks"]').count() > 0, True)
    page.locator("summary").first.click()
    page.locator('select[name="blocks"]').first.select_option("1")
    until(page.locator('.block[data-step="scores"][data-head="1"]').count, 0)
    page.locator('select[name="blocks"]').first.select_option("3")
    until(lambda: page.locator('.block[data-step="scores"][data-head="2"]').count() > 0, True)


def new_sheets(page: Any, folder: Path) -> None:
    for fill in ("zeros", "seeded"):
        page.get_by_role("button", name="New …").click()
        page.locator('dialog [name="tokens"]').fill("3")
        page.locator('dialog [name="fill"]').select_option(fill)
        page.get_by_role("button", name="Make it").click()
        until(page.locator("h1").inner_text, "2 heads, 3 tokens")
        until(lambda: worked(page, "Q", "0", 0) == [["0", "0"]] * 3, fill == "zeros")


def figure_and_entries(page: Any, folder: Path) -> None:
    """A box leads to its step; entries are pointed at by mouse and by keyboard."""
    page.locator('.problem[data-problem="1"] figure [data-role="weights"][data-head="1"]').click()
    until(lambda: page.evaluate("document.activeElement.closest('.block')?.dataset.step"), "weights")
    panel = page.locator("#panel")
    entry(page, "scores", "0", 0, 0).hover()
    until(lambda: panel.inner_text().replace(" ", "").replace("\n", ""), "scores1[1,1]=1·2+2·1=2+2=4")
    assert page.locator(".lit").count() > 0
    assert "behind" in cell(page, "X", 0, 0).get_attribute("class")
    entry(page, "scores", "0", 0, 0).focus()
    page.keyboard.press("ArrowDown")
    until(lambda: "scores1[2,1]" in panel.inner_text().replace(" ", "").replace("\n", ""), True)
    page.mouse.move(0, 0)
    entry(page, "scores", "0", 0, 0).hover()
    until(lambda: "scores1[1,1]" in panel.inner_text().replace(" ", "").replace("\n", ""), True)
    # The page moves under a mouse that rests while the keys ask for another entry: they get it.
    entry(page, "scores", "0", 1, 1).evaluate(
        "(asked, left) => { asked.focus(); left.dispatchEvent(new PointerEvent('pointerout', { bubbles: true })); }",
        entry(page, "scores", "0", 0, 0).element_handle(),
    )
    until(lambda: "scores1[2,2]" in panel.inner_text().replace(" ", "").replace("\n", ""), True)
    page.keyboard.press("Enter")
    until(lambda: "Pinned" in panel.inner_text(), True)
    page.keyboard.press("Escape")
    assert panel.is_hidden()


def step_by_step(page: Any, folder: Path) -> None:
    """On, a result left open, shown, back, full screen."""
    page.get_by_role("button", name="Steps").click()
    said = page.locator(".steps-bar output")
    page.locator("h1").click()
    while "what comes out?" not in said.inner_text():
        page.keyboard.press("ArrowRight")
    open_at = said.inner_text().partition(":")[0]
    page.keyboard.press("ArrowRight")
    until(said.inner_text, open_at)
    page.keyboard.press("ArrowLeft")
    until(lambda: said.inner_text() != open_at, True)
    page.keyboard.press("f")
    page.wait_for_selector("body.full")
    page.keyboard.press("f")
    page.wait_for_selector("body:not(.full)")


def what_ifs(page: Any, folder: Path) -> None:
    """Every mistake of the list opens, and says where the two part, or that they do not."""
    page.get_by_role("button", name="What if").click()
    page.wait_for_selector('select[name="tag"] option:nth-child(2)', state="attached")
    tags = page.locator('select[name="tag"] option').evaluate_all("all => all.map((one) => one.value)")[1:]
    assert len(tags) > 10
    shown = page.locator(".shown")
    for tag in tags:
        page.locator('select[name="tag"]').select_option(tag)
        until(lambda: (shown.text_content() or "").partition(": ")[0], tag)
        said = shown.text_content() or ""
        assert "They part first in" in said or "it makes no difference" in said, said
    page.locator('select[name="tag"]').select_option("forgot-scale")
    until(lambda: "0.04677" in shown.inner_text(), True)
    cell(page, "X", 0, 0).fill("0")
    until(lambda: "0.04677" in shown.inner_text(), False)


def practised(page: Any, folder: Path) -> None:
    """Right, follows, wrong, not a number, the mistake named; hints; blanks that fade; a new sheet of the same kind."""
    practise(page)
    answer(page, "Q_1", ["1", "2", "5", "four"])
    until(lambda: marks(page, "Q_1"), ["right", "right", "wrong", "nonsense"])
    answer(page, "joined", list("12345678"))
    until(lambda: "merged-untransposed" in verdict(page, "joined"), True)
    page.locator("#every").check()
    until(page.locator("table[data-practice]").count, 17)
    answer(page, "Q_1", list("1254"))
    answer(page, "K_1", list("2143"))
    answer(page, "scores_1", ["4", "10", "14", "32"])  # of the wrong Q: 5·2 + 4·1 = 14
    until(lambda: marks(page, "scores_1")[2:], ["follows", "follows"])
    page.locator('table[data-practice][data-name="Q_1"] input').nth(2).click()
    for level in (1, 2, 3):
        page.get_by_role("button", name="Hint").click()
        until(lambda: page.locator(".hint b").inner_text().partition("(")[2], f"hint {level} of 3)")
    page.locator("#worked").fill("2")
    page.locator("#worked").dispatch_event("change")
    until(page.locator('table[data-practice="worked"]').count, 2)
    before = page.locator('.problem[data-problem="1"] table[data-name="X"]').inner_html()
    page.get_by_role("button", name="New sheet of this kind").click()
    given = page.locator('.problem[data-problem="1"] table[data-name="X"]')
    until(lambda: given.inner_html() != before, True)
    page.locator("#every").uncheck()
    until(page.locator('table[data-practice="open"]').count, 10)


def kept(page: Any, folder: Path) -> None:
    """Progress survives a reload, and can be forgotten."""
    practise(page)
    answer(page, "Q_1", ["1", "2"])
    until(lambda: marks(page, "Q_1")[:2], ["right", "right"])
    assert "kept in this browser" in page.locator(".practice-bar").inner_text()
    page.wait_for_timeout(500)  # until the link has the sheet
    page.reload()
    page.wait_for_selector("body[data-ready]")
    practise(page)
    until(lambda: marks(page, "Q_1")[:2], ["right", "right"], 30)
    page.get_by_role("button", name="Forget my answers").click()
    until(lambda: marks(page, "Q_1")[:2], ["blank", "blank"])


def handed_in(page: Any, folder: Path) -> None:
    """As a link and as a file: the answers, with a name, and no mark."""
    practise(page)
    answer(page, "joined", list("12563479"))
    page.get_by_role("button", name="Hand in").click()
    page.locator('dialog input[name="student"]').fill("Ada")
    page.get_by_role("button", name="Make it").click()
    found = from_link(page.locator("dialog textarea").input_value())
    assert found.student == "Ada"
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Hand in").click()
    page.locator('dialog select[name="how"]').select_option("file")
    with page.expect_download() as taken:
        page.get_by_role("button", name="Make it").click()
    taken.value.save_as(folder / "answers.json")
    assert json.loads((folder / "answers.json").read_text())["1.a"]["joined"][1] == ["3", "4", "7", "9"]


def taken_along(page: Any, folder: Path) -> None:
    """Every form there is, of the numbers that stand on the page."""
    cell(page, "X", 0, 0).fill("17")
    until(lambda: worked(page, "Q", "0")[0][0], "17")
    texts: dict[str, str] = {}
    for form in ("toml", "answers", "markdown", "latex", "svg", "png"):
        page.get_by_role("button", name="Out …").click()
        page.locator('dialog select[name="form"]').select_option(form)
        with page.expect_download() as found:
            page.get_by_role("button", name="Take it").click()
        path = folder / found.value.suggested_filename
        found.value.save_as(path)
        texts[form] = path.read_text("utf-8") if form != "png" else path.read_bytes()[:4].decode("latin-1")
    assert parse_sheet(texts["toml"], "out").problems[1].given["X", None][0][0] == 17
    assert tomllib.loads(texts["answers"])["2.a"]["Q_1"] == ""
    assert "17" in texts["markdown"]
    assert "\\begin{document}" in texts["latex"]
    assert texts["svg"].startswith("<svg")
    assert texts["png"] == "\x89PNG"
    page.evaluate("window.print = () => { document.title = 'printed'; }")
    page.get_by_role("button", name="Out …").click()
    page.locator('dialog select[name="form"]').select_option("print")
    page.get_by_role("button", name="Take it").click()
    until(page.title, "printed")
    page.get_by_role("button", name="Out …").click()
    page.get_by_role("button", name="Take it").click()
    until(lambda: "#state=" in page.locator("dialog textarea").input_value(), True)
    link = page.locator("dialog textarea").input_value()
    page.keyboard.press("Escape")
    cell(page, "X", 0, 0).fill("1")
    until(lambda: worked(page, "Q", "0")[0][0], "1")
    until(lambda: page.evaluate("location.href") != link, True)
    page.evaluate("link => { location.hash = link.slice(link.indexOf('#')); }", link)
    until(lambda: worked(page, "Q", "0")[0][0], "17")


def other_sheets(page: Any, folder: Path) -> None:
    """By name in the link, from the list, and one of one's own."""
    page.evaluate("location.hash = '#sheet=thinking-machine'")
    until(page.locator("h1").inner_text, load("thinking-machine").title)
    page.locator("#sheets").select_option("dot-product")
    until(page.locator("h1").inner_text, load("dot-product").title)
    page.locator("#sheets").select_option("+file")
    own = 'title = "Mine"\nformula = "dot_product"\n[given]\nQ = [[1]]\nK = [[1]]\nV = [["1/3"]]\n'
    page.locator("dialog textarea").fill(own + '[[part]]\nfind = ["output"]\n')
    page.get_by_role("button", name="Open it").click()
    until(page.locator("h1").inner_text, "Mine")


TOUR: tuple[Tour, ...] = (
    typed,
    pasted,
    dragged_and_stepped,
    rows_and_columns,
    switched,
    in_blocks,
    new_sheets,
    figure_and_entries,
    step_by_step,
    what_ifs,
    practised,
    kept,
    handed_in,
    taken_along,
    other_sheets,
)
