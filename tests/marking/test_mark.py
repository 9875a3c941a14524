"""Marking: tolerance, follow-through, credit per entry, names, shapes and counts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwork
from headwork.errors import HeadworkError
from headwork.graph import Last, Step
from headwork.marking.answers import Answers
from headwork.marking.mark import Marker, mark
from headwork.marking.marks import AnswerMark, Marks
from headwork.marking.tolerance import Tolerance, read_number
from headwork.mistakes.make import Plan, new_sheet
from headwork.numbers.digits import decimal, to_float
from headwork.numbers.surd import root
from headwork.readings.counts import Count, counts
from headwork.readings.exact import Hidden
from headwork.sheets.load import load, parse_sheet
from headwork.sheets.sheet import Sheet
from headwork.solving import solve

ONE_HEAD = """
formula = "single_head"
scale = "none"
places = 2
{marking}
[given]
X = [[1, 0], [0, 1]]
W_Q = [[1, 2], [3, 4]]
W_K = [[1, 0], [0, 1]]
W_V = [[1, 1], [0, 1]]
[[part]]
label = "a"
find = ["Q", "K"]
[[part]]
label = "b"
find = ["scores"]
"""


def one_head(marking: str = "") -> Sheet:
    return parse_sheet(ONE_HEAD.replace("{marking}", marking), "test")


def answer(marks: Marks, name: str) -> AnswerMark:
    return next(a for part in marks.parts for a in part.answers if a.name == name)


PRINTED_KEY = {
    "a": {
        "Q[1]": ["2", "3", "-5"],
        "Q[2]": ["-1", "0", "2"],
        "Q[3]": ["1", "-2", "8"],
        "K[1]": ["-6", "0", "1"],
        "K[2]": ["0", "0", "1"],
        "K[3]": ["4", "0", "-3"],
        "V[1]": ["16", "27"],
        "V[2]": ["-8", "0"],
        "V[3]": ["8", "-18"],
    }
}


def test_the_printed_key_is_right_but_for_one_sign() -> None:
    part = headwork.mark("query-key-value", PRINTED_KEY).parts[0]
    assert [a.verdict for a in part.answers] == ["right", "wrong", *["right"] * 7]
    wrong = part.answers[1]
    assert (wrong.name, wrong.entries_wrong, wrong.tags) == ("Q[2]", ((2, 3),), ("sign",))
    assert part.score == Fraction(23, 24)
    working = wrong.working()
    assert working is not None
    assert working.result == -2


def test_names_on_the_page_and_columns_are_accepted() -> None:
    """The sheet writes q_2 as a column."""
    marks = mark("query-key-value", {"a": {"q_1": [["2"], ["3"], ["-5"]]}, "b": {"z_3,1": "-14"}})
    assert answer(marks, "Q[1]").verdict == "right"
    assert answer(marks, "scores[3,1]").verdict == "wrong"
    assert answer(marks, "scores[3,2]").verdict == "blank"


@pytest.mark.parametrize(
    ("text", "right", "verdict"),
    [
        ("0.67", Fraction(2, 3), True),
        ("0.66", Fraction(2, 3), True),
        ("0.65", Fraction(2, 3), False),
        ("0.7", Fraction(2, 3), False),
        ("0.6667", Fraction(2, 3), True),
        ("0.6660", Fraction(2, 3), False),
        ("2/3", Fraction(2, 3), True),
        ("3", Fraction(3), True),
        ("3.01", Fraction(3), False),
        ("sqrt(2)/2", root(2) / 2, True),
    ],
)
def test_one_unit_in_the_last_place_given(text: str, right: Any, verdict: bool) -> None:
    assert Tolerance().accepts(read_number(text), to_float(right), lambda: right, 2) is verdict


@pytest.mark.parametrize(
    ("rule", "text", "verdict"),
    [
        ("exact", "2/3", True),
        ("exact", "0.6667", False),
        ("3 places", "0.6661", True),
        ("3 places", "0.665", False),
        ("2 figures", "0.66", True),
        ("2 figures", "0.6", False),
        ("0.1", "0.6", True),
        ("0.01 + 10%", "0.6", True),
        ("0.01", "0.6", False),
    ],
)
def test_other_tolerances(rule: str, text: str, verdict: bool) -> None:
    right = Fraction(2, 3)
    assert Tolerance.read(rule).accepts(read_number(text), float(right), lambda: right, 2) is verdict


@pytest.mark.parametrize("rule", ["", "wide", "3 apples", "0.1 + 0.2 + 0.3", "-1", "1e999", "nan"])
def test_a_tolerance_that_is_none(rule: str) -> None:
    with pytest.raises(HeadworkError, match="is no tolerance"):
        Tolerance.read(rule)


def test_follow_through_earns_the_points() -> None:
    marks = mark(one_head(), {"a": {"Q": [[1, 2], [3, 5]], "K": [[1, 0], [0, 1]]}, "b": {"scores": [[1, 2], [3, 5]]}})
    assert answer(marks, "Q").entries_wrong == ((2, 2),)
    assert answer(marks, "scores").verdict == "follows"
    assert [part.score for part in marks.parts] == [Fraction(7, 8), 1]


def test_a_blank_earlier_answer_is_no_excuse() -> None:
    marks = mark(one_head(), {"b": {"scores": [[1, 2], [3, 5]]}})
    assert answer(marks, "scores").verdict == "wrong"
    assert answer(marks, "Q").verdict == "blank"


def test_a_trivial_earlier_answer_earns_no_follow_through() -> None:
    zeros = [[0, 0], [0, 0]]
    marks = mark(one_head(), {"a": {"Q": zeros, "K": [[1, 0], [0, 1]]}, "b": {"scores": zeros}})
    assert answer(marks, "scores").verdict == "wrong"
    assert marks.parts[1].score == 0


def test_a_penalty_for_every_error_carried() -> None:
    given = {"a": {"Q": [[1, 2], [3, 5]], "K": [[1, 0], [0, 1]]}, "b": {"scores": [[1, 2], [3, 5]]}}
    sheet = one_head('marking = { penalty = "1/10", points = { b = 2 } }')
    assert mark(sheet, given).parts[1].score == Fraction(9, 5)


def test_a_mistake_made_on_top_of_a_wrong_answer_is_named() -> None:
    """One score is wrong, and then the scores are handed in unscaled: each mistake is named where it is made."""
    sheet = parse_sheet(
        'formula = "scaled_dot_product"\n[given]\nK = [[1, 2, 3], [4, 5, 7], [1, 0, 9]]\nV = [[1], [1], [1]]\n'
        "Q = [[5, 2, 1], [1, 8, 3], [2, 2, 7]]\n"
        '[[part]]\nlabel = "a"\nfind = ["scores"]\n[[part]]\nlabel = "b"\nfind = ["scaled"]\n',
        "test",
    )
    scores = [["12", "37", "14"], ["26", "65", "28"], ["27", "67", "66"]]  # 27, 67, 65 would be right
    marks = mark(sheet, {"a": {"scores": scores}, "b": {"scaled": scores}})
    assert answer(marks, "scores").tags == ("one-entry",)
    assert answer(marks, "scaled").tags == ("forgot-scale",)


def test_malformed_is_not_wrong_and_does_not_give_the_shape_away() -> None:
    marks = mark(one_head(), {"a": {"Q": [[1, 2, 3]], "K": "1 2; x y"}, "b": {"scores": [[1], [2, 3]]}})
    assert [a.verdict for part in marks.parts for a in part.answers] == ["malformed"] * 3
    assert "2×2" not in answer(marks, "Q").message
    assert "row 2, column 1" in answer(marks, "K").message
    assert "ragged" in answer(marks, "scores").message
    told = mark(one_head("marking = { shape = true }"), {"a": {"Q": [[1, 2, 3]]}})
    assert "it should be 2×2" in answer(told, "Q").message


def test_a_wrong_shape_can_still_be_a_known_mistake() -> None:
    marks = mark("two-heads", {"1.a": {"joined": [[1, 2], [3, 4], [5, 6], [7, 8]]}})
    assert answer(marks, "joined").verdict == "malformed"
    assert answer(marks, "joined").tags == ("joined-by-rows",)


def test_the_working_is_held_back_until_its_day() -> None:
    given = {"a": {"Q": [[1, 2], [3, 5]]}}
    assert answer(mark(one_head("marking = { working_from = 2999-01-01 }"), given), "Q").working() is None
    assert answer(mark(one_head("marking = { working_from = 2001-01-01 }"), given), "Q").working() is not None


@pytest.mark.parametrize(
    ("marking", "message"),
    [
        ("marking = { tolerence = 'exact' }", "unknown key 'tolerence'"),
        ("marking = { points = { z = 1 } }", "names part 'z'; there is a, b"),
        ("marking = { penalty = 2 }", "penalty = 2 must be a fraction from 0 to 1"),
        ("marking = { working_from = 'soon' }", "is a day"),
        ("marking = 3", "must be a table"),
    ],
)
def test_rules_that_cannot_be(marking: str, message: str) -> None:
    with pytest.raises(HeadworkError, match=message):
        mark(one_head(marking), {})


def test_shapes_in_letters() -> None:
    marks = mark("block-matrices", {"1.b": {"Q": "B×n×d", "K": ["B", "n", "d"], "V": "B x d x n"}})
    assert [answer(marks, name).verdict for name in "QKV"] == ["right", "right", "wrong"]
    assert answer(marks, "V").entries_wrong == ((1, 2), (1, 3))


def test_what_the_steps_cost_is_worked_out_once_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """In letters it takes 10 ms, and each of a part's questions asked for it again, student after student."""
    worked: list[Last] = []

    def counted(last: Last) -> dict[Step, Count]:
        worked.append(last)
        return counts(last)

    monkeypatch.setattr("headwork.readings.counts.counts", counted)
    text = 'formula = "scaled_dot_product"\nsizes = { tokens = "n", keys = "m", d_k = "d" }\n[[part]]\nkind = "count"\n'
    marker = Marker(parse_sheet(text + 'find = ["scores", "scaled", "head_output"]\n', "sheet"))
    for student in ("Ada", "Bob"):
        (part,) = marker.mark(Answers(student, {"1": {"scaled": {"divisions": "n*m"}}})).parts
        assert [answer.verdict for answer in part.answers] == ["blank", "right", "blank"]
    assert len(worked) == 1


