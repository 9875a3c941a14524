"""The folder, taken by `otter generate` and graded by `otter run`: five students, each with a sheet of their own."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from headwork.marking.answers import read_answers
from headwork.marking.class_marker import ClassMarker, load_class
from headwork.marking.graders import export
from headwork.sheets.sheet import Sheet
from tests.graders.students import filled_in, five, marks_of, parts_of

# What `otter run` does with its arguments, for many: otter takes longer to load than to grade.
RUN = """
import sys
from otter.run import main
for name in sys.argv[1:]:
    main(f"{name}.ipynb", autograder="autograder.zip", output_dir=f"out-{name}", no_logo=True)
"""


@pytest.fixture(scope="module")
def results(
    tmp_path_factory: pytest.TempPathFactory, consumers: Path, class_folder: Path, sheets: dict[str, Sheet]
) -> dict[str, Any]:
    """Student → results.json. headwork comes from the wheel in the folder, and from nowhere else."""
    folder = export(class_folder, "otter", tmp_path_factory.mktemp("otter") / "package")
    (wheel,) = folder.glob("headwork-*.whl")
    environment = {"PATH": f"{consumers}:/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(folder / "site")}

    def run(*command: str | Path) -> None:
        subprocess.run(list(map(str, command)), cwd=folder, env=environment, check=True, timeout=300)

    run(consumers / "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", "site", wheel)
    generate = ["otter", "generate", "-t", "tests", "-c", "otter_config.json", "-r", "requirements.txt"]
    run(consumers / generate[0], *generate[1:], "-o", "autograder.zip", wheel.name)
    handed_in = {name: five(sheet)[name] for name, sheet in sheets.items()}
    handed_in["stranger"] = handed_in["right"]  # with somebody else's answers
    handed_in["mistaken"]["z"] = {"import os; os._exit(1); x": [["0"]]}
    for name, parts in handed_in.items():
        blank = folder / "notebooks" / f"{name if name in sheets else 'right'}.ipynb"
        (folder / f"{name}.ipynb").write_text(filled_in(blank.read_text("utf-8"), parts), "utf-8")
        (folder / f"out-{name}").mkdir()
    run(consumers / "python", "-c", RUN, *list(handed_in)[1:])
    first = next(iter(handed_in))
    run(consumers / "otter", "run", "-a", "autograder.zip", "-o", f"out-{first}", "--no-logo", f"{first}.ipynb")
    return {name: json.loads((folder / f"out-{name}" / "results.json").read_text("utf-8")) for name in handed_in}


def score(result: dict[str, Any]) -> float:
    return sum(float(test.get("score", 0)) for test in result["tests"])


@pytest.mark.parametrize("who", ["right", "slipped", "blank", "malformed"])
def test_otter_gives_the_marks_that_headwork_gives(results: dict[str, Any], sheets: dict[str, Sheet], who: str) -> None:
    marks = marks_of(sheets[who], five(sheets[who])[who])
    marked = [test for test in results[who]["tests"] if "max_score" in test]
    assert score(results[who]) == pytest.approx(float(marks.score), abs=1e-4)
    assert sum(test["max_score"] for test in marked) == pytest.approx(float(marks.max_score), abs=1e-4)
    assert len(marked) == sum(len(part.answers) for part in marks.parts)
    assert {test["visibility"] for test in marked} == {"visible"}
    said = {"slipped": "wrong in entry [1,1]", "malformed": "could not be read", "blank": "blank", "right": "passed"}
    assert any(said[who] in test["output"] for test in marked)


def test_nothing_of_a_students_is_run_and_a_mistake_is_named(results: dict[str, Any], sheets: dict[str, Sheet]) -> None:
    """A cell that stops Python costs nobody a point."""
    marks = marks_of(sheets["mistaken"], parts_of(sheets["mistaken"], mistake="forgot-scale"))
    assert score(results["mistaken"]) == pytest.approx(float(marks.score), abs=1e-4)
    assert any("consistent with forgot-scale" in test["output"] for test in results["mistaken"]["tests"])


def test_everybody_has_a_sheet_of_their_own(results: dict[str, Any]) -> None:
    assert score(results["stranger"]) < 3.5


def test_the_notebooks_come_back(class_folder: Path, sheets: dict[str, Sheet], tmp_path: Path) -> None:
    """Collected in a folder or a zip, they are marked on everybody's own sheet once more."""
    package = export(class_folder, "otter", tmp_path / "package")
    with zipfile.ZipFile(tmp_path / "collected.zip", "w") as archive:
        for name, sheet in sheets.items():
            blank = (package / "notebooks" / f"{name}.ipynb").read_text("utf-8")
            archive.writestr(f"hw1/{name}.ipynb", filled_in(blank, five(sheet)[name]))
    marker = ClassMarker(load_class(class_folder))
    with zipfile.ZipFile(tmp_path / "collected.zip") as archive:
        archive.extractall(tmp_path / "folder")
    for collected in (tmp_path / "collected.zip", tmp_path / "folder" / "hw1"):
        found = {answers.student: marker.mark(answers).score for answers in read_answers(collected)}
        assert found == {name: marks_of(sheet, five(sheet)[name]).score for name, sheet in sheets.items()}
