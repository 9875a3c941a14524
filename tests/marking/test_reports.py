"""Reports in every format, from the command line."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headwork.cli import app
from headwork.errors import HeadworkError
from headwork.render.save import PAGES
from tests.render.conftest import require

ADA = 'student = "Ada <b>"\n[1.a]\njoined = [[1, 2, 5, 6], [3, 4, 7, 8]]\n'
BOB = 'student = "Bob"\n[1.a]\njoined = [[1, 2, 3, 4], [5, 6, 7, 8]]\n[2.a]\nQ_1 = "one two"\n'


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Result]:
    (tmp_path / "ada.toml").write_text(ADA)
    (tmp_path / "bob.toml").write_text(BOB)
    files = [str(tmp_path / name) for name in ("ada.toml", "bob.toml")]
    runner = CliRunner()
    return lambda *arguments, files=files: runner.invoke(app, ["mark", "two-heads", *files, *arguments])


def test_text(run: Callable[..., Result]) -> None:
    page = run().output
    assert "Ada <b>: 1 of 4" in page
    assert "joined: wrong in entries [1,3], [1,4], [2,1], [2,2]" in page
    assert "consistent with merged-untransposed" in page
    assert "joined[1,3] = an entry of head_2" in page
    assert "could not be read, and counts as no attempt" in page
    assert "you" not in page.lower().split()


def test_json(run: Callable[..., Result]) -> None:
    report = json.loads(run("--format", "json").output)
    assert report["schema"] == 1
    ada, bob = report["students"]
    assert (ada["student"], ada["score"], ada["max_score"]) == ("Ada <b>", 1, 4)
    answer = bob["parts"][0]["answers"][0]
    assert answer == {
        "name": "joined",
        "verdict": "wrong",
        "entries_wrong": [[1, 3], [1, 4], [2, 1], [2, 2]],
        "tags": ["merged-untransposed"],
        "advice": "The heads look merged without moving tokens first: row i of every head belongs together.",
    }
    assert bob["parts"][0]["score"] == "1/2"


class Tags(HTMLParser):
    """Every element that opens."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)


@pytest.mark.parametrize("format", ["html", "class"])
def test_html_is_self_contained_and_escaped(run: Callable[..., Result], tmp_path: Path, format: str) -> None:
    out = tmp_path / "page.html"
    assert run("--format", format, "--output", str(out)).exit_code == 0
    page = out.read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "Ada <b>" not in page
    assert not {"script", "img"} & set(Tags(page).found)
    assert "http" not in page
    assert "merged-untransposed" in page


@pytest.mark.parametrize("report", [[], ["--format", "class"]], ids=["students", "class"])
@pytest.mark.parametrize("ending", PAGES)
def test_every_form_of_a_page(run: Callable[..., Result], tmp_path: Path, ending: str, report: list[str]) -> None:
    """One description, set by every format that pages have; the file's ending chooses."""
    if ending == ".pdf":
        require("typst")
    out = tmp_path / f"marks{ending}"
    assert run(*report, "--output", str(out)).exit_code == 0
    written = out.read_bytes()
    if ending == ".pdf":
        assert written.startswith(b"%PDF")
    else:
        plain = written.decode().replace("\\", "")
        assert "merged-untransposed" in plain
        assert report or "consistent with" in plain


def test_a_class_page_counts_the_commonest_first(tmp_path: Path) -> None:
    rows = ["student,1.a.joined"]
    rows += [f'a{i},"1 2 3 4; 5 6 7 8"' for i in range(3)]
    rows += [f'b{i},"5 6 1 2; 7 8 3 4"' for i in range(5)]
    rows += ['c,"1 2 5 6; 3 4 7 8"']
    (tmp_path / "class.csv").write_text("\n".join(rows) + "\n")
    page = CliRunner().invoke(app, ["mark", "two-heads", str(tmp_path / "class.csv"), "--format", "class"]).output
    assert "9 students" in page
    assert re.search(
        r"<td>heads-reordered</td><td>[^<]+</td><td>b0, b1, b2, b3, b4</td><td[^>]*><math><mn>5</mn></math></td>", page
    )
    assert page.index("heads-reordered") < page.index("merged-untransposed")


def test_a_class_csv(run: Callable[..., Result]) -> None:
    rows = list(csv.DictReader(run("--format", "csv").output.splitlines()))
    assert [(r["student"], r["score"], r["1.a"], r["tags"]) for r in rows] == [
        ("Ada <b>", "1", "1", ""),
        ("Bob", "0.5", "0.5", "merged-untransposed"),
    ]


def test_gradescope(run: Callable[..., Result], tmp_path: Path) -> None:
    results = json.loads(run("--format", "gradescope", files=[str(tmp_path / "bob.toml")]).output)
    assert set(results) <= {
        *("score", "execution_time", "output", "visibility", "stdout_visibility", "extra_data", "tests", "leaderboard")
    }
    assert results["score"] == 0.5
    test = results["tests"][0]
    assert set(test) <= {
        *(
            "score",
            "max_score",
            "name",
            "number",
            "output",
            "output_format",
            "tags",
            "visibility",
            "extra_data",
            "status",
        )
    }
    assert (test["score"], test["max_score"], test["status"], test["tags"]) == (
        0.5,
        1.0,
        "failed",
        ["merged-untransposed"],
    )
    assert sum(t["max_score"] for t in results["tests"]) == pytest.approx(4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "docx"], "there is no format 'docx'"),
        (["--output", "marks.docx"], "marks are not written as '.docx'"),
        (["--format", "gradescope"], "one student's answers at a time"),
    ],
)
def test_formats_that_cannot_be(run: Callable[..., Result], arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, HeadworkError)
    assert message in str(result.exception)