def test_counts_in_letters() -> None:
    given = {
        "2.c": {
            "scores": {"multiplications": "n_q*n_k*d_k", "additions": "n_q·n_k·d_k − n_k n_q"},
            "scaled": {"divisions": "n_k*n_q"},
            "weights": {"divisions": "n_q*n_k", "additions": "n_q*n_k"},
        }
    }
    marks = mark("dot-product", given)
    part = next(part for part in marks.parts if part.label == "2.c")
    assert [a.verdict for a in part.answers] == ["malformed", "right", "wrong", "blank"]
    assert part.answers[2].right == 1


def test_a_masked_matrix_holds_minus_infinity() -> None:
    sheet = parse_sheet(
        'formula = "scaled_dot_product"\nscale = "none"\nmask = "causal"\n[given]\n'
        "Q = [[1, 2], [3, 4]]\nK = [[1, 1], [0, 2]]\nV = [[1], [2]]\n"
        '[[part]]\nlabel = "a"\nfind = ["masked"]\n[[part]]\nlabel = "b"\nfind = ["weights"]\n',
        "test",
    )
    right = mark(sheet, {"a": {"masked": [["3", "-inf"], ["7", "8"]]}})
    assert answer(right, "masked").verdict == "right"
    flipped = mark(sheet, {"a": {"masked": [["3", "4"], ["−∞", "8"]]}, "b": {"weights": [["-inf", 0], [0, 1]]}})
    assert answer(flipped, "masked").tags == ("mask-flipped",)
    assert "which only a mask may hold" in answer(flipped, "weights").message
    wrong = mark(sheet, {"a": {"masked": [["3", "-inf"], ["7", "9"]]}})
    assert answer(wrong, "masked").tags == ("one-entry",)


