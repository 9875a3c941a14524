"""The softmax in steps: the same weights in closed form, worked, marked and diagnosed like any graph."""

import dataclasses
from fractions import Fraction

import pytest
from hypothesis import given, settings
from typer.testing import CliRunner

import headwork
from headwork.claims import shift_claim
from headwork.cli import app
from headwork.errors import HeadworkError
from headwork.formulas import given as given_step
from headwork.formulas import scaled_dot_product, unfolded
from headwork.graph import Step, in_order, rewrite
from headwork.marking.mark import mark
from headwork.ops import Maxima, Softmax, Sums
from headwork.proofs import prove
from headwork.readings.exact import exact
from headwork.sheets.load import load, parse_sheet
from headwork.sheets.ready import Ready
from headwork.sheets.save import sheet_toml
from tests.strategies import Drawn, problems

SHEET = """
title = "In steps"
formula = "scaled_dot_product"
softmax = "safe-steps"
scale = "none"
places = 4
[given]
Q = [[1, 0], [0, 2]]
K = [[1, 1], [0, 1], [2, 0]]
V = [[1, 0], [0, 1], [2, 2]]
[[part]]
label = "a"
text = "Find the maxima, the exponentials and their sums."
find = ["maxima", "exponentials", "sums"]
[[part]]
label = "b"
text = "Find the weights."
find = ["weights"]
"""


@given(problems())
@settings(max_examples=40)
def test_the_steps_come_to_the_same_in_closed_form(drawn: Drawn) -> None:
    """Compared number by number as closed forms, masks and rows in which nothing may be read included."""
    ready = Ready(drawn.problem)
    whole = exact(ready.last, ready.handed)
    for maximum in (False, True):
        last = unfolded(ready.last, maximum=maximum)
        steps = exact(last, ready.handed)
        assert steps[last] == whole[ready.last]
        assert not any(isinstance(step.op, Softmax) for step in in_order(last))


def test_a_sheet_asks_for_the_steps() -> None:
    working = headwork.solve(parse_sheet(SHEET, "steps.toml"))
    assert working["maxima"].value == ((Fraction(2),), (Fraction(2),))
    assert [row[-1] for row in working["exponentials"].value or ()][:1] == [1]
    whole = headwork.solve(parse_sheet(SHEET, "steps.toml"), part="b", softmax="whole")
    assert working["weights"].value == whole["weights"].value
    page = repr(working)
    for line in ("maxima = row maxima of scores", "shifted = scores − maxima", "exponentials = exp(shifted)"):
        assert line in page
    assert "weights = exponentials/sums" in page


def test_the_sheet_is_saved_with_its_steps() -> None:
    sheet = parse_sheet(SHEET, "steps.toml")
    assert parse_sheet(sheet_toml(sheet), "again.toml").problems == sheet.problems


def test_unknown_steps_are_refused() -> None:
    with pytest.raises(HeadworkError, match="choose from whole, steps, safe-steps"):
        parse_sheet(SHEET.replace('"safe-steps"', '"small"'), "steps.toml")
    with pytest.raises(HeadworkError, match="'maxima' is asked for, but scaled_dot_product has only"):
        headwork.solve(parse_sheet(SHEET.replace('"safe-steps"', '"steps"'), "steps.toml"))


@pytest.mark.parametrize(
    ("sums", "tag"),
    [
        ([["0.8360"], ["2.0000"], ["1.1353"]], ""),
        ([["1.3679", "1.1353", "1.1353"]], "softmax-columns"),
    ],
)
def test_mistakes_are_found_in_steps(sums: list[list[str]], tag: str) -> None:
    marks = mark(parse_sheet(SHEET, "steps.toml"), {"a": {"sums": sums}})
    (found,) = [answer for answer in marks.parts[0].answers if answer.name == "sums"]
    assert found.verdict == "malformed"
    assert found.tags == ((tag,) if tag else ())


def test_a_wrong_sum_carries_on() -> None:
    """The weights that follow from the student's own sums get their points."""
    answers = {
        "a": {"sums": [["2"], ["4"]], "exponentials": [["0.3679", "0.1353", "1"], ["1", "1", "0.1353"]]},
        "b": {"weights": [["0.1839", "0.0677", "0.5"], ["0.25", "0.25", "0.0338"]]},
    }
    marks = mark(parse_sheet(SHEET, "steps.toml"), answers)
    assert marks.parts[1].answers[0].verdict == "follows"


def test_the_shift_is_proved_and_only_the_right_one() -> None:
    assert prove(*shift_claim(2, 3))
    steps, safe = shift_claim(2, 2)

    def other_sums(step: Step) -> Step | None:
        return steps.inputs[1] if isinstance(step.op, Sums) else None

    assert not prove(steps, rewrite(safe, other_sums))
    Q, K, V = (given_step(role, (2, 2)) for role in "QKV")
    last = scaled_dot_product(Q, K, V)
    assert prove(last, unfolded(last, maximum=True))
    assert any(isinstance(step.op, Maxima) for step in in_order(unfolded(last, maximum=True)))


def test_the_command_line_unfolds() -> None:
    run = CliRunner().invoke
    safe = run(app, ["solve", "two-heads", "--part", "b", "--unfold", "--safe"])
    assert safe.exit_code == 0
    assert "shifted_1 = scaled_1 − maxima_1" in safe.output
    assert "maxima" not in run(app, ["solve", "two-heads", "--part", "b", "--unfold"]).output
    entry = run(app, ["solve", "thinking-machine", "--unfold", "--entry", "exponentials_0[1,1]"])
    assert "≈ 1.913·10²⁵¹" in entry.output
    assert "add --unfold" in str(run(app, ["solve", "two-heads", "--safe"]).exception)
    assert "in steps already" in str(run(app, ["solve", "two-blocks", "--unfold"]).exception)
    assert "whatever the numbers" in run(app, ["prove", "--claim", "shift", "--tokens", "3"]).output


@pytest.mark.parametrize("name", ["block-matrices", "dot-product", "two-heads"])
def test_built_in_sheets_unfold(name: str) -> None:
    """Every part that finds numbers finds the same ones."""
    sheet = load(name)
    for problem in sheet.problems:
        asked = tuple(part for part in problem.parts if part.kind == "value")
        if asked:
            one = dataclasses.replace(sheet, problems=(dataclasses.replace(problem, parts=asked),))
            whole, steps = headwork.solve(one), headwork.solve(one, softmax="safe-steps")
            for left, right in zip(whole.problems[0].parts, steps.problems[0].parts, strict=True):
                values = [[line.value for line in part.answers] for part in (left, right)]  # type: ignore[union-attr]  # equations
                assert values[0] == values[1]
