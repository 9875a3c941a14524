"""README in one screen, and what it shows is what happens: test_docs.py runs its blocks, here is what it must hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import headwork
from headwork.cli import app
from headwork.sheets.load import parse_sheet

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_it_is_one_screen() -> None:
    assert len(README.splitlines()) <= 100


def test_the_two_token_example_is_there_with_its_numbers() -> None:
    """Worked by the program from the sheet as printed: the outputs are those that a reader sees."""
    (sheet,) = re.findall(r'```toml title="two.toml"\n(.*?)```', README, re.DOTALL)
    working = headwork.solve(parse_sheet(sheet, "two.toml"))
    value = working["output"].value
    assert value is not None
    assert [str(entry) for entry in value[1]] == ["3"]
    assert "$ headwork solve two.toml" in README
    assert "≈ ⎡1.782⎤" in README


def test_an_answer_is_marked_and_its_mistake_named() -> None:
    assert "$ headwork mark two.toml ada.toml" in README
    assert "consistent with forgot-scale" in README


def test_six_rows_of_speed() -> None:
    (table,) = re.findall(r"^\| --- .*\n((?:\|.*\n)+)", README, re.M)
    assert len(table.splitlines()) == 6


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_is_what_the_program_draws(theme: str, tmp_path: Path) -> None:
    (picture,) = re.findall({"light": r'src="(docs/.*\.svg)"', "dark": r'srcset="(docs/.*\.svg)"'}[theme], README)
    arguments = ["draw", "two-heads", "--wide", "--theme", theme, "--output"]
    drawn = tmp_path / "drawn.svg"
    CliRunner().invoke(app, [*arguments, str(drawn)])
    assert (ROOT / picture).read_bytes() == drawn.read_bytes(), f"headwork {' '.join(arguments)} {picture}"


def test_the_documented_sheet_solves() -> None:
    """And with the part about gradients put behind it."""
    sheet, *others = blocks("docs/reference/sheets.md", "toml")
    part = next(block for block in others if 'kind = "gradient"' in block)
    working = headwork.solve(parse_sheet(f"{sheet}\n{part}", "sheets.md"))
    assert working["output"].value is not None
    assert working["d_W_Q", 1].value is not None


def test_the_two_commands_are_given() -> None:
    assert "make run" in README
    assert "make test" in README


def test_nobody_is_sent_to_an_index_where_the_package_is_not() -> None:
    """Until it is published, the name there is somebody else's to take."""
    shown = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py"), ROOT / "README.md", ROOT / "SECURITY.md"]
    wrong = [path.name for path in shown if re.search(r"pip install [\"']?headwork\b(?!-\d)", path.read_text("utf-8"))]
    assert not wrong
