"""The XML, read and graded as Moodle does it: question/type/multianswer and question/type/numerical, in Python."""

import csv
import re
from dataclasses import dataclass
from fractions import Fraction
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from headwork.errors import HeadworkError
from headwork.marking.answers import read_answers
from headwork.marking.class_marker import ClassMarker, load_class
from headwork.marking.graders import export
from headwork.marking.mark import Marker
from headwork.marking.roster import own_sheets, read_roster
from headwork.mistakes.make import Plan
from headwork.sheets.load import load, parse_sheet
from headwork.sheets.save import sheet_toml
from headwork.sheets.sheet import Sheet
from tests.graders.students import LEARNING, boxes_of, five, last_alone, marks_of, parts_of, responses

# As in Moodle's questiontype.php: fraction, answer up to an unescaped ~ # or }, feedback up to an unescaped ~ or }.
FRACTION = r"=|%(-?[0-9]+(?:[.,][0-9]*)?)%"
ALTERNATIVE = rf"({FRACTION})?(.+?(?<!\\|&)(?=[~#}}]|$))(#(.*?(?<!\\)(?=[~}}]|$)))?"
FIELD = re.compile(rf"\{{([0-9]*):([A-Z_]+):({ALTERNATIVE}(~{ALTERNATIVE})*)\}}", re.DOTALL)
NUMBER = r"-?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?"
RESPONSE = re.compile(r"[+-]?\d*(\.\d*)?([eE][+-]?\d+)?")


@dataclass
class Field:
    """A field as Moodle keeps it: its weight, and answers with fraction, number or text, tolerance and feedback."""

    weight: int
    kind: str
    answers: list[tuple[float, str, float, str]]

    def grade(self, response: str) -> tuple[float, str]:
        if not response:
            return 0.0, ""
        for fraction, answer, tolerance, feedback in self.answers:
            if self.kind == "SHORTANSWER":
                if answer.lower() == response.lower():
                    return fraction, feedback
            elif RESPONSE.fullmatch(response):
                slack = tolerance + 1e-14 * max(1, abs(float(answer)))
                if float(answer) - slack <= float(response) <= float(answer) + slack:
                    return fraction, feedback
        return 0.0, ""


def fields_of(question: ElementTree.Element) -> list[Field]:
    text = question.findtext("questiontext/text") or ""
    found = []
    for match in FIELD.finditer(text):
        answers = []
        for part in re.finditer(f"~?{ALTERNATIVE}", match[3], re.DOTALL):
            number = re.fullmatch(rf"({NUMBER})(?::({NUMBER}))?", part[3])
            fraction = 1.0 if part[1] == "=" else float(part[2] or 0) / 100
            assert number or match[2] == "SHORTANSWER", part[0]
            answer, tolerance = (number[1], float(number[2] or 0)) if number else (unescape(part[3]), 0.0)
            feedback = unescape(part[5] or "").replace("\\}", "}").replace("\\#", "#")
            answers.append((fraction, answer, tolerance, feedback))
        assert max(answer[0] for answer in answers) == 1  # else Moodle refuses the question
        found.append(Field(int(match[1]), match[2], answers))
    assert "NUMERICAL" not in FIELD.sub("", text), "a field that Moodle would print"
    return found


def graded(question: ElementTree.Element, typed: list[str]) -> tuple[float, list[str]]:
    """The share of the marks, and the feedback."""
    found = fields_of(question)
    assert len(found) == len(typed)
    each = [field.grade(response) for field, response in zip(found, typed, strict=True)]
    total = sum(field.weight for field in found)
    return sum(f.weight * share for f, (share, _) in zip(found, each, strict=True)) / total, [said for _, said in each]


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory, class_folder: Path) -> dict[str, ElementTree.Element]:
    path = export(class_folder, "cloze", tmp_path_factory.mktemp("cloze") / "class.xml")
    found = ElementTree.parse(path).getroot().findall("question[@type='cloze']")
    return {question.findtext("idnumber") or "": question for question in found}


@pytest.mark.parametrize("who", ["right", "slipped", "blank", "malformed"])
def test_moodle_gives_the_marks_that_headwork_gives(
    questions: dict[str, ElementTree.Element], sheets: dict[str, Sheet], who: str
) -> None:
    sheet = sheets[who]
    parts = last_alone(parts_of(sheet)) if who == "slipped" else five(sheet)[who]
    marks = marks_of(sheet, boxes_of(sheet, parts))
    share, _ = graded(questions[who], responses(sheet, parts))
    assert share == pytest.approx(float(marks.score / marks.max_score))
    assert (share == 1) == (who == "right")


def test_a_mistake_is_named_where_its_number_stands(
    questions: dict[str, ElementTree.Element], sheets: dict[str, Sheet]
) -> None:
    sheet = sheets["mistaken"]
    share, said = graded(questions["mistaken"], responses(sheet, five(sheet)["mistaken"]))
    assert 0.2 < share < 0.8
    assert any(words.startswith("Consistent with forgot-scale.") for words in said)
    assert not any(graded(questions["right"], responses(sheets["right"], parts_of(sheets["right"])))[1])


@pytest.mark.parametrize("who", ["right", "slipped", "blank", "malformed", "mistaken"])
def test_the_responses_come_back_and_follow_through(tmp_path: Path, sheets: dict[str, Sheet], who: str) -> None:
    """Moodle's own words for what was typed, marked by headwork: what Moodle cannot follow is followed now."""
    sheet = sheets[who]
    parts = five(sheet)[who]
    typed = "; ".join(f"part {i}: {text}" for i, text in enumerate(responses(sheet, parts), 1))
    path = tmp_path / "responses.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["Last name", "First name", "Response 1"], ["Doe", "Jo", typed if parts else "-"]])
    (answers,) = read_answers(path, sheet)
    assert answers.student == "Doe Jo"
    marks = Marker(sheet).mark(answers)
    assert marks.score == marks_of(sheet, boxes_of(sheet, parts)).score
    if who == "slipped":
        assert marks.score == marks_of(sheet, parts).score
        assert marks.max_score - marks.score < Fraction(1, 10)


