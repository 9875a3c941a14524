"""What the README and the docs show is what happens."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import headwork
from headwork.render.save import rendered
from headwork.sheets.load import parse_sheet

ROOT = Path(__file__).parent.parent


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_example_prints_what_the_readme_says() -> None:
    sheet, page = blocks("README.md", "toml")[0], blocks("README.md", "text")[0]
    assert rendered(headwork.solve(parse_sheet(sheet, "two.toml")), ".txt") == page


def test_the_answer_is_marked_as_the_readme_says() -> None:
    (answers,) = re.findall(r'```toml title="ada.toml"\n(.*?)```', (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    sheet = blocks("README.md", "toml")[0].replace('find = ["output"]', 'find = ["scaled", "output"]')
    marks = headwork.mark(parse_sheet(sheet, "two.toml"), tomllib.loads(answers))
    assert blocks("README.md", "text")[1] in str(marks)


def test_the_python_examples_run() -> None:
    names: dict[str, object] = {}
    for code in blocks("README.md", "python"):
        exec(compile(code, "README.md", "exec"), names)  # our own text, not a user's
    assert names["working"]


def test_the_documented_sheet_solves() -> None:
    """And with the part about gradients put behind it."""
    sheet, part = blocks("docs/reference/sheets.md", "toml")
    working = headwork.solve(parse_sheet(f"{sheet}\n{part}", "sheets.md"))
    assert working["output"].value is not None
    assert working["d_W_Q", 1].value is not None


def test_the_two_commands_are_given() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make run" in readme
    assert "make test" in readme
