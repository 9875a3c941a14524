"""The bench as `headwork open` serves it, in a real Chromium: one server and one browser for a module."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headwork.sheets.load import load
from headwork.web.serve import Bench
from headwork.web.tables import table_of
from tests.render.conftest import browser as browser


@pytest.fixture(scope="module")
def served() -> Iterator[Bench]:
    """The bench with two heads on it."""
    with Bench(table_of(load("two-heads")), "two-heads") as bench:
        bench.answering.patience = 30  # what a busy machine takes for a small sheet is no matter of these tests
        serving = threading.Thread(target=bench.serve_forever, daemon=True)
        serving.start()
        yield bench
        bench.shutdown()
        serving.join()


@pytest.fixture
def opened(browser: Any, served: Bench) -> Iterator[Callable[..., Any]]:
    """Open the bench in a window of its own; whatever the page throws fails the test."""
    contexts = []
    problems: list[str] = []

    def open_page(hash: str = "", **how: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **how})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.goto(served.url + hash)
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def until(found: Callable[[], Any], wanted: Any, seconds: float = 10) -> None:
    """Look again and again until the page shows what is wanted; what it showed last is what a failure says."""
    end = time.monotonic() + seconds

    def looked() -> Any:
        try:
            return found()
        except IndexError:
            return "not there"

    while (last := looked()) != wanted and time.monotonic() < end:
        time.sleep(0.03)
    assert last == wanted
