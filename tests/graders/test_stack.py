"""The question, run in Debian's Maxima as STACK runs it: question variables, inputs, feedback variables, then every
tree from node to node. The answer test is AlgEquiv on whole numbers alone."""

import random
from pathlib import Path
from struct import pack, unpack
from typing import Any
from xml.etree import ElementTree

import pytest

from headwork.errors import HeadworkError
from headwork.marking.graders import export
from headwork.marking.graders.family import load_family
from headwork.marking.graders.fields import fields, shares
from headwork.marking.mark import Marker
from headwork.mistakes.make import Plan, new_sheet
from headwork.sheets.load import load, parse_sheet
from headwork.sheets.save import sheet_toml
from headwork.sheets.sheet import Sheet
from tests.graders.students import LEARNING, Parts, five, marks_of, parts_of
from tests.graders.test_maxima import run

Inputs = dict[str, str]
Graded = dict[str, tuple[float, list[str], str]]  # tree → its score, its notes, what it says


class Question:
    """A question of the XML."""

    def __init__(self, xml: ElementTree.Element) -> None:
        self.variables = xml.findtext("questionvariables/text") or ""
        self.text = xml.findtext("questiontext/text") or ""
        self.inputs = [found.findtext("name") or "" for found in xml.findall("input")]
        self.trees = {found.findtext("name") or "": found for found in xml.findall("prt")}
        self.tests = xml.findall("qtest")
        for found in xml.findall("input"):
            assert found.findtext("type") == "string"
            assert found.findtext("options") == "allowempty"  # or a tree that rests on a blank is not run

    def graded(
        self, attempts: list[Inputs], variant: int, folder: Path
    ) -> list[dict[str, tuple[float, list[str], str]]]:
        """Attempt by attempt: for every tree its score, its notes and what it says."""
        program = [f"rand(hw_n) := {variant};", self.variables]
        for attempt in attempts:
            program += [f"{name}: {value};" for name, value in attempt.items()]
            for tree in self.trees.values():
                program.append(tree.findtext("feedbackvariables/text") or "")
                tests = [f"[{node.findtext('sans')},{node.findtext('tans')}]" for node in tree.findall("node")]
                program.append(f"print(map(lambda([hw_z],is(equal(hw_z[1],hw_z[2]))),[{','.join(tests)}]),hw_where);")
        printed = iter(run("\n".join(program) + "\n", folder))
        return [{name: walked(tree, next(printed)) for name, tree in self.trees.items()} for _ in attempts]


def walked(tree: ElementTree.Element, printed: str) -> tuple[float, list[str], str]:
    """From node to node, as the outcome of each test leads."""
    outcomes = [word.strip() == "true" for word in printed[1 : printed.index("]")].split(",")]
    nodes = {node.findtext("name"): node for node in tree.findall("node")}
    assert len(nodes) == len(outcomes)
    score, notes, said, here = 0.0, [], "", "0"
    while here != "-1":
        side = "true" if outcomes[int(here)] else "false"
        node = nodes[here]
        value = float(node.findtext(f"{side}score") or 0)
        score = value if node.findtext(f"{side}scoremode") == "=" else score + value
        notes.append(node.findtext(f"{side}answernote") or "")
        said += node.findtext(f"{side}feedback/text") or ""
        here = node.findtext(f"{side}nextnode") or "-1"
    return min(1.0, score), notes, said


def typed(sheet: Sheet, parts: Parts) -> Inputs:
    found = {}
    for number, field in enumerate(fields(Marker(sheet)), 1):
        rows = parts.get(field.part, {}).get(field.name, [])
        found[f"ans{number}"] = '"' + "; ".join(" ".join(row) for row in rows) + '"'
    return found


def questions(path: Path) -> list[Question]:
    return [Question(xml) for xml in ElementTree.parse(path).getroot().findall("question[@type='stack']")]


def points(question: Question, graded: Graded) -> float:
    worth = {name: float(tree.findtext("value") or 0) for name, tree in question.trees.items()}
    return sum(worth[name] * score for name, (score, _, _) in graded.items())


@pytest.fixture(scope="module")
def question(tmp_path_factory: pytest.TempPathFactory, class_folder: Path) -> Question:
    (found,) = questions(export(class_folder, "stack", tmp_path_factory.mktemp("stack") / "class.xml"))
    return found


@pytest.fixture(scope="module")
def graded(
    question: Question, sheets: dict[str, Sheet], class_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Graded]:
    """Every student on their own variant of the one question."""
    order = list(load_family(class_folder).texts)
    return {
        name: question.graded([typed(sheet, five(sheet)[name])], order.index(name), tmp_path_factory.mktemp(name))[0]
        for name, sheet in sheets.items()
    }


