"""Answers in every format, and hostile ones: reported within a second, never run."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwork.errors import HeadworkError
from headwork.marking.answers import Answers, one_student, read_answers
from headwork.marking.class_marker import read_overrides
from headwork.marking.gradebook import fill
from headwork.marking.mark import Marker, mark
from headwork.marking.roster import read_roster
from headwork.marking.spreadsheet import class_csv, harmless
from headwork.sheets.load import load

RIGHT = [["1", "2", "5", "6"], ["3", "4", "7", "8"]]
MARKER = Marker(load("two-heads"))


def verdict(answers: Answers) -> str:
    return MARKER.mark(answers).parts[0].answers[0].verdict


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ada.toml", 'student = "Ada"\n[1.a]\njoined = [["1", 2, 5.0, "12/2"], [3, 4, 7, "sqrt(64)"]]\n'),
        ("ada.toml", '["1.a"]\njoined = "1 2 5 6; 3 4 7 8"\n'),
        ("ada.json", json.dumps({"student": "Ada", "1": {"a": {"joined": RIGHT}}})),
        ("ada.json", '{"1.a": {"joined": [[1, 2, 5, 6], [3, 4, 7.00, 8]]}}'),
        ("ada.csv", 'student,1.a.joined\nAda,"1 2 5 6; 3 4 7 8"\n'),
        (
            "ada.csv",
            '\ufeffstudent,1.a.joined\nAda,"[[1, 2, 5, 6], [3, 4, 7, 8]]"\n',
        ),
    ],
)
def test_every_format_says_the_same(tmp_path: Path, name: str, content: str) -> None:
    assert verdict(one_student(written(tmp_path / name, content))) == "right"


def test_a_csv_has_a_student_in_every_row_and_may_have_a_column_for_every_entry(tmp_path: Path) -> None:
    places = [f"1.a.joined[{i},{j}]" for i in (1, 2) for j in (1, 2, 3, 4)]
    rows = [
        ["student", *places],
        ["Ada", *RIGHT[0], *RIGHT[1]],
        ["Bob", *RIGHT[0], *RIGHT[1][:-1], "9"],
        ["Cy", *[""] * 8],
        ["D"],
    ]
    text = "".join(",".join(f'"{x}"' for x in row) + "\n" for row in rows)
    students = list(read_answers(written(tmp_path / "class.csv", text)))
    assert [s.student for s in students] == ["Ada", "Bob", "Cy", "D"]
    assert [verdict(s) for s in students[:3]] == ["right", "wrong", "blank"]
    assert "line 5 has 1 cells" in students[3].unreadable


@pytest.mark.parametrize("box", ["", "oops", " "])
def test_a_box_that_is_blank_or_unreadable_costs_itself_alone(box: str) -> None:
    """Where every entry has a box of its own, the others are marked; later answers rest on the right number there."""
    boxes = {f"joined[{i + 1},{j + 1}]": x for i, row in enumerate(RIGHT) for j, x in enumerate(row)}
    joined = MARKER.mark(Answers("x", {"1.a": {**boxes, "joined[2,3]": box}})).parts[0].answers[0]
    assert joined.verdict == "wrong"
    assert joined.right == 7
    assert joined.entries_wrong == ((2, 3),)
    assert "1 entry that is blank or could not be read" in joined.message
    assert not joined.tags
    nothing = MARKER.mark(Answers("x", {"1.a": {"joined[2,3]": "oops"}})).parts[0].answers[0]
    assert nothing.verdict == "malformed"


def test_a_blank_entry_in_a_matrix_costs_itself_alone() -> None:
    joined = MARKER.mark(Answers("x", {"1.a": {"joined": [["", "2", "5", "6"], RIGHT[1]]}})).parts[0].answers[0]
    assert joined.right == 7


@pytest.mark.parametrize(("source", "found"), [("", {}), ("x", {}), ("Q = ...", {}), ("Q = '1 2'  # so", {"Q": "1 2"})])
def test_a_cell_of_a_notebook_may_answer_nothing(tmp_path: Path, source: str, found: dict[str, str]) -> None:
    cell = {"cell_type": "code", "source": f"# part 1.a\n{source}"}
    path = written(tmp_path / "ada.ipynb", json.dumps({"cells": [cell]}))
    assert one_student(path).parts == {"1.a": found}


def test_a_notebook_is_read_and_not_run(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    trap = tmp_path / "ran"
    cells = [
        nbformat.v4.new_markdown_cell("# part 1.a"),
        nbformat.v4.new_code_cell("# part 1.a\njoined = [[1, 2, 5, 6],\n          [3, 4, 7, 8]]  # side by side\n"),
        nbformat.v4.new_code_cell(f"# part 2.a\nopen({str(trap)!r}, 'w')\nQ_1 = __import__('os').getcwd()"),
    ]
    path = written(tmp_path / "ada.ipynb", nbformat.writes(nbformat.v4.new_notebook(cells=cells)))
    answers = one_student(path)
    marks = MARKER.mark(answers)
    assert marks.parts[0].answers[0].verdict == "right"
    assert marks.parts[1].answers[0].verdict == "malformed"
    assert not trap.exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.toml", "x = [", "not a TOML file"),
        ("a.toml", "x = 3", "outside a part"),
        ("a.json", "[1, 2]", "must hold an object"),
        ("a.json", "{", "not a JSON file"),
        ("a.toml", "[a]\nQ = ".encode("utf-16"), "not text in UTF-8"),
        ("a.toml", b"[a]\nQ = '\xff\xfe'", "not text in UTF-8"),
        ("a.json", "[" * 100_000, "nesting too deep"),
        ("a.toml", "[a]\nQ = " + "[" * 50_000, "nesting too long|not a TOML file"),
        ("a.toml", "[a]\nQ = " + "9" * 900_000, "too long to read"),
        ("a.json", '{"a": {"Q": ' + "9" * 10_000_000 + "}}", "at most 1,000,000"),
        ("a.ipynb", "{}", "not a notebook|no cell"),
        ("a.ipynb", "[" * 50_000, "not a notebook|nesting"),
    ],
)
def test_files_that_cannot_be_read_are_reported_at_once(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    if name.endswith("ipynb"):
        pytest.importorskip("nbformat")
    path = written(tmp_path / name, content)
    start = time.process_time()
    (student,) = read_answers(path)
    assert time.process_time() - start < 1
    with pytest.raises(HeadworkError, match=message):
        one_student(path)
    assert MARKER.mark(student).note == student.unreadable  # the others are still marked


@pytest.mark.parametrize(
    "hostile",
    [
        "__import__('os').system('true')",
        "NaN",
        "nan",
        "inf",
        "1e400",
        "1e40*1e40*1e40*1e40*1e40*1e40*1e40*1e40*1e40",
        "9" * 19_000,
        "9**9**9**9",
        "(" * 5_000,
        "sqrt(" * 15 + "2" + ")" * 15,
        "=HYPERLINK(1)",
        "𝟏𝟐",
        "\u202e3",
        "\x00",
        {"a": 1},
        True,
        [[[[1]]]],
        [],
        [[], []],
        [["1"] * 200] * 200,
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_hostile_numbers_are_malformed_within_a_second(hostile: Any, whole: bool) -> None:
    matrix: Any = hostile if whole else [[hostile, "2", "5", "6"], RIGHT[1]]
    start = time.process_time()
    answer = MARKER.mark(Answers("x", {"1.a": {"joined": matrix}})).parts[0].answers[0]
    assert time.process_time() - start < 1
    assert answer.verdict in ("malformed", "blank")
    assert answer.right == 0
    assert len(answer.message) < 300


def test_ten_megabytes_in_a_csv(tmp_path: Path) -> None:
    path = written(tmp_path / "big.csv", "student,1.a.joined\nAda," + "9" * 10_000_000 + "\n")
    start = time.process_time()
    with pytest.raises(HeadworkError, match="more than 1,000,000 characters"):
        list(read_answers(path))
    assert time.process_time() - start < 1
    before = csv.field_size_limit()
    with pytest.raises(HeadworkError, match="line 2: a cell has at most 20,000 characters"):
        list(read_answers(written(path, "student,1.a.joined\nAda," + "9" * 100_000 + "\n")))
    assert csv.field_size_limit() == before, "the process's own, which others in it read by"


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="only POSIX has a file without an end")
@pytest.mark.parametrize("read", [load, read_roster, read_overrides, lambda path: list(fill(path, "", []))])
def test_a_file_without_an_end_is_not_read_to_it(read: Callable[[Path], Any]) -> None:
    with pytest.raises(HeadworkError, match=r"more than|at most"):
        read(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name,a.Q\nAda,1\n", "needs a first line with 'student'"),
        ("student,Q\nAda,1\n", "must be written part.name"),
        ("", "needs a first line"),
        ("student,a.Q\n".encode("utf-16"), "not text in UTF-8"),
        (b"student,a.Q\nAd\xe4,1\n", "not text in UTF-8"),
    ],
)
def test_a_csv_that_cannot_be_read(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(HeadworkError, match=message):
        list(read_answers(written(tmp_path / "class.csv", content)))


def test_a_csv_of_ours_is_never_taken_for_moodles(tmp_path: Path) -> None:
    """Whose everybody would be blank: Student is student, and answers without one are asked back."""
    rows = ',1.a.joined,2.a.Q_1\nAda,"1 2 5 6; 3 4 7 8",\n'
    (ada,) = read_answers(written(tmp_path / "class.csv", f"Student{rows}"), load("two-heads"))
    assert mark("two-heads", ada).score == 1
    with pytest.raises(HeadworkError, match="needs a first line with 'student'"):
        list(read_answers(written(tmp_path / "class.csv", f"who{rows}"), load("two-heads")))


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "  =1", "|cmd", "\r=1"])
def test_a_csv_of_ours_injects_no_formula(name: str) -> None:
    lines = "".join(class_csv([mark("two-heads", {"student": name})]))
    student = list(csv.reader(io.StringIO(lines)))[1][0]
    assert student.startswith("'")
    assert harmless("Ada O'Neil") == "Ada O'Neil"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(HeadworkError, match="holds no file of answers"):
        list(read_answers(tmp_path))
    with pytest.raises(HeadworkError, match="there is no file"):
        list(read_answers(tmp_path / "no.toml"))
    written(tmp_path / "x.pkl", b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(HeadworkError, match="is no file of answers"):
        list(read_answers(tmp_path / "x.pkl"))
