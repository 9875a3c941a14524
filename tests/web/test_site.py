"""The bench as a site and as one file, in a real Chromium: without a server of ours, and without a network."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwork.sheets.shelf import built_in
from tests.render.conftest import browser as browser
from tests.web.built import KEPT, asked, cell, hosted
from tests.web.built import built as built
from tests.web.conftest import until

FIRST_VISIT = 5.5e6  # bytes, compressed by brotli
ONE_FILE = 10e6  # bytes
PATIENCE = 2500  # milliseconds for one answer
# Brotli at 8 of 11: more than a host that compresses beforehand sends, in a fraction of the time.
WEIGH = """
const { brotliCompressSync, constants: { BROTLI_PARAM_QUALITY: q, BROTLI_PARAM_LGWIN: w } } = require("node:zlib");
const sizes = {};
for (const file of process.argv.slice(1)) {
  sizes[file] = brotliCompressSync(require("node:fs").readFileSync(file), { params: { [q]: 8, [w]: 24 } }).length;
}
console.log(JSON.stringify(sizes));
"""
Q0 = '.block[data-step="Q"][data-head="0"] mtable[data-role="Q"]'


@pytest.fixture(scope="module")
def site(built: Path) -> Iterator[str]:
    with hosted(built / "site") as address:
        yield address


def opened(browser: Any, address: str, **how: Any) -> Any:
    page = browser.new_context(**how).new_page()
    page.set_default_timeout(60_000)
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    return page


def first_entry(page: Any) -> str:
    return str(page.locator(f"{Q0} mtd").last.text_content())


def edit(page: Any) -> None:
    """An entry of X is typed, and the page follows: only Python can have worked that out."""
    cell(page, "X", 1, 1).fill("9")
    page.wait_for_selector("mtd.changed", state="attached")
    until(lambda: first_entry(page).strip(), "9", seconds=60)


def test_the_budget_in_bytes(built: Path) -> None:
    """SymPy is not of the first visit: it comes when symbols are first asked for."""
    files = [str(path) for path in (built / "site").rglob("*") if path.is_file() and path.name != "sympy.bin"]
    weighed = subprocess.run(["node", "-e", WEIGH, *files], capture_output=True, text=True, check=True)
    sizes: dict[str, int] = json.loads(weighed.stdout)
    assert sum(sizes.values()) <= FIRST_VISIT, sorted(sizes.items(), key=lambda one: -one[1])[:8]
    assert (built / "bench.html").stat().st_size <= ONE_FILE


def test_an_edit_is_worked_in_the_browser(browser: Any, site: str) -> None:
    page = opened(browser, site)
    edit(page)
    assert page.locator("#status").is_hidden()


def test_symbols_are_worked_in_the_browser(browser: Any, site: str) -> None:
    """SymPy is loaded inside a request that needs it, and no other request loads it."""
    page = opened(browser, site)
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url.rpartition("/")[2]))
    (numbers, symbols) = asked(
        page,
        {"do": "open", "name": "two-heads", "exact": True},
        {"do": "open", "name": "block-matrices", "exact": True},
    )
    assert "html" in numbers
    assert "html" in symbols, symbols
    assert loaded.count("sympy.bin") == 1


def test_the_first_view_waits_for_nothing(browser: Any, built: Path) -> None:
    """Python never comes, and every sheet is shown; what needs Python says that it is not there."""
    with hosted(built / "site", without="worker.js") as address:
        page = browser.new_context().new_page()
        page.goto(address)
        page.wait_for_selector(f"{Q0} mtd")
        for name in built_in():
            page.goto(f"{address}#sheet={name}")
            title = json.loads((built / "site" / "prepared" / f"{name}.json").read_text("utf-8"))["table"]["title"]
            until(page.locator("#view h1").inner_text, title)
        (said,) = asked(page, {"do": "show", "table": {}})
    assert said["error"]["message"].startswith("Python could not be started in this browser")


def test_the_server_is_gone(browser: Any, built: Path) -> None:
    """After one visit everything is there without it: the page, other sheets, Python, and SymPy."""
    context = browser.new_context()
    with hosted(built / "site") as address:
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(address)
        page.evaluate(KEPT)
    page.goto(f"{address}?again")
    page.wait_for_selector("body[data-ready]")
    edit(page)
    (symbols,) = asked(page, {"do": "open", "name": "block-matrices", "exact": True})
    assert "html" in symbols, symbols
    page.goto(f"{address}#sheet=dot-product")
    until(page.locator("#view h1").inner_text, "Dot-product attention")


def test_one_file_from_a_disk_without_a_network(browser: Any, built: Path) -> None:
    """It opens with the teacher's own sheet, works it, has the others, and asks nobody for anything."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.set_default_timeout(60_000)
    elsewhere: list[str] = []
    page.on("request", lambda request: elsewhere.append(request.url))
    page.goto((built / "bench.html").as_uri())
    page.wait_for_selector("body[data-ready]")
    assert page.locator("#view h1").inner_text() == "A sheet of my own"
    cell(page, "Q", 0, 0).fill("-7")
    page.wait_for_selector("mtd.changed", state="attached")
    page.goto(f"{(built / 'bench.html').as_uri()}#sheet=two-heads")
    until(page.locator("#view h1").inner_text, "Two heads", seconds=60)
    edit(page)
    assert {url.partition(":")[0] for url in elsewhere} <= {"file", "data", "blob"}


def test_arithmetic_that_explodes_is_stopped_and_the_page_goes_on(browser: Any, built: Path, site: str) -> None:
    """44 by 44 roots, multiplied exactly."""
    page = opened(browser, site)
    rows = [[f"√{7 * i + j + 2}" for j in range(44)] for i in range(44)]
    table = json.loads((built / "site" / "prepared" / "dot-product.json").read_text("utf-8"))["table"]
    table["problem"] = table["problem"][:1]
    table["problem"][0]["given"] = dict.fromkeys(table["problem"][0]["given"], rows)
    explosion = {"do": "show", "table": table, "exact": True}
    asked(page, {"do": "open", "name": "two-heads", "exact": True})  # the worker has nothing else to do now
    page.clock.install()  # the page's clock, not the machine's, which may be busy with something else
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    page.evaluate("(request) => { tested.ask(request).then((reply) => { window.reply = reply; }); }", explosion)
    time.sleep(1)  # it is in the midst of the arithmetic
    page.clock.run_for(PATIENCE - 1)
    assert page.evaluate("window.reply") is None
    page.clock.run_for(1)
    stopped = page.evaluate("window.reply")
    assert stopped["error"].get("stopped"), stopped
    assert "takes too long and was stopped" in stopped["error"]["message"]
    page.clock.resume()
    (again,) = asked(page, {"do": "open", "name": "two-heads", "exact": True})
    assert "html" in again
    edit(page)


def test_a_host_that_does_not_know_wasm(browser: Any, built: Path) -> None:
    with hosted(built / "site", knows_wasm=False) as address:
        edit(opened(browser, address))