@pytest.mark.parametrize("who", ["right", "slipped", "blank", "malformed", "mistaken"])
def test_stack_gives_the_marks_that_headwork_gives(
    question: Question, graded: dict[str, Any], sheets: dict[str, Sheet], who: str
) -> None:
    marks = marks_of(sheets[who], five(sheets[who])[who])
    assert points(question, graded[who]) == pytest.approx(float(marks.score), abs=1e-5)
    each = [float(earned / most) for part in marks.parts for _, earned, most in shares(part)]
    assert [score for score, _, _ in graded[who].values()] == pytest.approx(each, abs=1e-5)
    verdicts = [answer.verdict for part in marks.parts for answer in part.answers]
    for verdict, (_, notes, _) in zip(verdicts, graded[who].values(), strict=True):
        assert verdict == "wrong" or notes[-1].endswith(verdict)


def test_a_mistake_is_named_and_the_rest_follows(graded: dict[str, Any]) -> None:
    notes = [notes[-1] for _, notes, _ in graded["mistaken"].values()]
    assert any(note.endswith("-forgot-scale") for note in notes)
    said = " ".join(said for _, _, said in graded["mistaken"].values())
    assert "Consistent with forgot-scale." in said
    assert "Right from there on: it follows from an earlier answer." in said


def test_the_questions_own_tests_hold_in_every_variant(question: Question, tmp_path: Path) -> None:
    """One for everything right, one for every mistake that the sheet can tell."""
    assert len(question.tests) > 12
    attempts = [
        {i.findtext("name") or "": i.findtext("value") or '""' for i in test.findall("testinput")}
        for test in question.tests
    ]
    for variant in (0, 3):
        for test, found in zip(question.tests, question.graded(attempts, variant, tmp_path), strict=True):
            for expected in test.findall("expected"):
                score, notes, _ = found[expected.findtext("name") or ""]
                about = test.findtext("description")
                assert score == pytest.approx(float(expected.findtext("expectedscore") or 0), abs=1e-5), about
                assert notes[-1] == expected.findtext("expectedanswernote"), about


def test_students_who_carry_slips_on_are_marked_alike(tmp_path: Path) -> None:
    """Slips here and there, typed to two, three or four places, carried on as written or not at all: every answer's
    credit is the one that headwork gives."""
    generator = random.Random(3)
    sheet = new_sheet(Plan(tokens=3, mask="causal"), seed=5)
    (tmp_path / "sheet.toml").write_text(sheet_toml(sheet), "utf-8")
    (question,) = questions(export(tmp_path / "sheet.toml", "stack", tmp_path / "sheet.xml"))
    students = []
    for _ in range(6):
        parts = parts_of(sheet, slip=generator.random() < 0.7, places=generator.choice([2, 3, 4]))
        for answers in parts.values():
            for name, rows in answers.items():
                if generator.random() < 0.15:
                    answers[name] = [["" for _ in row] for row in rows]
                elif generator.random() < 0.25:
                    row = generator.randrange(len(rows))
                    column = generator.randrange(len(rows[0]))
                    if rows[row][column] != "-inf":
                        rows[row][column] = f"{float(rows[row][column]) + generator.choice([-1, 0.5, 2]):.2f}"
        students.append(parts)
    found = question.graded([typed(sheet, parts) for parts in students], 0, tmp_path)
    for parts, graded in zip(students, found, strict=True):
        marks = marks_of(sheet, parts)
        each = [float(earned / most) for part in marks.parts for _, earned, most in shares(part)]
        assert [score for score, _, _ in graded.values()] == pytest.approx(each, abs=1e-5)


@pytest.mark.parametrize("tolerance", ["last-place", "2 places", "3 figures", "0.01 + 1%", "exact"])
def test_every_tolerance_and_a_penalty(tolerance: str, tmp_path: Path) -> None:
    text = (
        'formula = "scaled_dot_product"\nscale = 2\n'
        "[given]\nQ = [[1, 2], [3, 4]]\nK = [[1, 1], [0, 2]]\nV = [[1], [2]]\n"
        f'[marking]\ntolerance = "{tolerance}"\npenalty = "1/5"\npoints = {{ a = 2, b = "1/2" }}\n'
        '[[part]]\nlabel = "a"\nfind = ["scores[2]", "scaled"]\n'
        '[[part]]\nlabel = "b"\nfind = ["weights", "head_output[1,1]"]\n'
    )
    (tmp_path / "one.toml").write_text(text)
    sheet = load(tmp_path / "one.toml")
    (question,) = questions(export(tmp_path / "one.toml", "stack", tmp_path / "one.xml"))
    right = parts_of(sheet)
    students = [right, parts_of(sheet, slip=True)]
    for apart in (0.005, 0.0099, 0.01, 0.0101, 0.03):
        scaled = [[f"{float(x) + apart:.4f}" for x in row] for row in right["a"]["scaled"]]
        students.append({**right, "a": {**right["a"], "scaled": scaled}})
    students.append({**right, "a": {**right["a"], "scaled": [["3/2", "2"], ["7/2", "4"]]}})
    found = question.graded([typed(sheet, parts) for parts in students], 0, tmp_path)
    for parts, graded in zip(students, found, strict=True):
        marks = marks_of(sheet, parts)
        assert points(question, graded) == pytest.approx(float(marks.score), abs=1e-5)


