"""Pages and marks worked out in the browser are the same as natively: every built-in sheet, and 100 drawn ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwork.mistakes.make import Plan, new_sheet
from headwork.sheets.load import load
from headwork.sheets.shelf import built_in
from headwork.solving import solve
from headwork.web.ask import answer
from headwork.web.tables import table_of
from tests.render.conftest import browser as browser
from tests.web.built import built as built
from tests.web.built import hosted

DRAWN = 100
PLANS = (
    Plan(),
    Plan(mask="causal"),
    Plan("single_head", heads=1, d_model=3, biases=True),
    Plan("scaled_dot_product", tokens=4, heads=1, d_model=3, places=3),
    Plan("scaled_dot_product", tokens=3, heads=1, d_model=4, mask="causal"),
)
# The page's own worker, without the page: nobody ends it for thinking long on a busy machine.
TOLD = """async (requests) => {
  const worker = new Worker("worker.js");
  const next = () => new Promise((resolve) => {
    worker.onmessage = ({ data }) => { if (!data.slow) resolve(data); };
  });
  worker.postMessage({ files: null });
  let said = await next();
  const replies = [];
  for (const request of said.ready ? requests : []) {
    worker.postMessage({ request });
    said = await next();
    replies.push(said.reply ?? JSON.stringify(said));
  }
  worker.terminate();
  return replies.length ? replies : [JSON.stringify(said)];
}"""


@pytest.fixture(scope="module")
def page(browser: Any, built: Path) -> Iterator[Any]:
    with hosted(built / "site") as address:
        page = browser.new_context().new_page()
        page.goto(f"{address}LICENCES.txt")  # of the same origin, and starts no worker of its own
        yield page


def the_same(page: Any, requests: list[dict[str, Any]]) -> None:
    texts = [json.dumps(request) for request in requests]
    told = page.evaluate(TOLD, texts)
    natively = [answer(text) for text in texts]
    assert not any("error" in json.loads(reply) for reply in natively)
    for request, here, there in zip(requests, natively, told, strict=True):
        assert json.loads(there) == json.loads(here), request["do"]


def answers(table: dict[str, Any], slip: int) -> dict[str, Any]:
    """Right ones as the page itself would fill them in; in every so-manyth grid one entry has the other sign."""
    asked = json.loads(answer(json.dumps({"do": "practice", "table": table, "worked": 1000})))["html"]
    found: dict[str, dict[str, list[list[str]]]] = {}
    for number, (part, name, rows) in enumerate(_grids(asked)):
        if number % slip == slip - 1:
            rows[0][0] = rows[0][0][1:] if rows[0][0].startswith("-") else f"-{rows[0][0]}"
        found.setdefault(part, {})[name] = rows
    return found


def _grids(html: str) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Part, name and texts of every grid that practice filled in."""
    from html.parser import HTMLParser

    made: list[tuple[str, str, list[list[str]]]] = []

    class Grids(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            told = {name: text or "" for name, text in attributes}
            if tag == "table" and told.get("data-practice") == "worked":
                made.append((told["data-part"], told["data-name"], []))
            elif tag == "tr" and made:
                made[-1][2].append([])
            elif tag == "input" and made and "data-row" in told:
                made[-1][2][-1].append(told["value"].replace("−", "-"))

    Grids().feed(html)
    return iter(made)


def test_every_built_in_sheet(page: Any) -> None:
    requests: list[dict[str, Any]] = []
    for name in built_in():
        table = table_of(load(name))
        requests += [{"do": "show", "table": table, "exact": exact} for exact in (False, True)]
        drawn = any(problem.picture for problem in solve(name).problems)
        forms = ("toml", "markdown", "latex", *(["svg"] if drawn else []))
        requests += [{"do": "out", "table": table, "form": form} for form in forms]
        requests += [{"do": "mistakes", "table": table, "problem": 0}, {"do": "practice", "table": table, "worked": 1}]
        requests += [{"do": "mark", "table": table, "answers": answers(table, slip)} for slip in (2, 1000)]
    the_same(page, requests)


def test_drawn_sheets(page: Any) -> None:
    requests: list[dict[str, Any]] = []
    for number in range(DRAWN):
        table = table_of(new_sheet(PLANS[number % len(PLANS)], seed=16, number=number, anyway=True))
        marked = {"do": "mark", "table": table, "answers": answers(table, 3)}
        requests += [{"do": "show", "table": table}, marked]
    the_same(page, requests)
