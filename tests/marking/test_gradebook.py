"""Gradebooks of Canvas, Moodle and Gradescope: one column filled, every other byte kept."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwork.cli import app
from headwork.errors import HeadworkError

ANSWERS = 'student,1.a.joined\nada,"1 2 5 6; 3 4 7 8"\nBob Byte,"1 2 3 4; 5 6 7 8"\n'
CANVAS = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Quiz 1 (88),Final Score\r\n"
    "    Points Possible,,,,,10,(read only)\r\n"
    '"Lovelace, Ada",1,u1,ada,"A, with\nMonday",7,70\r\n'
    '"Byte, Bob",2,u2,bb,"said ""B""",,\r\n'
    '"Student, Test",3,,x,,,\r\n'
)
MOODLE = "First name,Last name,ID number,Email address,Quiz\nAda,L,7,ada@example.org,-\nBob,Byte,8,b@example.org,-\n"
GRADESCOPE = "First Name,Last Name,SID,Email,Total Score\nAda,Lovelace,ada,a@x.org,\nBob,Byte,9,b@x.org,\n"


def filled(tmp_path: Path, book: str, *options: str, answers: str = ANSWERS) -> str:
    (tmp_path / "answers.csv").write_text(answers)
    (tmp_path / "book.csv").write_bytes(book.encode())
    out = tmp_path / "filled.csv"
    arguments = ["mark", "two-heads", str(tmp_path / "answers.csv"), "--gradebook", str(tmp_path / "book.csv")]
    result = CliRunner().invoke(app, [*arguments, "--output", str(out), *options])
    if isinstance(result.exception, HeadworkError):
        raise result.exception
    return out.read_bytes().decode()


def test_canvas_gains_a_column_with_its_points_possible(tmp_path: Path) -> None:
    lines = CANVAS.split("\r\n")
    added = ["Two heads", "4", "1", "0.5", ""]
    expected = "".join(f"{line},{value}\r\n" for line, value in zip(lines[:-1], added, strict=True))
    assert filled(tmp_path, CANVAS) == expected


def test_a_column_that_is_there_is_filled_and_nothing_else_touched(tmp_path: Path) -> None:
    expected = CANVAS.replace('Monday",7,', 'Monday",1,').replace('""B""",,', '""B""",0.5,')
    assert filled(tmp_path, CANVAS, "--column", "Quiz 1") == expected


def test_a_gradebook_with_semicolons_keeps_them(tmp_path: Path) -> None:
    """Canvas and Moodle write them where decimals have commas; a comma in a name is a comma."""
    book = 'Student;ID;SIS Login ID;Section;Quiz 1 (88)\n"Lovelace, Ada";1;ada;A, B;\n"Byte, Bob";2;bb;;\n'
    expected = book.replace("A, B;", "A, B;1").replace("bb;;", "bb;;0.5")
    assert filled(tmp_path, book, "--column", "Quiz 1") == expected
    added = filled(tmp_path, book, "--column", "Sheet; 1")
    assert added.splitlines() == [
        'Student;ID;SIS Login ID;Section;Quiz 1 (88);"Sheet; 1"',
        '"Lovelace, Ada";1;ada;A, B;;1',
        '"Byte, Bob";2;bb;;;0.5',
    ]


def test_moodle_and_gradescope(tmp_path: Path) -> None:
    assert filled(tmp_path, MOODLE, "--column", "Quiz") == MOODLE.replace("org,-", "org,1", 1).replace(
        "org,-", "org,0.5"
    )
    expected = GRADESCOPE.replace("a@x.org,", "a@x.org,1").replace("b@x.org,", "b@x.org,0.5")
    assert filled(tmp_path, GRADESCOPE, "--column", "Total Score") == expected


def test_moodles_own_name_for_an_assignment(tmp_path: Path) -> None:
    book = MOODLE.replace("Quiz", "Assignment: Sheet 1 (Real)")
    assert filled(tmp_path, book, "--column", "Sheet 1").splitlines()[1] == "Ada,L,7,ada@example.org,1"


def test_two_who_are_called_the_same_do_not_share_points(tmp_path: Path) -> None:
    """A name that two lines have is no way to find somebody; their id is."""
    book = "Name,SID,Total\nBob Byte,7,\nBob Byte,8,\nAda,ada,\n"
    with pytest.raises(HeadworkError, match="has 2 lines for 'Bob Byte'"):
        filled(tmp_path, book, "--column", "Total")
    by_id = ANSWERS.replace("Bob Byte", "8")
    assert filled(tmp_path, book, "--column", "Total", answers=by_id) == book.replace("8,", "8,0.5").replace(
        "ada,", "ada,1"
    )


def test_what_could_not_be_marked_is_no_nought(tmp_path: Path) -> None:
    """The one who handed in something readable before has the points of that; a blank sheet is worth 0."""
    files = {
        "ada": 'student = "ada"\n["1.a"]\njoined = "1 2 5 6; 3 4 7 8"\n',
        "ada-2": 'student = "ada"\n[z]\nx = "1"\n',
    }
    files |= {"Bob Byte": "[[", "Test Student": ""}
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "book.csv").write_text(CANVAS)
    answers = [str(tmp_path / f"{name}.toml") for name in files]
    out = tmp_path / "filled.csv"
    arguments = ["--gradebook", str(tmp_path / "book.csv"), "--column", "Quiz 1", "--output", str(out)]
    said = CliRunner().invoke(app, ["mark", "two-heads", *answers, *arguments]).exception
    assert str(said) == "nothing could be marked of Bob Byte; everybody else's points were filled in"
    expected = CANVAS.replace('Monday",7,', 'Monday",1,').replace("x,,,", "x,,0,")
    assert "".join(out.read_text("utf-8").split()) == "".join(expected.split())


@pytest.mark.parametrize(
    ("book", "options", "answers", "message"),
    [
        ("Total\n1\n", [], ANSWERS, "no column that says who is who"),
        ("", [], ANSWERS, "is empty"),
        (MOODLE, [], ANSWERS + "Cy,1\n", "has nobody called Cy; everybody else's points were filled in"),
        (MOODLE, ["--format", "csv"], ANSWERS, "a gradebook is filled as it is"),
    ],
)
def test_gradebooks_that_cannot_be_filled(
    tmp_path: Path, book: str, options: list[str], answers: str, message: str
) -> None:
    with pytest.raises(HeadworkError, match=message):
        filled(tmp_path, book, *options, answers=answers)
    if "everybody else" in message:
        assert "ada@example.org,-,1\n" in (tmp_path / "filled.csv").read_text()


def test_a_column_needs_a_gradebook(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text(ANSWERS)
    result = CliRunner().invoke(app, ["mark", "two-heads", str(tmp_path / "answers.csv"), "--column", "Quiz"])
    assert isinstance(result.exception, HeadworkError)
    assert "add --gradebook" in str(result.exception)