def test_a_random_question_is_marked_on_the_sheet_that_was_drawn(
    tmp_path: Path, class_folder: Path, sheets: dict[str, Sheet]
) -> None:
    """Moodle draws the sheet, not the student's name: the question's text, downloaded too, says which it was."""
    lines = [["Last name", "First name", "Question 1", "Response 1"]]
    for drawn, sheet in sheets.items():
        typed = "; ".join(f"part {i}: {text}" for i, text in enumerate(responses(sheet, parts_of(sheet)), 1))
        lines.append(["Doe", f"Jo of {drawn}", f"{sheet.title}, sheet {drawn}\n\nKeep, sheet x\n", typed])
    with (tmp_path / "responses.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
    marker = ClassMarker(load_class(class_folder))
    marks = [marker.mark(answers) for answers in read_answers(tmp_path / "responses.csv", sheets["right"])]
    assert [one.score for one in marks] == [4] * 5


def test_whoever_draws_a_question_reads_nobodys_name(tmp_path: Path) -> None:
    """Nor does nbgrader's notebook, which all get, bear one."""
    (tmp_path / "list.csv").write_text("id,name\n7,Ada L.\n8,Bob B.\n")
    students = read_roster(tmp_path / "list.csv")
    for student, sheet in own_sheets(students, Plan("single_head", 2, 1, 2), 1, {}, anyway=True):
        (tmp_path / f"{student.id}.toml").write_text(sheet_toml(sheet), "utf-8")
    path = export(tmp_path, "cloze", tmp_path / "class.xml")
    texts = [found.text or "" for found in ElementTree.parse(path).getroot().iterfind("question/questiontext/text")]
    assert ["sheet 7" in texts[0], "sheet 8" in texts[1]] == [True, True]
    (notebook,) = export(tmp_path, "nbgrader", tmp_path / "course").rglob("*.ipynb")
    assert not any("Ada" in text or "Bob" in text for text in [*texts, notebook.read_text("utf-8")])


def test_gradients_are_numbers_too(tmp_path: Path) -> None:
    (tmp_path / "learning.toml").write_text(LEARNING)
    sheet = load(tmp_path / "learning.toml")
    path = export(tmp_path / "learning.toml", "cloze", tmp_path / "learning.xml")
    (question,) = ElementTree.parse(path).getroot().findall("question[@type='cloze']")
    assert "on paper" not in (question.findtext("questiontext/text") or "")
    right = parts_of(sheet)
    assert list(right["b"]) == ["d_W_V", "d_W_Q", "next_W_V", "next_W_Q"]
    for parts in (right, last_alone(right)):
        marks = marks_of(sheet, boxes_of(sheet, parts))
        assert graded(question, responses(sheet, parts))[0] == pytest.approx(float(marks.score / marks.max_score))
    typed = "; ".join(f"part {i}: {text}" for i, text in enumerate(responses(sheet, right), 1))
    (tmp_path / "responses.csv").write_text(f"Last name,First name,Response 1\nDoe,Jo,{typed}\n")
    (answers,) = read_answers(tmp_path / "responses.csv", sheet)
    assert Marker(sheet).mark(answers).score == Fraction(11, 2)


def test_masks_points_and_hostile_words(tmp_path: Path) -> None:
    sheet = parse_sheet(
        'title = "A ~ {1:NM:=3} # ]]> <b>"\nformula = "scaled_dot_product"\nmask = "causal"\n'
        "[given]\nQ = [[1, 2], [3, 4]]\nK = [[1, 1], [0, 2]]\nV = [[1], [2]]\n[marking]\npoints = { a = 3 }\n"
        '[[part]]\nlabel = "a"\nfind = ["masked"]\n[[part]]\nlabel = "b"\nfind = ["weights[2]"]\n',
        "test",
    )
    (tmp_path / "masked.toml").write_text(sheet_toml(sheet), "utf-8")
    path = export(tmp_path / "masked.toml", "cloze", tmp_path / "masked.xml")
    (question,) = ElementTree.parse(path).getroot().findall("question[@type='cloze']")
    parts = parts_of(sheet)
    assert parts["a"]["masked"][0][1] == "-inf"
    assert graded(question, responses(sheet, parts))[0] == 1
    assert [field.weight for field in fields_of(question)] == [3, 3, 3, 3, 2, 2]


def test_what_moodle_cannot_take(tmp_path: Path) -> None:
    with pytest.raises(HeadworkError, match="asks for no numbers"):
        export(_only(tmp_path, 'kind = "shape"\nfind = ["scores"]'), "cloze", tmp_path / "x.xml")
    exact = _only(tmp_path, 'find = ["weights"]', '[marking]\ntolerance = "exact"\n')
    with pytest.raises(HeadworkError, match="no decimal is exactly"):
        export(exact, "cloze", tmp_path / "x.xml")
    with pytest.raises(HeadworkError, match="there is no grader 'moodle'; choose from gradescope"):
        export("two-heads", "moodle")


def _only(folder: Path, part: str, marking: str = "") -> Path:
    path = folder / "one.toml"
    given = "[given]\nQ = [[1, 2]]\nK = [[1, 1], [0, 2]]\nV = [[1], [2]]\n"
    path.write_text(f'formula = "dot_product"\n{given}{marking}[[part]]\nlabel = "a"\n{part}\n')
    load(path)
    return path
