"""The zip, graded by QTI 1.2's own rules and by Canvas's: its importers keep a number and a margin, that of classic
quizzes off the upper end and compared as decimals, that of New Quizzes off the lower end in floats. Canvas itself is on
no package index, and what is there of QTI 1.2 writes or converts it and grades nothing."""

import csv
import re
import zipfile
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from headwork.marking.answers import read_answers
from headwork.marking.graders import export
from headwork.marking.mark import Marker
from headwork.sheets.load import load, parse_sheet
from headwork.sheets.save import sheet_toml
from headwork.sheets.sheet import Sheet
from tests.graders.students import LEARNING, Parts, boxes_of, five, last_alone, marks_of, parts_of

Q = "{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}"


class Question:
    """One item: what it asks, its points, and what it makes of an answer."""

    def __init__(self, item: ElementTree.Element) -> None:
        entries = [entry.text or "" for entry in item.iter(f"{Q}fieldentry")]
        self.kind, self.points = entries[0], float(entries[1])
        text = item.find(f"{Q}presentation/{Q}material/{Q}mattext")
        assert text is not None
        self.text = re.sub(r"<[^>]*>", "", text.text or "")  # as Canvas strips tags for its analysis
        self.conditions = item.findall(f"{Q}resprocessing/{Q}respcondition")
        self.feedback = {
            told.attrib["ident"]: "".join(told.itertext()).strip() for told in item.findall(f"{Q}itemfeedback")
        }

    def by_qti(self, response: str) -> tuple[float, str]:
        score, said = 0.0, ""
        for condition in self.conditions:
            tests = condition.find(f"{Q}conditionvar")
            assert tests is not None
            holds = any(holding(test, response) for test in tests)
            if holds:
                if (value := condition.findtext(f"{Q}setvar")) is not None:
                    score = float(value) / 100
                if (told := condition.find(f"{Q}displayfeedback")) is not None:
                    said = self.feedback[told.attrib["linkrefid"]]
                if condition.attrib["continue"] == "No":
                    break
        return score, said

    def by_canvas(self, response: str) -> bool:
        exact, upper = self._told("varequal"), self._told("varlte")
        typed = number(response)
        return typed is not None and abs(typed - exact) <= upper - exact

    def by_new_quizzes(self, response: str) -> bool:
        """A margin of nothing would be an exact number there."""
        exact, lower, upper = (float(self._told(name)) for name in ("varequal", "vargte", "varlte"))
        assert lower < exact < upper
        typed = number(response)
        return typed is not None and abs(float(typed) - exact) <= exact - lower

    def _told(self, name: str) -> Decimal:
        (told,) = (found for condition in self.conditions for found in condition.iter(f"{Q}{name}"))
        return Decimal(told.text or "")


def holding(test: ElementTree.Element, response: str) -> bool:
    name, value = test.tag.removeprefix(Q), test.text or ""
    if name in ("or", "and"):
        each = [holding(inner, response) for inner in test]
        return any(each) if name == "or" else all(each)
    typed = number(response)
    if name == "varequal":
        return response == value or (typed is not None and typed == number(value))
    if name in ("vargte", "varlte"):
        return typed is not None and (typed >= Decimal(value) if name == "vargte" else typed <= Decimal(value))
    assert name == "other"
    return True


def number(text: str) -> Decimal | None:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def quizzes(path: Path) -> dict[str, list[Question]]:
    """Title → questions, found as the manifest names them."""
    with zipfile.ZipFile(path) as archive:
        manifest = ElementTree.fromstring(archive.read("imsmanifest.xml"))
        found = {}
        for resource in manifest.iter():
            if resource.attrib.get("type") == "imsqti_xmlv1p2":
                file = resource[0].attrib["href"]
                assessment = ElementTree.fromstring(archive.read(file))[0]
                ElementTree.fromstring(archive.read(file.partition("/")[0] + "/assessment_meta.xml"))
                items = [Question(item) for item in assessment.iter(f"{Q}item")]
                found[assessment.attrib["title"]] = [item for item in items if item.kind != "text_only_question"]
    return found


@pytest.fixture(scope="module")
def class_quizzes(tmp_path_factory: pytest.TempPathFactory, class_folder: Path) -> dict[str, list[Question]]:
    path = export(class_folder, "canvas", tmp_path_factory.mktemp("canvas") / "class.zip")
    return {title.rpartition("(")[2].rstrip(")"): items for title, items in quizzes(path).items()}