def test_what_only_a_person_can_mark_carries_no_points() -> None:
    marks = mark("query-key-value", {})
    left = [part for part in marks.parts if part.notes]
    assert {note for part in left for note in part.notes} == {"prove: left for a person", "moments: left for a person"}
    assert all(part.max_score == 0 for part in left)


def test_answers_nobody_asked_for_are_named() -> None:
    marks = mark(one_head(), {"a": {"W": [[1]]}})
    assert marks.parts[0].notes == ("'W' is not asked for; asked are Q, K",)
    assert "no part 'z'" in mark(one_head(), {"z": {}}).note


def test_a_part_is_called_as_the_paper_prints_it() -> None:
    """(a), A, a) or 2a for 2.a; but one name that could be two parts, or comes twice, is asked back."""
    right = {"Q": [[1, 2], [3, 4]]}
    for label in ("(a)", "A", "a)", "(A).", "1a", "1.A"):
        marks = mark(one_head(), {label: right})
        assert (answer(marks, "Q").verdict, marks.note) == ("right", ""), label
    assert answer(mark("two-heads", {"2a": {"Q_1": [[1, 2], [3, 4]]}}), "Q_1").verdict == "right"
    twice = mark(one_head(), {"a": right, "(a)": {"Q": [[0, 0], [0, 0]]}})
    assert (answer(twice, "Q").verdict, "no part '(a)'" in twice.note) == ("right", True)


