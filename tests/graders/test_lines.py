"""Forms behind which headwork marks, run by Open edX's own capa and by PrairieLearn's contract: five students, each
with a sheet of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from headwork.marking.graders import export
from headwork.marking.graders.family import Family, load_family
from headwork.marking.graders.fields import fields
from headwork.marking.graders.paper import html, paper
from headwork.marking.mark import Marker
from headwork.sheets.load import load
from headwork.sheets.save import sheet_toml
from headwork.sheets.sheet import Sheet
from tests.graders.students import Parts, five, marks_of, parts_of

HERE = Path(__file__).parent
FIVE = ["right", "slipped", "blank", "malformed", "mistaken"]
PLATFORMS = ["openedx", "prairielearn"]
Results = dict[str, dict[str, Any]]


def typed(sheet: Sheet, parts: Parts) -> list[str]:
    """One line for every answer, in order."""
    each = (parts.get(field.part, {}).get(field.name, []) for field in fields(Marker(sheet)))
    return ["; ".join(" ".join(row) for row in rows) for rows in each]


def seed_of(family: Family, name: str) -> int:
    return list(family.texts).index(name)


class Platform:
    """A package and its consumer; results in one form: what share of the points, and line by line what is said."""

    def __init__(self, name: str, folder: Path, source: Path, consumers: Path) -> None:
        self.name, self.consumers = name, consumers
        self.folder = export(source, name, folder / "package")
        self.problem = source.stem

    def graded(self, cases: list[tuple[int, list[str]]]) -> list[dict[str, Any]]:
        """headwork is nowhere but in the package."""
        harness = HERE / {"openedx": "capa.py", "prairielearn": "prairielearn.py"}[self.name]
        problem = f"{self.problem}.xml" if self.name == "openedx" else self.problem
        command = [str(self.consumers / "python"), str(harness), problem]
        done = subprocess.run(
            command, cwd=self.folder, env={}, input=json.dumps(cases), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return [self._same(result) for result in json.loads(done.stdout)]

    def _same(self, result: dict[str, Any]) -> dict[str, Any]:
        if self.name == "openedx":
            said = [line["says"] for line in result["lines"]]
            kept = {"is": [line["is"] for line in result["lines"]], "after": result["page_after"]}
            return {**kept, "share": result["score"] / result["total"], "says": said, "page": result["page"]}
        said = list(result["feedback"].values())
        return {"share": result["score"], "says": said, "page": result["page"], "after": result["submission"]}


@pytest.fixture(scope="module", params=PLATFORMS)
def platform(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, consumers: Path, class_folder: Path
) -> Platform:
    return Platform(request.param, tmp_path_factory.mktemp(request.param), class_folder, consumers)


@pytest.fixture(scope="module")
def results(platform: Platform, sheets: dict[str, Sheet], class_folder: Path) -> Results:
    """Everybody on their own sheet; and one who answers somebody else's."""
    family = load_family(class_folder)
    cases = [(seed_of(family, who), typed(sheets[who], five(sheets[who])[who])) for who in FIVE]
    stranger = (seed_of(family, "blank"), typed(sheets["right"], parts_of(sheets["right"])))
    return dict(zip([*FIVE, "stranger"], platform.graded([*cases, stranger]), strict=True))


@pytest.mark.parametrize("who", FIVE)
def test_the_platform_gives_the_marks_that_headwork_gives(results: Results, sheets: dict[str, Sheet], who: str) -> None:
    marks = marks_of(sheets[who], five(sheets[who])[who])
    assert results[who]["share"] == pytest.approx(float(marks.score / marks.max_score))
    assert (results[who]["share"] == pytest.approx(1)) == (who == "right")
    assert (results[who]["share"] == 0) == (who == "blank")


def test_what_is_said(results: Results) -> None:
    """Why, line by line; and no right number, because students may try again."""
    assert "wrong in entry [1,1]" in results["slipped"]["says"][0]
    assert any("follows from an earlier answer" in said for said in results["slipped"]["says"])
    assert "could not be read" in results["malformed"]["says"][0]
    assert any("consistent with forgot-scale" in said for said in results["mistaken"]["says"])
    assert all("=" not in said for who in FIVE for said in results[who]["says"])
    assert "wrong in entry [1,1]" in results["slipped"]["after"]


def test_everybody_has_a_sheet_of_their_own(results: Results, sheets: dict[str, Sheet]) -> None:
    assert results["stranger"]["share"] < 0.8
    for who, sheet in sheets.items():
        given = next(html(piece.blocks) for piece in paper(Marker(sheet))).partition(r"\(X = ")[2].partition(r"\)")[0]
        assert given in results[who]["page"]
        assert all(given not in results[other]["page"] for other in FIVE if other != who)


def test_words_that_look_like_something_else(tmp_path: Path, consumers: Path) -> None:
    """One sheet for all, with a title and words that could be taken for something else; parts of unequal worth."""
    sheet = load("two-heads")
    text = sheet_toml(sheet).replace('title = "', 'title = "<A> & $seed: ', 1)
    source = tmp_path / "odd.toml"
    source.write_text(text, "utf-8")
    wanted = load(source)
    for name in PLATFORMS:
        platform = Platform(name, tmp_path / name, source, consumers)
        lines = typed(wanted, parts_of(wanted))
        (right,) = platform.graded([(7, lines)])
        assert "hw_words" not in right["page"]
        assert "{{" not in right["page"]
        expected = marks_of(wanted, parts_of(wanted))
        assert right["share"] == pytest.approx(float(expected.score / expected.max_score))
        if name == "openedx":
            assert {"correct", "incorrect"} >= set(right["is"])
