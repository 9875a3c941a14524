"""What a reader of the bench waits for, in a real Chromium: `python bench/web.py [out.json]`, on an idle machine.

The site is built, served on this machine and opened. Ready to edit is the time from nothing to Python's first answer to
an edit: cold in a browser that has never been here, warm in one that has. An edit is timed in the page, from the key
to the frame that shows the new number; a drag is a number pulled for two seconds by a mouse that, as a hand does,
moves on without waiting for the page; pointing is from the mouse to the arithmetic. What the page shows after its first
edit is checked: a fast wrong answer fails.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from playwright.async_api import async_playwright
from playwright.sync_api import sync_playwright

from headwork.mistakes.make import Plan, new_sheet
from headwork.sheets.save import sheet_toml
from headwork.web.site import write_single, write_site

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.web.built import KEPT, hosted  # the plain host is the tests' own

QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
ROUNDS = 5
EDITS = 25
SHEETS = {"three": Plan(tokens=3, d_model=6, heads=2), "four": Plan(tokens=4, d_model=8, heads=2)}
LIMITS = {
    "ready to edit, cold (s)": 5.0,
    "ready to edit, warm (s)": 2.5,
    "one file, ready to edit (s)": None,
    "edit to paint, 3 tokens, d_model 6, 2 heads (ms)": 50,
    "edit to paint, 4 tokens, d_model 8, 2 heads (ms)": 100,
    "a drag, slowest update (1/s)": None,
    "a drag, updates (1/s, at least)": -20,
    "pointing (ms)": 50,
}
# Type into a cell as a key does and wait for the frame in which an entry lights up.
EDIT = """async ([text]) => {
  const cell = document.querySelector('table.cells[data-role="X"] input[data-row="0"][data-column="0"]');
  document.querySelectorAll("mtd.changed").forEach((one) => one.classList.remove("changed"));
  const begun = performance.now();
  cell.value = text;
  cell.dispatchEvent(new Event("input", { bubbles: true }));
  while (!document.querySelector("mtd.changed")) {
    if (performance.now() - begun > 5000) throw new Error("nothing changed");
    await new Promise(requestAnimationFrame);
  }
  await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}"""
POINT = """async ([place]) => {
  const entry = document.querySelectorAll('.block[data-step="scores"] mtable[data-role="scores"] mtd')[place];
  const panel = document.getElementById("panel");
  const before = panel.textContent;
  const begun = performance.now();
  entry.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" }));
  entry.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
  while (panel.hidden || panel.textContent === before) {
    if (performance.now() - begun > 5000) throw new Error("no arithmetic");
    await new Promise(requestAnimationFrame);
  }
  return performance.now() - begun;
}"""
WATCH = """() => {
  window.updates = [];
  new MutationObserver(() => window.updates.push(performance.now()))
    .observe(document.getElementById("view"), { subtree: true, childList: true, characterData: true });
}"""


def first_edit(page: Any, address: str) -> float:
    """Seconds from nothing to a page that has followed an edit."""
    begun = time.perf_counter()
    page.goto(address)
    cell = page.locator('table.cells[data-role="X"] input[data-row="1"][data-column="1"]').first
    cell.fill("9")
    page.wait_for_selector("mtd.changed", state="attached", timeout=120_000)
    took = time.perf_counter() - begun
    shown = page.locator('.block[data-step="Q"][data-head="0"] mtable[data-role="Q"]').last.locator("mtd").last
    assert shown.text_content().strip() == "9"
    return took


def ready(launch: Callable[[str], Any], address: str, folder: Path) -> tuple[list[float], list[float]]:
    """Cold and warm, each round in a profile of its own; the service worker has its files before the warm visit."""
    cold, warm = [], []
    for number in range(ROUNDS):
        context = launch(str(folder / f"profile-{number}"))
        page = context.new_page()
        cold.append(first_edit(page, address))
        page.evaluate(KEPT)
        page.close()
        context.close()
        context = launch(str(folder / f"profile-{number}"))
        warm.append(first_edit(context.new_page(), address))
        context.close()
    return cold, warm


def settled(context: Any, address: str) -> Any:
    """A page that Python has answered once."""
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.locator('table.cells[data-role="X"] input').first.fill("5")
    page.wait_for_selector("mtd.changed", state="attached", timeout=120_000)
    return page


def edits(page: Any) -> list[float]:
    return [page.evaluate(EDIT, [str(2 + i % 7)]) for i in range(EDITS)]


def points(page: Any) -> list[float]:
    """Entry after entry of the scores."""
    many = page.locator('.block[data-step="scores"] mtable[data-role="scores"] mtd').count()
    return [page.evaluate(POINT, [i]) for i in range(min(many, 9))]


async def drag(address: str) -> list[float]:
    """A number pulled sideways for two seconds: the times of the page's updates."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        page = await browser.new_page()
        await page.goto(address)
        await page.locator('table.cells[data-role="X"] input').first.fill("5")
        await page.wait_for_selector("mtd.changed", state="attached", timeout=120_000)
        await page.evaluate(WATCH)
        box = await page.locator('table.cells[data-role="X"] input').first.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        await page.mouse.move(x, y)
        await page.mouse.down()
        session = await page.context.new_cdp_session(page)
        moves = []
        for step in range(120):  # one each sixtieth of a second, whether or not the page has seen the one before
            where = {"x": x + 7 * (step % 40), "y": y, "button": "left", "buttons": 1}
            moves.append(
                asyncio.ensure_future(session.send("Input.dispatchMouseEvent", {"type": "mouseMoved", **where}))
            )
            await asyncio.sleep(1 / 60)
        updates: list[float] = await page.evaluate("window.updates")
        for move in moves:
            move.cancel()  # moves that the browser took together are answered for once
        await browser.close()
    return updates