def test_a_matrix_may_come_entry_by_entry_and_heads_in_a_list() -> None:
    entries = {f"Q[{i},{j}]": str(x) for i, row in ((1, (1, 2)), (2, (3, 4))) for j, x in enumerate(row, 1)}
    assert answer(mark(one_head(), {"a": entries}), "Q").verdict == "right"
    both = mark("two-heads", {"2.a": {"Q": [[[1, 2], [3, 4]], [[2, 1], [4, 3]]]}})
    assert [answer(both, name).verdict for name in ("Q_1", "Q_2")] == ["right", "right"]


@pytest.mark.parametrize("name", ["thinking-machine", "two-heads", "query-key-value", "dot-product", "block-matrices"])
@pytest.mark.parametrize("places", [2, 4, 8])
def test_our_own_answers_rounded_earn_every_point(name: str, places: int) -> None:
    marker = Marker(load(name))
    parts: dict[str, dict[str, Any]] = {}
    for number, problem in enumerate(marker.problems, 1):
        prefix = f"{number}." if len(marker.problems) > 1 else ""
        for label, truth in problem.truths.items():
            if truth.part.kind != "value":
                continue
            digits = max(places, problem.problem.places)
            for question in truth.asked:
                found = question.found
                rows = [
                    [decimal(x, digits) for x in row if not isinstance(x, Hidden)] for row in truth.exact[found.step]
                ]
                rows = rows if found.row is None else [rows[found.row]]
                rows = rows if found.column is None else [[rows[0][found.column]]]
                parts.setdefault(prefix + label, {})[question.name] = rows
    for part in marker.mark(Answers("key", parts)).parts:
        if part.label in parts:
            assert part.score == part.max_score
            assert {a.verdict for a in part.answers} == {"right"}


@settings(max_examples=25, deadline=None)
@given(number=st.integers(1, 10**6), places=st.integers(2, 6))
def test_right_answers_to_new_sheets_are_never_called_wrong(number: int, places: int) -> None:
    sheet = new_sheet(Plan(mask="causal"), seed=3, number=number % 50)
    working = solve(sheet)
    parts: dict[str, dict[str, Any]] = {}
    for part in working.problems[0].parts:
        for step in part.steps:
            if not step.given and step.role in part.part.find and step.value is not None:
                name = step.role if step.head is None else f"{step.role}_{int(step.head) + 1}"
                rows = [[decimal(x, places) for x in row if not isinstance(x, Hidden)] for row in step.value]
                parts.setdefault(part.part.label, {})[name] = rows
    marks = mark(sheet, parts)
    assert marks.score == marks.max_score == 4
