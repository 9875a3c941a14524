"""What a teacher decides: credit, points set by hand, marking again; and the empty file of answers."""

import tomllib
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwork.cli import app
from headwork.errors import HeadworkError
from headwork.marking.class_marker import read_overrides
from headwork.marking.mark import mark
from headwork.marking.template import template_toml
from headwork.sheets.load import parse_sheet
from headwork.sheets.save import sheet_toml
from tests.marking.test_mark import one_head

ANSWERS = {"a": {"Q": "1 2; 3 5", "K": "1 0; 0 1"}, "b": {"scores": "1 2; 3 5"}}  # Q has a slip, scores follow


@pytest.mark.parametrize(
    ("credit", "scores"), [("entry", [Fraction(7, 8), 1]), ("matrix", [Fraction(1, 2), 1]), ("part", [0, 1])]
)
def test_credit_for_entries_for_matrices_or_for_all_of_a_part(credit: str, scores: list[Fraction]) -> None:
    sheet = one_head(f'marking = {{ credit = "{credit}" }}')
    assert [part.score for part in mark(sheet, ANSWERS).parts] == scores
    assert parse_sheet(sheet_toml(sheet), "again").problems[0].marking == {"credit": credit}
    right = {"a": {"Q": "1 2; 3 4", "K": "1 0; 0 1"}, "b": {"scores": "1 2; 3 4"}}
    assert mark(sheet, right).score == 2


def test_no_such_credit() -> None:
    with pytest.raises(HeadworkError, match="credit = half is none of entry, matrix, part"):
        mark(one_head('marking = { credit = "half" }'), {})


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, HeadworkError):
        raise result.exception
    return result.output


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    (tmp_path / "sheet.toml").write_text(sheet_toml(one_head()))
    rows = ["student,a.Q,a.K,b.scores", 'Ada,"1 2; 3 5",1 0; 0 1,"1 2; 3 5"', 'Bob,"1 2; 3 4",1 0; 0 1,"1 2; 3 4"']
    (tmp_path / "class.csv").write_text("\n".join(rows))
    return tmp_path


def test_points_set_by_hand_survive_every_run(desk: Path) -> None:
    (desk / "by-hand.csv").write_text("student,part,score,reason\nada,a,1,a typing error\n")
    for _ in range(2):
        page = run("mark", desk / "sheet.toml", desk / "class.csv", "--overrides", desk / "by-hand.csv")
        assert "Ada: 2 of 2" in page
        assert "set by hand to 1 instead of 0.875: a typing error" in page
    folder = desk / "class"
    folder.mkdir()
    (folder / "one.toml").write_text((desk / "sheet.toml").read_text())
    (folder / "overrides.csv").write_text("student,part,score\nBob,b,1/2\n")
    assert "Bob,1.5,2" in run("mark", folder, desk / "class.csv", "--format", "csv", "--jobs", 2)


def test_tables_with_semicolons_and_decimal_commas(desk: Path) -> None:
    """The same marks from what a spreadsheet writes where decimals have commas."""
    (desk / "by-hand.csv").write_text("student;part;score;reason\nada;a;0,75;so, it is\n")
    semicolons = 'student;a.Q[1,1];a.Q[1,2];a.Q[2,1];a.Q[2,2];a.K;b.scores\nAda;1;2;3;5;"1 0; 0 1";"1 2; 3 5"\n'
    (desk / "class.csv").write_text(semicolons)
    page = run("mark", desk / "sheet.toml", desk / "class.csv", "--overrides", desk / "by-hand.csv")
    assert "Ada: 1.75 of 2" in page
    assert "set by hand to 0.75 instead of 0.875: so, it is" in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("student,part\nAda,a\n", "'score' is missing"),
        ("student,part,score\nAda,a,lots\n", "line 2: 'lots' is not a number"),
        ("student,part,score\nAda,a,-1\n", "is no number of points"),
        ("student,part,score\nAda,z,1\n", "there is no part 'z'; there is a, b"),
        ("student,part,score\nAda,a,7\n", "part a has 1 points, not 7"),
        ("student,part,score\nZoe,a,1\n", "for 'zoe', who handed in nothing; all were marked"),
    ],
)
def test_points_that_cannot_be_set(desk: Path, text: str, message: str) -> None:
    (desk / "by-hand.csv").write_text(text)
    with pytest.raises(HeadworkError, match=message):
        run("mark", desk / "sheet.toml", desk / "class.csv", "--overrides", desk / "by-hand.csv")
    with pytest.raises(HeadworkError, match="cannot be read"):
        read_overrides(desk / "no.csv")


def test_marked_again_it_says_who_changes(desk: Path) -> None:
    run("mark", desk / "sheet.toml", desk / "class.csv", "--output", desk / "before.csv")
    same = run("mark", desk / "sheet.toml", desk / "class.csv", "--since", desk / "before.csv", "--format", "text")
    assert "0 of 2 students change." in same
    corrected = (desk / "sheet.toml").read_text().replace("[[1, 2], [3, 4]]", "[[1, 2], [3, 5]]")
    (desk / "sheet.toml").write_text(corrected)
    (desk / "class.csv").write_text((desk / "class.csv").read_text() + '\nCy,"1 2; 3 5",,\n')
    page = run("mark", desk / "sheet.toml", desk / "class.csv", "--since", desk / "before.csv", "--format", "text")
    assert "3 of 3 students change." in page
    assert "(a) 0.875 → 1" in page
    assert "(a) 1 → 0.875" in page
    assert "not marked before" in page
    (desk / "class.csv").write_text("student,a.Q\nBob,\n")
    gone = run("mark", desk / "sheet.toml", desk / "class.csv", "--since", desk / "before.csv", "--format", "text")
    assert "Marked before and not now: Ada." in gone
    (desk / "other.csv").write_text("a,b\n")
    with pytest.raises(HeadworkError, match="is not what `headwork mark --format csv` writes"):
        run("mark", desk / "sheet.toml", desk / "class.csv", "--since", desk / "other.csv")


@pytest.mark.parametrize("name", ["two-heads", "dot-product", "block-matrices"])
def test_the_template_names_every_answer_and_is_blank(name: str, tmp_path: Path) -> None:
    (tmp_path / "ada.toml").write_text(run("mark", name, "--template"))
    marks = mark(name, tmp_path / "ada.toml")
    assert marks.student == "ada"
    assert marks.note == ""
    assert {a.verdict for part in marks.parts for a in part.answers} == {"blank"}
    assert not [note for part in marks.parts for note in part.notes if "not asked for" in note]


def test_the_template_gives_shapes_away_only_where_the_sheet_does() -> None:
    assert tomllib.loads(template_toml(one_head()))["a"]["Q"] == ""
    told = tomllib.loads(template_toml(one_head("marking = { shape = true }")))
    assert told["a"]["Q"] == [["", ""], ["", ""]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "whose answers"),
        (["--template", "--format", "csv"], "writes an empty file of answers"),
        (["x.csv", "--since", "y.csv", "--pages", "z"], "--since says who changes"),
        (["x.csv", "--since", "y.csv", "--format", "csv"], "is not written as 'csv'"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], message: str) -> None:
    with pytest.raises(HeadworkError, match=message):
        run("mark", "two-heads", *options)