def measured(folder: Path) -> dict[str, list[float]]:
    sheets = []
    for name, plan in SHEETS.items():
        sheets.append(folder / f"{name}.toml")
        sheets[-1].write_text(sheet_toml(new_sheet(plan)), "utf-8")
    write_site(folder / "site")
    write_site(folder / "own", [str(path) for path in sheets])
    write_single(folder / "bench.html")
    found: dict[str, list[float]] = {}
    names = list(LIMITS)
    with sync_playwright() as playwright, hosted(folder / "site") as plain, hosted(folder / "own") as own:

        def launch(profile: str) -> Any:
            chromium = playwright.chromium
            return chromium.launch_persistent_context(profile, executable_path=shutil.which("chromium"), args=QUIET)

        found[names[0]], found[names[1]] = ready(launch, plain, folder)
        context = launch(str(folder / "profile"))
        found[names[2]] = [first_edit(context.new_page(), (folder / "bench.html").as_uri()) for _ in range(ROUNDS)]
        page = settled(context, own)
        found[names[3]] = edits(page)
        found[names[7]] = points(page)
        page.goto(f"{own}#sheet=four")
        page.wait_for_selector('table.cells[data-role="X"] input[data-row="3"]')
        page.evaluate(EDIT, ["8"])
        found[names[4]] = edits(page)
        context.close()
    with hosted(folder / "own") as own:
        drags = [asyncio.run(drag(own)) for _ in range(ROUNDS)]
    gaps = [[later - sooner for sooner, later in pairwise(moved)] for moved in drags]
    found[names[5]] = [1000 / max(one) for one in gaps]
    found[names[6]] = [1000 * len(one) / sum(one) for one in gaps]
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder))
    for name, limit in LIMITS.items():
        middle = statistics.median(found[name])
        missed = limit is not None and (middle < -limit if limit < 0 else middle > limit)
        goal = "" if limit is None else f"   ({'at least' if limit < 0 else 'under'} {abs(limit)})"
        print(f"{name:<52} median {middle:8.1f}   best {min(found[name]):8.1f}{goal}{'   MISSED' if missed else ''}")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(found, indent=1), "utf-8")


if __name__ == "__main__":
    main()
