"""Everything that the page can do, in every place where it may stand: served by `headwork open`, as one file on a disk
without a network, and as a site whose server is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwork.web.serve import Bench
from tests.web.built import KEPT, hosted
from tests.web.built import built as built
from tests.web.conftest import until
from tests.web.tour import TOUR, Tour

PLACES = ("open", "file", "gone")
# A worker that is silent for two and a half seconds is ended; a machine that is busy with tests may be that slow.
PATIENT = """(() => {
  const wait = window.setTimeout;
  window.setTimeout = (act, time, ...rest) => wait(act, time === 2500 ? 60000 : time, ...rest);
})()"""


@pytest.fixture(scope="module")
def visited(browser: Any, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """One page for every place, opened when it is first asked for."""
    pages: dict[str, Any] = {}
    yield pages
    for page in pages.values():
        page.context.close()


def opened(browser: Any, place: str, request: pytest.FixtureRequest) -> Any:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script(PATIENT)
    page = context.new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    if place == "open":
        served: Bench = request.getfixturevalue("served")
        page.goto(served.url)
    elif place == "file":
        context.set_offline(True)
        page.goto((request.getfixturevalue("built") / "bench.html").as_uri())
    else:
        with hosted(request.getfixturevalue("built") / "site") as address:
            page.goto(address)
            page.evaluate(KEPT)
        page.goto(f"{address}?again")
    page.wait_for_selector("body[data-ready]", timeout=60_000)
    page.locator("table.cells input").first.fill("4")
    page.wait_for_selector("mtd.changed", state="attached", timeout=60_000)  # Python is there
    return page


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("tour", TOUR, ids=lambda tour: tour.__name__)
def test_everything_everywhere(
    browser: Any, visited: dict[str, Any], request: pytest.FixtureRequest, tmp_path: Path, tour: Tour, place: str
) -> None:
    if place not in visited:
        visited[place] = opened(browser, place, request)
    page = visited[place]
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Work", exact=True).click()
    page.evaluate("location.hash = '#sheet=two-heads'")
    until(lambda: page.evaluate("location.hash").startswith("#state="), True, seconds=60)  # it has come
    assert page.locator("h1").inner_text() == "Two heads"
    page.problems.clear()
    tour(page, tmp_path)
    assert page.problems == []