def test_what_single_precision_prints_in_full_is_right(sheet: Sheet, tmp_path: Path) -> None:
    (tmp_path / "sheet.toml").write_text(sheet_toml(sheet), "utf-8")
    (question,) = questions(export(tmp_path / "sheet.toml", "stack", tmp_path / "sheet.xml"))
    parts = parts_of(sheet, places=12)
    for answers in parts.values():
        for rows in answers.values():
            for row in rows:
                row[:] = [x if x == "-inf" else f"{unpack('f', pack('f', float(x)))[0]:.12f}" for x in row]
    (graded,) = question.graded([typed(sheet, parts)], 0, tmp_path)
    marks = marks_of(sheet, parts)
    assert marks.score == marks.max_score
    assert points(question, graded) == pytest.approx(float(marks.max_score), abs=1e-5)


def test_gradients_follow_and_their_mistakes_are_named(tmp_path: Path) -> None:
    (tmp_path / "learning.toml").write_text(LEARNING)
    sheet = load(tmp_path / "learning.toml")
    (question,) = questions(export(tmp_path / "learning.toml", "stack", tmp_path / "learning.xml"))
    students = [parts_of(sheet), parts_of(sheet, slip=True), parts_of(sheet, mistake="gradient-not-transposed")]
    found = question.graded([typed(sheet, parts) for parts in students], 0, tmp_path)
    for parts, graded in zip(students, found, strict=True):
        assert points(question, graded) == pytest.approx(float(marks_of(sheet, parts).score), abs=1e-5)
    assert points(question, found[0]) == pytest.approx(5.5)
    assert any("Consistent with gradient-not-transposed." in said for _, _, said in found[2].values())


def test_a_gradient_that_is_given_stands_where_the_way_back_begins(tmp_path: Path) -> None:
    """With more around attention its own output has a gradient too, which d_output is the name of elsewhere."""
    path = Path(__file__).parent.parent / "attacks" / "gradient-given-around-attention" / "sheet.toml"
    sheet = load(path)
    (question,) = questions(export(path, "stack", tmp_path / "around.xml"))
    (graded,) = question.graded([typed(sheet, parts_of(sheet))], 0, tmp_path)
    assert points(question, graded) == pytest.approx(float(marks_of(sheet, parts_of(sheet)).max_score))


def test_a_part_that_hands_matrices_over_and_several_problems(tmp_path: Path) -> None:
    path = export("block-matrices", "stack", tmp_path / "blocks.xml")
    sheet = load("block-matrices")
    parts = parts_of(sheet)
    right = marks_of(sheet, parts)
    numbers = {"3": ("3.a", "3.b"), "5": ("5.a", "5.b")}
    for question, labels in zip(questions(path), numbers.values(), strict=True):
        own = [field for field in fields(Marker(sheet)) if field.part in labels]
        texts = ["; ".join(" ".join(row) for row in parts[field.part][field.name]) for field in own]
        answers = {f"ans{i}": f'"{text}"' for i, text in enumerate(texts, 1)}
        (graded,) = question.graded([answers], 0, tmp_path)
        assert all(score == pytest.approx(1) for score, _, _ in graded.values())
    assert right.score > 0


def test_the_page_of_a_family_has_every_variant_and_no_answer(question: Question, sheets: dict[str, Sheet]) -> None:
    assert [f"hw_variant={i}" in question.text for i in range(1, len(sheets) + 2)] == [True] * len(sheets) + [False]
    assert question.text.count("[[input:ans") == len(question.inputs) == len(fields(Marker(sheets["right"])))


def test_what_stack_cannot_take(tmp_path: Path) -> None:
    only = 'formula = "dot_product"\n[sizes]\ntokens = "n"\n[[part]]\nlabel = "a"\nkind = "shape"\nfind = ["scores"]\n'
    assert parse_sheet(only, "only").problems
    (tmp_path / "only.toml").write_text(only)
    with pytest.raises(HeadworkError, match="asks for no numbers"):
        export(tmp_path / "only.toml", "stack", tmp_path / "x.xml")
    for name, mask in (("one", "none"), ("two", "causal")):
        drawn = new_sheet(Plan("scaled_dot_product", tokens=3, d_model=3, mask=mask))
        (tmp_path / "class").mkdir(exist_ok=True)
        (tmp_path / "class" / f"{name}.toml").write_text(sheet_toml(drawn), "utf-8")
    with pytest.raises(HeadworkError, match="differ in their numbers alone"):
        export(tmp_path / "class", "stack", tmp_path / "x.xml")