def typed(sheet: Sheet, parts: Parts) -> dict[str, str]:
    return {f"{part}.{name}": text for part, boxes in boxes_of(sheet, parts).items() for name, text in boxes.items()}


def graded(questions: list[Question], responses: dict[str, str]) -> tuple[float, list[str]]:
    total, said = 0.0, []
    for question in questions:
        response = responses[question.text.split()[0]]
        share, told = question.by_qti(response)
        assert share == question.by_canvas(response) == question.by_new_quizzes(response)
        total += share * question.points
        said += [told] if told else []
    return total, said


@pytest.mark.parametrize("who", ["right", "slipped", "blank", "malformed"])
def test_canvas_gives_the_marks_that_headwork_gives(
    class_quizzes: dict[str, list[Question]], sheets: dict[str, Sheet], who: str
) -> None:
    sheet = sheets[who]
    parts = last_alone(parts_of(sheet)) if who == "slipped" else five(sheet)[who]
    marks = marks_of(sheet, boxes_of(sheet, parts))
    assert graded(class_quizzes[who], typed(sheet, parts))[0] == pytest.approx(float(marks.score))
    assert sum(question.points for question in class_quizzes[who]) == pytest.approx(float(marks.max_score))


def test_who_is_wrong_is_told_what_mistakes_would_give(
    class_quizzes: dict[str, list[Question]], sheets: dict[str, Sheet]
) -> None:
    sheet = sheets["mistaken"]
    _, said = graded(class_quizzes["mistaken"], typed(sheet, five(sheet)["mistaken"]))
    assert any("Consistent with forgot-scale." in words for words in said)
    right = graded(class_quizzes["right"], typed(sheets["right"], parts_of(sheets["right"])))
    assert not right[1]


@pytest.mark.parametrize("who", ["right", "slipped", "blank", "malformed", "mistaken"])
def test_the_analysis_comes_back_and_follows_through(
    tmp_path: Path, class_quizzes: dict[str, list[Question]], sheets: dict[str, Sheet], who: str
) -> None:
    sheet, questions = sheets[who], class_quizzes[who]
    responses = typed(sheet, five(sheet)[who])
    columns: list[Any] = [x for i, q in enumerate(questions) for x in (f"{900 + i}: {q.text}", q.points)]
    cells: list[Any] = [x for q in questions for x in (responses[q.text.split()[0]], "0.0")]
    with (tmp_path / "analysis.csv").open("w", encoding="utf-8", newline="") as file:
        lines = [["name", "id", "section", "submitted", *columns, "n correct", "n incorrect", "score"]]
        csv.writer(file).writerows([*lines, ["Jo Doe", "7", "One", "2026-11-03", *cells, "0", "0", "0"]])
    (answers,) = read_answers(tmp_path / "analysis.csv")
    assert answers.student == "Jo Doe"
    assert Marker(sheet).mark(answers).score == marks_of(sheet, boxes_of(sheet, five(sheet)[who])).score


def test_gradients_are_numbers_too(tmp_path: Path) -> None:
    (tmp_path / "learning.toml").write_text(LEARNING)
    sheet = load(tmp_path / "learning.toml")
    ((_, questions),) = quizzes(export(tmp_path / "learning.toml", "canvas", tmp_path / "learning.zip")).items()
    assert graded(questions, typed(sheet, parts_of(sheet)))[0] == pytest.approx(5.5)


def test_a_mask_and_formulas(tmp_path: Path) -> None:
    sheet = parse_sheet(
        'title = "<A & B>"\nformula = "scaled_dot_product"\nmask = "causal"\n'
        "[given]\nQ = [[1, 2], [3, 4]]\nK = [[1, 1], [0, 2]]\nV = [[1], [2]]\n"
        '[[part]]\nlabel = "a"\nfind = ["masked"]\n',
        "test",
    )
    (tmp_path / "masked.toml").write_text(sheet_toml(sheet), "utf-8")
    path = export(tmp_path / "masked.toml", "canvas", tmp_path / "masked.zip")
    ((title, questions),) = quizzes(path).items()
    assert title == "<A & B> (masked)"
    assert [q.kind for q in questions] == ["numerical_question", "short_answer_question", *["numerical_question"] * 2]
    assert questions[1].by_qti("-inf")[0] == 1
    assert questions[1].by_qti("0")[0] == 0
    with zipfile.ZipFile(path) as archive:
        text = archive.read(next(name for name in archive.namelist() if name.count("headwork_") == 2)).decode()
    assert "/equation_images/%255Cmathrm" in text
    assert "\\(" not in text
