"""What the tests of pages need: programs that may be missing, a browser, and whole pages kept as golden files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import headwork
from headwork.sheets.shelf import built_in
from headwork.working import Working

GOLDEN = Path(__file__).parent.parent / "golden"
REMEDIES = {
    "pdflatex": "apt-get install texlive-latex-base",
    "chromium": "apt-get install chromium",
    "pdftoppm": "apt-get install poppler-utils",
    "node": "apt-get install nodejs npm",
    "npm": "apt-get install nodejs npm",
    "bwrap": "apt-get install bubblewrap",
    "playwright": "pip install playwright",
    "axe_playwright_python": "pip install axe-playwright-python",
    "typst": "pip install '.[pages]'",
    "nbformat": "pip install '.[pages]'",
    "matplotlib": "pip install '.[pages]'",
    "torch": "pip install torch",
    "transformers": "pip install transformers",
    "mkdocs": "pip install '.[docs]'",
}
PROGRAMS = ("pdflatex", "chromium", "pdftoppm", "node", "npm", "bwrap")


def require(*tools: str) -> None:
    """Skip, with the line that installs what is missing; fail instead where everything must be there."""
    for tool in tools:
        found = shutil.which(tool) if tool in PROGRAMS else find_spec(tool)
        if not found:
            message = f"{tool} is missing: {REMEDIES[tool]}"
            if os.environ.get("HEADWORK_REQUIRE_ALL"):
                pytest.fail(message)
            pytest.skip(message)


@pytest.fixture(scope="session")
def workings() -> dict[str, Working]:
    """Every built-in sheet, solved once."""
    return {name: headwork.solve(name) for name in built_in()}


@pytest.fixture
def matches() -> Callable[[str, str], None]:
    """Compare with a page under tests/golden; HEADWORK_UPDATE_GOLDEN=1 writes it anew, to be read first."""

    def compare(page: str, name: str) -> None:
        path = GOLDEN / name
        if os.environ.get("HEADWORK_UPDATE_GOLDEN"):
            path.write_text(page, "utf-8")
        assert page == path.read_text("utf-8")

    return compare


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium, without a window and without the network."""
    require("chromium", "playwright")
    from playwright.sync_api import sync_playwright

    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=[*quiet, "--disable-sync"])
        yield chromium
        chromium.close()
