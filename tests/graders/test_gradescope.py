"""The zip, run as Gradescope runs it: an image of its own, no network, no headwork but the one in the zip."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from headwork.marking.graders import export
from headwork.sheets.load import load
from headwork.sheets.save import sheet_toml
from headwork.sheets.sheet import Sheet
from tests.graders.students import Parts, five, marks_of, notebook_cells, parts_of, toml

METADATA: dict[str, Any] = {
    "created_at": "2026-11-03T10:00:00.000000+01:00",
    "assignment": {"due_date": "2026-11-10T23:59:00.000000+01:00"},
    "users": [{"email": "zoe@example.org"}, {"email": "ada@example.org"}],
}


class Image:
    """/autograder as Gradescope lays it out."""

    def __init__(self, root: Path, package: Path, consumers: Path) -> None:
        self.root, self.consumers = root, consumers
        with zipfile.ZipFile(package) as archive:
            archive.extractall(root / "source")
            for entry in archive.infolist():
                (root / "source" / entry.filename).chmod(entry.external_attr >> 16)
        self.run("/autograder/source/setup.sh")

    def run(self, *command: str) -> None:
        """In a root that is read-only but for /autograder."""
        here = [
            str(folder) for folder in Path("/").iterdir() if folder.name not in ("autograder", "dev", "proc", "tmp")
        ]
        mounts = [word for folder in here for word in ("--ro-bind", folder, folder)]
        sandbox = ["bwrap", *mounts, "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--unshare-net"]
        python = ["--ro-bind", str(self.consumers.parent), str(self.consumers.parent)]  # wherever the checkout lies
        own = [*python, "--bind", str(self.root), "/autograder", "--chdir", "/autograder", "--clearenv"]
        path = ["--setenv", "PATH", f"{self.consumers}:/usr/bin:/bin"]
        subprocess.run([*sandbox, *own, *path, *command], check=True, timeout=60)

    def grade(self, files: dict[str, str], metadata: dict[str, Any] | None = None) -> dict[str, Any]:
        for folder in ("submission", "results"):
            for old in (self.root / folder).glob("*"):
                old.unlink()
            (self.root / folder).mkdir(exist_ok=True)
        for name, text in files.items():
            (self.root / "submission" / name).write_text(text, "utf-8")
        (self.root / "submission_metadata.json").write_text(json.dumps(metadata or METADATA), "utf-8")
        self.run("/autograder/source/run_autograder")
        found: dict[str, Any] = json.loads((self.root / "results" / "results.json").read_text("utf-8"))
        return found


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, consumers: Path, bubblewrap: str, sheet: Sheet) -> Image:
    made = tmp_path_factory.mktemp("gradescope")
    (made / "sheet.toml").write_text(sheet_toml(sheet), "utf-8")
    package = export(made / "sheet.toml", "gradescope", made / "package.zip")
    (made / "autograder").mkdir()
    return Image(made / "autograder", package, consumers)


@pytest.mark.parametrize("who", ["right", "slipped", "blank", "malformed"])
def test_gradescope_gives_the_marks_that_headwork_gives(image: Image, sheet: Sheet, who: str) -> None:
    parts = five(sheet)[who]
    marks = marks_of(sheet, parts)
    results = image.grade({"answers.toml": toml(parts)})
    assert results["score"] == pytest.approx(float(marks.score))
    assert results["extra_data"]["max_score"] == str(marks.max_score)
    marked = [test for test in results["tests"] if "max_score" in test]
    assert sum(test["score"] for test in marked) == pytest.approx(results["score"])
    assert [test["tags"] for test in marked] == [list(a.tags) for part in marks.parts for a in part.answers]
    assert {"right": 4, "slipped": 3, "blank": 0, "malformed": 3}[who] <= results["score"] <= 4


def test_a_slip_is_followed_and_its_working_is_for_later(image: Image, sheet: Sheet) -> None:
    """Students may hand in again: a right value must not be seen before the sheet is due."""
    answers = {"answers.toml": toml(parts_of(sheet, slip=True))}
    early = image.grade(answers)["tests"]
    assert "follows from an earlier answer" in early[-1]["output"] or any(
        "right from there on" in t["output"] for t in early
    )
    worked = [test for test in early if test["visibility"] == "after_due_date"]
    assert [test["name"] for test in worked] == ["(a) Q_1, worked"]
    assert all("=" not in test["output"] for test in early if test not in worked)
    late = image.grade(answers, {**METADATA, "created_at": "2026-11-11T00:00:00+01:00"})["tests"]
    assert "=" in late[0]["output"]
    assert {test["visibility"] for test in late} == {"visible"}


def test_a_mistake_is_named(image: Image, sheet: Sheet) -> None:
    results = image.grade({"answers.toml": toml(parts_of(sheet, mistake="forgot-scale"))})
    assert "forgot-scale" in results["extra_data"]["tags"]


def test_a_notebook_may_be_handed_in(image: Image, sheet: Sheet) -> None:
    cells = [{"cell_type": "code", "metadata": {}, "source": text} for text in notebook_cells(parts_of(sheet))]
    assert image.grade({"ada.ipynb": json.dumps({"nbformat": 4, "nbformat_minor": 5, "cells": cells})})["score"] == 4


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "Hand in one file of answers"),
        ({"a.toml": "", "b.toml": ""}, "a.toml, b.toml"),
        ({"a.toml": "[["}, "not a TOML file"),
        ({"a.csv": "student,a.Q_1\nAda,1\nBob,2\n"}, "2 students"),
        ({"a.csv": "x"}, "needs a first line"),
    ],
)
def test_whatever_is_handed_in_there_are_results(image: Image, files: dict[str, str], said: str) -> None:
    results = image.grade(files)
    assert results["score"] == 0
    assert said in results["output"]


def test_a_broken_image_still_says_something(image: Image) -> None:
    """Where Python cannot start, Gradescope would show nothing at all."""
    numbers = image.root / "source" / "headwork" / "errors.py"
    kept = numbers.read_bytes()
    numbers.write_text("1/0")
    try:
        with pytest.raises(subprocess.CalledProcessError):
            image.grade({})
        assert "tell your teacher" in json.loads((image.root / "results" / "results.json").read_text())["output"]
    finally:
        numbers.write_bytes(kept)


def test_everybody_has_a_sheet_of_their_own(
    tmp_path: Path, consumers: Path, bubblewrap: str, class_folder: Path
) -> None:
    """A student's sheet is called after them; of a group the first in the alphabet counts."""
    (tmp_path / "autograder").mkdir()
    image = Image(tmp_path / "autograder", export(class_folder, "gradescope", tmp_path / "class.zip"), consumers)
    for name in ("right", "blank"):
        answers: Parts = parts_of(load(class_folder / f"{name}.toml"))
        users = [{"email": f"{name}@example.org"}, {"email": "zoe@example.org"}]
        assert image.grade({"answers.toml": toml(answers)}, {**METADATA, "users": users})["score"] == 4
    assert image.grade({"answers.toml": toml(answers)}, METADATA)["score"] < 3  # handed in by somebody else
