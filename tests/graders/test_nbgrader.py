"""The folder, taken by nbgrader: an assignment generated, five notebooks graded and fed back."""

import csv
import json
import subprocess
from pathlib import Path

import pytest

from headwork.marking.answers import read_answers
from headwork.marking.graders import export
from headwork.marking.graders.paper import markdown, paper
from headwork.marking.mark import Marker
from headwork.sheets.sheet import Sheet
from tests.graders.students import filled_in, five, marks_of

CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "attention"
"""


@pytest.fixture(scope="module")
def course(
    tmp_path_factory: pytest.TempPathFactory, consumers: Path, class_folder: Path, sheets: dict[str, Sheet]
) -> Path:
    """A course in which everybody's notebook has been graded."""
    folder = export(class_folder, "nbgrader", tmp_path_factory.mktemp("nbgrader") / "course")
    (folder / "nbgrader_config.py").write_text(CONFIG)
    (name,) = (path.name for path in (folder / "source").iterdir())

    def nbgrader(*command: str) -> None:
        places = {
            "PATH": f"{consumers}:/usr/bin:/bin",
            "HOME": str(folder),
            "JUPYTER_DATA_DIR": str(folder / ".jupyter"),
        }
        done = subprocess.run(
            ["nbgrader", *command], cwd=folder, env=places, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr[-3000:]

    nbgrader("generate_assignment", name)
    released = (folder / "release" / name / f"{name}.ipynb").read_text("utf-8")
    for student, sheet in sheets.items():
        handed_in = folder / "submitted" / student / name / f"{name}.ipynb"
        handed_in.parent.mkdir(parents=True)
        own = released.replace('student = \\"...\\"', f'student = \\"{student.upper()}@example.org\\"')
        handed_in.write_text(filled_in(own, five(sheet)[student]), "utf-8")
    nbgrader("autograde", name)
    nbgrader("generate_feedback", name)
    nbgrader("export", "--to", "grades.csv")
    return folder


@pytest.mark.parametrize("who", ["right", "slipped", "blank", "malformed", "mistaken"])
def test_nbgrader_gives_the_marks_that_headwork_gives(course: Path, sheets: dict[str, Sheet], who: str) -> None:
    with (course / "grades.csv").open(encoding="utf-8", newline="") as file:
        grades = {row["student_id"]: row for row in csv.DictReader(file)}
    marks = marks_of(sheets[who], five(sheets[who])[who])
    assert float(grades[who]["score"]) == pytest.approx(float(marks.score))
    assert float(grades[who]["max_score"]) == pytest.approx(float(marks.max_score))


def test_the_feedback_says_why(course: Path) -> None:
    pages = {path.parent.parent.name: path.read_text("utf-8") for path in (course / "feedback").rglob("*.html")}
    assert "wrong in entry [1,1]" in pages["slipped"]
    assert "follows from an earlier answer" in pages["mistaken"]
    assert "consistent with forgot-scale" in pages["mistaken"]
    assert "could not be read" in pages["malformed"]
    assert "most recent call last" not in pages["right"]


def test_students_get_no_key(course: Path, sheets: dict[str, Sheet]) -> None:
    """What is released holds every sheet's givens and nobody's answers, and no headwork to ask for them."""
    (release,) = (course / "release").iterdir()
    assert sorted(path.suffix for path in release.iterdir()) == [".ipynb", ".json"]
    (notebook,) = release.glob("*.ipynb")
    assert "headwork" not in notebook.read_text("utf-8")
    assert set(json.loads((release / "papers.json").read_text("utf-8"))) == set(sheets)


def test_students_see_their_own_sheet(course: Path, sheets: dict[str, Sheet]) -> None:
    """The cell that shows it draws as the grader does: here by a name in capitals, from an e-mail address."""
    for student, sheet in sheets.items():
        (path,) = (course / "autograded" / student).rglob("*.ipynb")
        cell = next(c for c in json.loads(path.read_text("utf-8"))["cells"] if c["id"] == "own-sheet")
        (shown,) = cell["outputs"]
        assert "".join(shown["data"]["text/markdown"]) == "\n\n".join(markdown(p.blocks) for p in paper(Marker(sheet)))


def test_the_answers_come_back(course: Path, sheets: dict[str, Sheet]) -> None:
    """`headwork mark` on the course's folder gives the same marks once more."""
    found = {answers.student: answers for answers in read_answers(course)}
    assert set(found) == set(sheets)
    for student, sheet in sheets.items():
        marks = marks_of(sheet, five(sheet)[student])
        assert Marker(sheet).mark(found[student]).score == marks.score
