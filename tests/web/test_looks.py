"""The bench for everybody: axe finds nothing, light and dark, in every mode; a phone's width is enough."""

from __future__ import annotations

from typing import Any

import pytest

from tests.render.conftest import require
from tests.web.conftest import until
from tests.web.test_grids import Opened, cell

MODES = ["Work", "Steps", "What if", "Practice"]


def violations(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found]


def enter(page: Any, mode: str) -> None:
    page.get_by_role("button", name=mode, exact=True).click()
    if mode == "What if":
        page.locator('select[name="tag"]').select_option("forgot-scale")
        page.wait_for_selector(".sides")
    if mode == "Practice":
        page.wait_for_selector(".score:not(:empty)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened: Opened, scheme: str) -> None:
    require("axe_playwright_python")
    page = opened(color_scheme=scheme)
    for mode in MODES:
        enter(page, mode)
        if mode == "Work":
            page.locator("summary").last.click()
            cell(page, "X", 0, 0).click()
        assert violations(page) == [], mode
    enter(page, "Work")
    page.get_by_role("button", name="New …").click()
    assert violations(page) == []


@pytest.mark.parametrize("name", ["two-heads", "thinking-machine", "block-matrices"])
def test_a_phone_is_wide_enough(opened: Opened, name: str) -> None:
    page = opened(f"#sheet={name}", viewport={"width": 390, "height": 844}, has_touch=True)
    for mode in MODES:
        page.get_by_role("button", name=mode, exact=True).click()
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, mode


def test_touch(opened: Opened) -> None:
    page = opened(viewport={"width": 390, "height": 844}, has_touch=True)
    page.locator('.problem[data-problem="1"] .block[data-step="Q"] mtd.pointable').first.tap()
    until(lambda: "Pinned" in page.locator("#panel").inner_text(), True)


def test_print_has_the_page_and_nothing_of_the_bench(opened: Opened) -> None:
    page = opened()
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert page.locator(".block").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_role_has_one_colour_wherever_it_stands(opened: Opened, scheme: str) -> None:
    """Queries, keys, values, weights and the output: in the grid, the equation, the figure and the arithmetic."""
    page = opened(color_scheme=scheme)
    problem = page.locator('.problem[data-problem="1"]')
    colour = "one => getComputedStyle(one).color"
    stroke = "one => getComputedStyle(one.querySelector('rect') ?? one).stroke"
    found = {}
    for name in ("Q", "K", "V"):
        grid = problem.locator(f'table[data-role="W_{name}"][data-head="0"] input').first.evaluate(colour)
        equation = problem.locator(f'.block[data-step="{name}"][data-head="0"] mtable').last.evaluate(colour)
        box = problem.locator(f'figure [data-role="{name}"][data-head="0"]').first.evaluate(stroke)
        assert grid == equation == box, name
        found[name] = grid
    for name in ("weights", "head_output"):
        equation = problem.locator(f'.block[data-step="{name}"][data-head="0"] mtable').last.evaluate(colour)
        box = problem.locator(f'figure [data-role="{name}"][data-head="0"]').first.evaluate(stroke)
        assert equation == box, name
        found[name] = equation
    assert len(set(found.values())) == 5
    problem.locator('.block[data-step="head_output"][data-head="0"] mtd.pointable').first.hover()
    until(lambda: page.locator("#panel .role-weights").count() > 0, True)
    assert page.locator("#panel .role-weights").first.evaluate(colour) == found["weights"]
    assert page.locator("#panel .role-v").first.evaluate(colour) == found["V"]
