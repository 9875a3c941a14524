"""What comes back from Gradescope, nbgrader, otter, Moodle and Canvas, and hostile packs."""

import contextlib
import csv
import io
import json
import time
import zipfile
from pathlib import Path
from random import Random

import pytest

from headwork.errors import HeadworkError
from headwork.marking.answers import Answers, read_answers
from headwork.marking.mark import Marker
from headwork.sheets.load import load
from tests.marking.test_answers import RIGHT, written

SHEET = load("two-heads")
MARKER = Marker(SHEET)
GOOD = '["1.a"]\njoined = "1 2 5 6; 3 4 7 8"\n'
WRONG = '["1.a"]\njoined = "1 2 5 6; 3 4 7 9"\n'
NOTEBOOK = json.dumps({"cells": [{"cell_type": "code", "source": "# part 1.a\njoined = [[1, 2, 5, 6], [3, 4, 7, 8]]"}]})
METADATA = """---
submission_11:
  :submitters:
  - :name: Ada Lovelace
    :sid: '100'
    :email: ada@example.org
  :created_at: 2026-11-03 10:00:00.000000000 Z
  :score: 0.0
  :results:
    :tests:
    - :name: "x"
      :output: |
        :submitters:
submission_12:
  :submitters:
  - :name: Zoe
    :sid:
    :email: zoe@example.org
  - :name: "Bob O'Neil"
    :sid: '102'
"""


def verdicts(path: Path) -> dict[str, str]:
    students = list(read_answers(path, SHEET))
    return {s.student: s.unreadable or MARKER.mark(s).parts[0].answers[0].verdict for s in students}


