"""The documentation as a site: built strictly, every address in it leads somewhere, and the live bench works in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.render.conftest import browser as browser
from tests.render.conftest import require
from tests.web.built import build, cell, hosted
from tests.web.conftest import until

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def documentation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built strictly: a dead link, a page that the contents forget, a docstring that cannot be read is an error.

    And without a line of warning; the notice that Material prints of its own end is switched off as in `make docs`.
    """
    require("mkdocs", "node", "npm")
    build(tmp_path_factory)  # the bench's Python, compiled by one process for all
    folder = tmp_path_factory.mktemp("documentation")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


def test_the_site_has_what_the_build_makes(documentation: Path) -> None:
    for name in ("reference/mistakes/index.html", "reference/command-line/index.html", "live/index.html"):
        assert (documentation / name).is_file()


def test_every_address_leads_somewhere(documentation: Path) -> None:
    """Also those that MkDocs does not look at: frames, pictures, addresses written as HTML."""
    dead = []
    for page in documentation.rglob("*.html"):
        if page.name == "404.html" or documentation / "live" in page.parents:
            continue
        for found in re.findall(r'(?:href|src)="([^"]*)"', page.read_text("utf-8")):
            parts = urlsplit(unescape(found))
            target = (page.parent / unquote(parts.path)).resolve()
            if not parts.scheme and not parts.netloc and not target.exists():
                dead.append(f"{page.relative_to(documentation)}: {found}")
    assert not dead


def test_no_list_and_no_table_has_run_into_a_paragraph(documentation: Path) -> None:
    """Python's Markdown wants an empty line before a list; without it the marks stand in the text, as columns do."""
    wrong = []
    for page in documentation.rglob("*.html"):
        if documentation / "live" not in page.parents:
            prose = re.sub(r"<(pre|script|style)\b.*?</\1>", "", page.read_text("utf-8"), flags=re.S)
            found = re.findall(r"^(?:<p>)?(?:(?:[-*]|\d+\.) |\w[\w, ]* {3,}\S).*", prose, re.M)
            wrong += [f"{page.relative_to(documentation)}: {line}" for line in found]
    assert not wrong


def test_what_is_copied_from_a_block_can_be_typed(browser: Any, documentation: Path) -> None:
    """The button leaves out prompts and what commands print."""
    with hosted(documentation) as address:
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.goto(f"{address}tutorials/two-tokens/")
        blocks = page.locator("article .highlight")
        copied = []
        for words in ("$ headwork solve two.toml --entry", ">>> working[", "formula ="):
            block = blocks.filter(has_text=words).first
            block.hover()
            block.locator("button").first.click()
            copied.append(page.evaluate("navigator.clipboard.readText()"))
    session, prompts, sheet = copied
    assert session == 'headwork solve two.toml --entry "weights[1,1]"'
    assert prompts.splitlines() == [
        "import headwork",
        'working = headwork.solve("two.toml")',
        'working["output"].value[1]',
        'working["scaled"].value[0]',
    ]
    assert sheet.startswith('title = "Two tokens"')


def test_the_live_bench_works_in_the_site(browser: Any, documentation: Path) -> None:
    """In its frame: an entry is typed, and Python in the browser works out what follows."""
    problems: list[str] = []
    with hosted(documentation) as address:
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(120_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{address}bench/")
        frame = page.frame_locator("iframe")
        frame.locator("body[data-ready]").wait_for()
        cell(frame, "X", 1, 1).fill("9")
        follows = frame.locator('.block[data-step="Q"][data-head="0"] mtable[data-role="Q"] mtd').last
        until(lambda: str(follows.text_content()).strip(), "9", seconds=240)
    assert not problems
