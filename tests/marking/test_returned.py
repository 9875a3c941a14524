"""Pages to hand back: own matrices, entry by entry, and everything in one folder."""

import csv
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwork.cli import app
from headwork.errors import HeadworkError
from headwork.marking.mark import mark
from headwork.marking.report import returned_blocks
from headwork.render.blocks import SIGNS
from headwork.render.colours import LIGHT, VERDICTS
from headwork.render.save import streamed
from headwork.sheets.load import parse_sheet
from tests.render.conftest import require

SHEET = """
formula = "scaled_dot_product"
scale = "none"
places = 2
[given]
Q = [[1, 0], [0, 1]]
K = [[1, 2], [0, 1]]
V = [[10, 0], [0, 10]]
[[part]]
label = "a"
find = ["scores"]
[[part]]
label = "b"
find = ["weights"]
[[part]]
label = "c"
find = ["head_output"]
"""
# The first score should be 1; the weights follow from 2, but for one; the first row of the output follows.
ANSWERS = {
    "student": "Ada",
    "a": {"scores": "2 0; 2 1"},
    "b": {"weights": "88% 0.12; 0.73 0.22"},
    "c": {"head_output[1,1]": "8.81", "head_output[1,2]": "1.19", "head_output[2,1]": "7.31"},
}


def page(ending: str) -> bytes:
    marks = mark(parse_sheet(SHEET, "test"), ANSWERS)
    pieces = streamed(ending, returned_blocks(marks))
    return b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)


def test_every_entry_has_a_verdict_of_its_own() -> None:
    parts = mark(parse_sheet(SHEET, "test"), ANSWERS).parts
    scores, weights, output = (part.answers[0].rows for part in parts)
    assert scores == ((("2", "wrong"), ("0", "right")), (("2", "right"), ("1", "right")))
    assert weights == ((("88%", "follows"), ("0.12", "follows")), (("0.73", "right"), ("0.22", "wrong")))
    assert [verdict for row in output for _, verdict in row] == ["follows", "follows", "right", "blank"]


def test_text_has_the_signs() -> None:
    text = page(".txt").decode()
    assert "⎡2 ✗  0 ✓⎤" in text
    assert re.search(r"⎡88%\s* →  0\.12 →⎤", text)
    assert "✓ right, → follows from an earlier answer, ✗ wrong" in text


def test_html_has_colours_and_signs_and_no_script() -> None:
    html = page(".html").decode()
    assert '<mtd class="verdict-wrong"><mtext>2 ✗</mtext></mtd>' in html
    assert '<mtd class="verdict-follows"><mtext>88% →</mtext></mtd>' in html
    assert {"verdict-right", "verdict-follows", "verdict-wrong", "verdict-blank"} <= set(
        re.findall(r"<mtd class=\"([\w-]+)\"", html)
    )
    assert "<script" not in html
    # One colour for a verdict, whether an entry has it or a whole answer.
    rules = re.findall(r"(\.finding [^{}]*) \{ color: var\(--(\w+)\)", html)
    coloured = {(verdict, colour) for names, colour in rules for verdict in re.findall(r"verdict-(\w+)", names)}
    assert {(verdict, LIGHT[colour]) for verdict, colour in coloured} == set(VERDICTS.items())


@pytest.mark.parametrize("ending", [".md", ".tex", ".pdf"])
def test_the_other_formats_set_them_as_matrices(ending: str, tmp_path: Path) -> None:
    if ending == ".pdf":
        require("typst", "pdftoppm")
        (tmp_path / "back.pdf").write_bytes(page(ending))
        shown = subprocess.run(["pdftotext", "-layout", "back.pdf", "-"], cwd=tmp_path, capture_output=True, check=True)
        rows = [re.findall(r"\d+\s*[✓→✗–]", line) for line in shown.stdout.decode().splitlines()]
        assert [["".join(cell.split()) for cell in row] for row in rows if row][:2] == [["2✗", "0✓"], ["2✓", "1✓"]]
        return
    text = page(ending).decode()
    assert r"\begin{bmatrix}" in text
    assert r"\text{88\%}\,\to" in text
    assert r"\times" in text
    assert ("a3231f" if ending == ".md" else "{0.64,0.14,0.12}") in text
    if ending == ".tex" and shutil.which("pdflatex"):
        (tmp_path / "back.tex").write_text(text)
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "back.tex"], cwd=tmp_path, capture_output=True
        )
        assert done.returncode == 0, done.stdout[-800:]


def test_a_folder_holds_a_page_for_each_the_class_and_a_table(tmp_path: Path) -> None:
    rows = ["student,1.a.joined", 'Ada,"1 2 5 6; 3 4 7 8"', 'ada,"1 2 3 4; 5 6 7 8"', "../class,", "=1+1,1"]
    (tmp_path / "class.csv").write_text("\n".join(rows))
    arguments = ["mark", "two-heads", str(tmp_path / "class.csv"), "--pages", str(tmp_path / "back")]
    result = CliRunner().invoke(app, arguments)
    assert result.output == f"4 pages, class.html and marks.csv in {tmp_path / 'back'}\n"
    names = {path.name for path in (tmp_path / "back").iterdir()}
    assert names == {"Ada.html", "ada-2.html", "class-2.html", "1_1.html", "class.html", "marks.csv"}
    page = (tmp_path / "back" / "ada-2.html").read_text("utf-8")
    assert f"3 {SIGNS['wrong']}" in page
    assert "Ada: 1 of 4" not in page
    with (tmp_path / "back" / "marks.csv").open() as file:
        assert [row["student"] for row in csv.DictReader(file)] == ["Ada", "ada", "../class", "'=1+1"]
    assert "4 students" in (tmp_path / "back" / "class.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output", "x.html"], "choose one of the two"),
        (["--format", "json"], "a page to hand back is not written as 'json'"),
    ],
)
def test_folders_that_cannot_be(tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "a.toml").write_text("")
    result = CliRunner().invoke(
        app, ["mark", "two-heads", str(tmp_path / "a.toml"), "--pages", str(tmp_path / "back"), *options]
    )
    assert isinstance(result.exception, HeadworkError)
    assert message in str(result.exception)