def packed(path: Path, files: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def laid_out(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    return folder


def test_gradescopes_export(tmp_path: Path) -> None:
    """The names stand in its metadata; everybody in a group has the group's marks."""
    files = {
        "submission_metadata.yml": METADATA,
        "submission_11/answers.toml": GOOD,
        "submission_11/__MACOSX/answers.toml": WRONG,
        "submission_11/read me.txt": "x",
        "submission_12/mine.toml": WRONG,
        "submission_13/a.toml": GOOD,
        "submission_13/b.toml": GOOD,
    }
    wanted = {"ada@example.org": "right", "zoe@example.org": "wrong", "Bob O'Neil": "wrong"}
    for path in (
        packed(tmp_path / "export.zip", {f"assignment_7_export/{name}": text for name, text in files.items()}),
        laid_out(tmp_path / "folder", files),
    ):
        found = verdicts(path)
        assert {name: found[name] for name in wanted} == wanted
        assert "one file of answers" in found["submission_13"]
        assert len(found) == 4


def test_nbgraders_folders(tmp_path: Path) -> None:
    course = laid_out(
        tmp_path / "course",
        {
            "source/hw1/hw1.ipynb": NOTEBOOK,
            "submitted/ada/hw1/hw1.ipynb": NOTEBOOK,
            "submitted/ada/hw1/timestamp.txt": "2026",
            "submitted/bob/hw1/hw1.ipynb": "{",
        },
    )
    found = verdicts(course)
    assert found == verdicts(course / "submitted")
    assert list(found) == ["ada", "bob"]
    assert found["ada"] == "right"
    assert "not a notebook" in found["bob"]


def test_one_of_several_assignments_that_nbgrader_collected(tmp_path: Path) -> None:
    """As a shell writes submitted/*/hw1 and submitted/*/hw1/*.ipynb out."""
    other = NOTEBOOK.replace("[3, 4, 7, 8]", "[0, 0, 0, 0]")
    files = {
        f"submitted/{who}/{hw}/{hw}.ipynb": other if hw == "hw2" else NOTEBOOK
        for who in ("ada", "bob")
        for hw in ("hw1", "hw2")
    }
    course = laid_out(tmp_path / "course", files)
    for pattern in ("submitted/*/hw1", "submitted/*/hw1/*.ipynb"):
        found = [verdicts(path) for path in sorted(course.glob(pattern))]
        assert found == [{"ada": "right"}, {"bob": "right"}]
    assert all("one file of answers" in said for said in verdicts(course).values())


def test_otters_notebooks_and_zips(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("hw1.ipynb", NOTEBOOK)
        archive.writestr(".OTTER_LOG", b"x")
    path = packed(tmp_path / "all.zip", {"ada.ipynb": NOTEBOOK, "bob.zip": inner.getvalue(), "cy.zip": b"no zip"})
    found = verdicts(path)
    assert found["ada"] == found["bob"] == "right"
    assert "zip that cannot be read" in found["cy"]


def behind_a_password(pack: bytes) -> bytes:
    """The same zip with the bit that says so."""
    return pack.replace(b"PK\x03\x04\x14\x00\x00", b"PK\x03\x04\x14\x00\x01").replace(
        b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"
    )


def test_one_zip_behind_a_password_costs_nobody_else_their_marks(tmp_path: Path) -> None:
    own = behind_a_password(packed(tmp_path / "own.zip", {"a.toml": GOOD}).read_bytes())
    found = verdicts(packed(tmp_path / "all.zip", {"ada/own.zip": own, "bob/a.toml": GOOD}))
    assert found["bob"] == "right"
    assert "password" in found["ada"]
    all_of_it = tmp_path / "locked.zip"
    all_of_it.write_bytes(behind_a_password(packed(all_of_it, {"ada.toml": GOOD, "bob.toml": GOOD}).read_bytes()))
    assert {student: "password" in said for student, said in verdicts(all_of_it).items()} == {"ada": True, "bob": True}


def test_a_damaged_zip_is_one_that_cannot_be_read(tmp_path: Path) -> None:
    """Wherever the damage is: each part of zipfile raises something else."""
    draw = Random(13)
    sound = packed(
        tmp_path / "sound.zip", {"ada.toml": GOOD * 9, "bob/a.ipynb": NOTEBOOK, "cy.zip": b"no zip"}
    ).read_bytes()
    for _ in range(400):
        content = bytearray(sound)
        for _each in range(draw.randint(1, 6)):
            content[draw.randrange(len(content))] = draw.choice([0, 1, 255, draw.randrange(256)])
        path = tmp_path / "damaged.zip"
        path.write_bytes(content)
        with contextlib.suppress(HeadworkError):
            list(read_answers(path))


def test_a_file_that_lies_alone_says_whose_it_is(tmp_path: Path) -> None:
    """As if it were given by itself; in somebody's folder the folder counts."""
    answer = '["1.a"]\njoined = "1 2 5 6; 3 4 7 8"\n'
    named = f'student = "Ada L."\n{answer}'
    files: dict[str, str | bytes] = {"answers (3).toml": named, "bob.toml": answer, "cy/answers.toml": named}
    assert verdicts(packed(tmp_path / "all.zip", files)) == {"Ada L.": "right", "bob": "right", "cy": "right"}


def test_a_folder_around_everybodys_is_nobodys(tmp_path: Path) -> None:
    for files in (
        {"hw 1/ada.toml": GOOD, "hw 1/bob.toml": WRONG},
        {"hw 1/ada/a.toml": GOOD, "hw 1/bob/b.toml": WRONG, "hw 1/read me.txt": "x"},
    ):
        assert verdicts(packed(tmp_path / "all.zip", dict(files))) == {"ada": "right", "bob": "wrong"}
    assert verdicts(packed(tmp_path / "all.zip", {"ada/a.toml": GOOD, "ada/x.txt": ""})) == {"ada": "right"}
    alone = {"submission_metadata.yml": METADATA, "submission_11/a.toml": GOOD, "submission_11/b.toml": GOOD}
    assert list(verdicts(packed(tmp_path / "all.zip", dict(alone)))) == ["ada@example.org"]


def test_files_that_moodle_and_canvas_collected(tmp_path: Path) -> None:
    """Moodle: a folder with name and number; Canvas: a file with the gradebook's ID in its name."""
    moodle = {
        "Ada Lovelace_4711_assignsubmission_file_/answers.toml": GOOD,
        "Renée O'Neil_4712_assignsubmission_file/answers.toml": WRONG,
    }
    canvas = {
        "lovelaceada_4711_98123_answers.toml": GOOD,
        "oneilrenee_LATE_4712_98124_answers-2.toml": WRONG,
        "zoe_4713_98125_answers.toml": f'student = "Zoe"\n{GOOD}',
    }
    assert verdicts(packed(tmp_path / "moodle.zip", dict(moodle))) == {"Ada Lovelace": "right", "Renée O'Neil": "wrong"}
    wanted = {"4711": "right", "4712": "wrong", "Zoe": "right"}
    assert verdicts(packed(tmp_path / "submissions.zip", dict(canvas))) == wanted


def test_a_pack_that_swells_is_not_swallowed(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.toml", b"9" * 80_000_000)
    path = packed(tmp_path / "bomb.zip", {"ada.toml": b"9" * 80_000_000, "bob.zip": inner.getvalue(), "cy.toml": GOOD})
    start = time.process_time()
    found = verdicts(path)
    assert time.process_time() - start < 5
    assert "at most 1,000,000" in found["ada"]
    assert "at most 1,000,000" in found["bob"]
    assert found["cy"] == "right"
    with pytest.raises(HeadworkError, match="not a zip that can be read"):
        list(read_answers(written(tmp_path / "bad.zip", b"PK\x03\x04nothing")))
    with pytest.raises(HeadworkError, match="no file of answers"):
        list(read_answers(packed(tmp_path / "empty.zip", {"x.txt": ""})))


def test_names_that_climb_out_of_a_pack_go_nowhere(tmp_path: Path) -> None:
    found = verdicts(packed(tmp_path / "climb.zip", {"../../up.toml": GOOD, "/etc/passwd.toml": GOOD}))
    assert set(found.values()) <= {"right"}
    assert not list(tmp_path.glob("**/up.toml"))


ONE = """formula = "dot_product"
[given]
Q = [[1, 2]]
K = [[1, 1], [0, 2]]
V = [[1], [2]]
[[part]]
label = "a"
find = ["scores"]
[[part]]
label = "b"
find = ["weights[1]"]
"""


def rows(path: Path, lines: list[list[str]], delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(lines)
    return path


def of(path: Path, folder: Path) -> dict[str, Answers]:
    sheet = load(written(folder / "one.toml", ONE))
    return {answers.student: answers for answers in read_answers(path, sheet)}


@pytest.mark.parametrize(("part", "point"), [("part", "."), ("Teil", ","), ("partie", ","), ("部分", ".")])
def test_moodles_responses_in_any_language(tmp_path: Path, part: str, point: str) -> None:
    half = f"0{point}2689"
    typed = f"{part} 1: 3; {part} 2: 4; {part} 3: {half}; {part} 4: 0{point}7311"
    header = ["Nachname", "Vorname", "E-Mail-Adresse", "Status", "Bewertung/10,00", "Frage 1", "Antwort 1"]
    lines = [
        header,
        ["Lovelace", "Ada", "ada@example.org", "Beendet", "10,00", "Sheet 1: 2; _____", typed],
        ["Nobody", "Bob", "", "Beendet", "0,00", "Sheet", "-"],
        [
            "Half",
            "Cy",
            "cy@example.org",
            "Beendet",
            "5,00",
            "Sheet",
            f"{part} 1: 3; {part} 2: ; {part} 3: ; {part} 4: ",
        ],
        ["Other", "Di", "di@example.org", "Beendet", "5,00", "Sheet", f"{part} 1: 3; {part} 2: 4"],
        ["Gesamtdurchschnitt", "", "", "", "5,00", "", ""],
    ]
    found = of(rows(tmp_path / "responses.csv", lines), tmp_path)
    ada = found["ada@example.org"].parts
    assert ada == {
        "a": {"scores[1,1]": "3", "scores[1,2]": "4"},
        "b": {"weights[1,1]": "0.2689", "weights[1,2]": "0.7311"},
    }
    marks = Marker(load(tmp_path / "one.toml")).mark(found["ada@example.org"])
    assert marks.score == marks.max_score
    assert found["Nobody Bob"].parts == {}
    assert found["cy@example.org"].parts == {"a": {"scores[1,1]": "3"}}
    assert "another sheet" in found["di@example.org"].unreadable


def test_canvass_student_analysis(tmp_path: Path) -> None:
    names = ["a.scores[1,1]", "a.scores[1,2]", "b.weights[1,1]", "b.weights[1,2]"]
    asked = [x for i, name in enumerate(names) for x in (f"{870 + i}: {name} row, column", "0.5")]
    lines = [
        ["name", "id", "sis_id", "section", "section_id", "section_sis_id", "submitted", *asked, "n correct", "score"],
        [
            "Ada",
            "1",
            "100",
            "One",
            "9",
            "",
            "2026-11-03 10:00:00 UTC",
            "3",
            "0.5",
            "4",
            "0.5",
            "0.27",
            "0.5",
            "0.73",
            "0.5",
            "4",
            "2",
        ],
        [
            "Bob",
            "2",
            "101",
            "One",
            "9",
            "",
            "2026-11-03 10:00:00 UTC",
            "3",
            "0.5",
            "",
            "0",
            "",
            "0",
            "",
            "0",
            "1",
            "0.5",
        ],
    ]
    found = of(rows(tmp_path / "analysis.csv", lines), tmp_path)
    assert Marker(load(tmp_path / "one.toml")).mark(found["Ada"]).score == 2
    assert found["Bob"].parts == {"a": {"scores[1,1]": "3"}}


def test_right_by_columns(tmp_path: Path) -> None:
    path = rows(tmp_path / "ours.csv", [["student", "1.a.joined"], ["Ada", "; ".join(" ".join(r) for r in RIGHT)]])
    assert verdicts(path) == {"Ada": "right"}
