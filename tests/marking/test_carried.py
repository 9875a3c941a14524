"""Slips carried on: at full precision, with guard digits, rounded at every step. Fair to all who are consistent, and
worth nothing to who is not."""

from functools import cache
from math import trunc
from random import Random

import pytest

from headwork.marking.answers import Answers
from headwork.marking.mark import Marker, mark
from headwork.marking.marks import AnswerMark, Marks
from headwork.mistakes.make import Plan, new_sheet
from headwork.mistakes.operations import FLOATS
from headwork.mistakes.predict import float_handed
from headwork.mistakes.slips import half_up, rounded_rules
from headwork.readings.floats import Floats
from headwork.sheets.load import parse_sheet

PLANS = (Plan(mask="causal"), Plan("multi_head_blocks", biases=True), Plan("single_head", 3, 1, 3))
KINDS = {"full precision": None, "guard digits": 2, "every step": 0}
Written = dict[tuple[str, str], Floats]


@cache
def marker(number: int) -> Marker:
    return Marker(new_sheet(PLANS[number], seed=5))


def texts(answers: Written, places: int, cut: bool = False) -> Answers:
    parts: dict[str, dict[str, list[list[str]]]] = {}
    for (part, name), matrix in answers.items():
        written = (
            [[trunc(round(x * 10**places, 6)) / 10**places for x in row] for row in matrix]
            if cut
            else half_up(matrix, places)
        )
        rows = [[f"{x:.{places}f}" for x in row] for row in written]
        parts.setdefault(part, {})[name] = rows
    return Answers("student", parts)


def carried_on(desk: Marker, places: int, guard: int | None, generator: Random) -> tuple[Written, int]:
    """One entry of an answer is off by one, and every later answer is worked from there."""
    problem = desk.problems[0]
    rules = FLOATS if guard is None else rounded_rules(places + guard)
    handed, right = float_handed(problem.ready.handed), problem.judge.diagnosis.right
    asked = {(label, q.name): q.found.step for label, truth in problem.truths.items() for q in truth.asked}
    number = generator.randrange(len(asked) - 1)
    step = list(asked.values())[number]
    slipped = [list(row) for row in right.everything(handed, rules=rules)[step]]
    slipped[generator.randrange(len(slipped))][generator.randrange(len(slipped[0]))] += 1
    worked = right.everything({**handed, step: slipped}, rules=rules)
    return {key: worked[step] for key, step in asked.items()}, number


def answers_of(marks: Marks) -> list[AnswerMark]:
    return [answer for part in marks.parts for answer in part.answers]


@pytest.mark.parametrize("kind", KINDS)
def test_who_carries_a_slip_on_loses_nothing_after_it(kind: str) -> None:
    generator = Random(kind)
    for student in range(45):
        desk, places = marker(student % 3), generator.choice((2, 4))
        answers, number = carried_on(desk, places, KINDS[kind], generator)
        marked = answers_of(desk.mark(texts(answers, places)))
        assert marked[number].verdict == "wrong"
        assert {answer.verdict for answer in marked[number + 1 :]} <= {"right", "follows"}
        assert all(answer.right == answer.entries for answer in marked[number + 1 :])


def test_who_cuts_numbers_off_loses_nothing_either() -> None:
    """Weights of 0.5399 … are kept whole and written 0.53."""
    generator = Random(5)
    for student in range(60):
        desk = marker(student % 3)
        answers, number = carried_on(desk, 2, None, generator)
        marked = answers_of(desk.mark(texts(answers, 2, cut=True)))
        assert {answer.verdict for answer in marked[number + 1 :]} <= {"right", "follows"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_slip_is_found_where_it_is_made(kind: str) -> None:
    generator = Random(kind)
    for student in range(45):
        desk, places = marker(student % 3), generator.choice((2, 4))
        answers, number = carried_on(desk, places, KINDS[kind], generator)
        key, matrix = list(answers.items())[number + 1]
        row, column = generator.randrange(len(matrix)), generator.randrange(len(matrix[0]))
        again = [list(line) for line in matrix]
        again[row][column] += 7.5
        answer = answers_of(desk.mark(texts({**answers, key: again}, places)))[number + 1]
        assert (answer.verdict, answer.entries_wrong) == ("wrong", ((row + 1, column + 1),))
        assert "one-entry" in answer.tags


def test_answers_that_follow_from_nothing_earn_nothing() -> None:
    generator = Random(2)
    for student in range(45):
        desk, places = marker(student % 3), generator.choice((2, 4))
        answers, number = carried_on(desk, places, None, generator)
        later = list(answers)[number + 1 :]
        random: Written = {key: [[generator.uniform(-9, 9) for _ in row] for row in answers[key]] for key in later}
        after = answers_of(desk.mark(texts({**answers, **random}, places)))
        without = answers_of(desk.mark(texts(random, places)))
        for one, other in list(zip(after, without, strict=True))[number + 1 :]:
            assert one.verdict == "wrong"
            assert one.right == other.right


WEIGHED = """
formula = "scaled_dot_product"
scale = "none"
places = 2
{marking}
[given]
Q = [[1, 0], [0, 1]]
K = [[1, 2], [0, 1]]
V = [[10, 0], [0, 10]]
[[part]]
label = "a"
find = ["scores"]
[[part]]
label = "b"
find = ["weights"]
[[part]]
label = "c"
find = ["head_output"]
"""


def weighed(output: str, marking: str = "", weights: str = "0.88 0.12; 0.73 0.27") -> list[AnswerMark]:
    """The scores are [[1, 0], [2, 1]]; with 2 for 1 the first row of weights is 0.8808 and 0.1192."""
    sheet = parse_sheet(WEIGHED.replace("{marking}", marking), "test")
    return answers_of(
        mark(sheet, {"a": {"scores": "2 0; 2 1"}, "b": {"weights": weights}, "c": {"head_output": output}})
    )


def test_the_message_and_the_working_are_from_own_numbers() -> None:
    """0.8808·10 = 8.81 is what the slip leads to; 8.80 what the weights as written lead to."""
    for first in ("8.81 1.19", "8.80 1.20"):
        scores, weights, output = weighed(f"{first}; 7.31 2.69")
        assert (scores.verdict, weights.verdict, output.verdict) == ("wrong", "follows", "follows")
        assert output.message == "carries on from scores, marked wrong"
    wrong = weighed("8.81 1.99; 7.31 2.69")[2]
    assert wrong.entries_wrong == ((1, 2),)
    working = wrong.working()
    assert working is not None
    assert float(working.result) == pytest.approx(1.192, abs=1e-3)  # type: ignore[arg-type]  # it is not hidden


def test_a_slip_is_handed_on_within_what_writing_left_off() -> None:
    """0.55 may be anything from 0.545 to 0.56, and ten times as much what follows from it; no more."""
    near, far = (weighed(f"{number} 4.5; 7.31 2.69", weights="0.55 0.45; 0.73 0.27")[2] for number in ("5.60", "5.62"))
    assert near.verdict == "follows"
    assert (far.verdict, far.entries_wrong) == ("wrong", ((1, 1),))


def test_a_slip_of_too_few_places_gives_what_follows_no_more_room() -> None:
    """Two places are asked for: 0.6 is 0.60, and not anything from 0.55 to 0.65."""
    coarse = weighed("6.40 4.00; 7.31 2.69", weights="0.6 0.4; 0.73 0.27")[2]
    assert (coarse.verdict, coarse.entries_wrong) == ("wrong", ((1, 1),))


def test_one_number_in_four_that_follows_is_chance() -> None:
    """The slip leads to 8.81 1.19; 7.31 2.69, and three of the four have nothing to do with that."""
    output = weighed("8.81 5.55; 1.11 9.99")[2]
    assert (output.verdict, len(output.entries_wrong)) == ("wrong", 4)
    assert output.right == 0


def test_every_answer_that_carries_a_slip_on_pays_the_penalty() -> None:
    marks = weighed("8.81 1.19; 7.31 2.69", 'marking = { penalty = "1/4" }')
    assert [float(answer.right) for answer in marks] == [3, 3, 3]


def test_what_follows_from_a_slip_is_not_called_rounded() -> None:
    """One product is 6 for 5; 6 / 2 = 3, which is also 2.5 rounded too early."""
    sheet = parse_sheet(
        'formula = "scaled_dot_product"\nplaces = 2\n[given]\nQ = [[2, 0, 1, 1], [0, 2, 1, 0]]\n'
        "K = [[2, 1, 0, 1], [0, 2, 2, 0]]\nV = [[10, 0], [0, 10]]\n"
        '[[part]]\nlabel = "a"\nfind = ["scores", "scaled"]\n',
        "test",
    )
    scores, scaled = answers_of(mark(sheet, {"a": {"scores": "6 2; 2 6", "scaled": "3 1; 1 3"}}))
    assert (scores.tags, scaled.verdict, scaled.tags) == (("one-entry",), "follows", ())


def test_who_turns_back_to_the_right_numbers_is_right() -> None:
    """The slip was one of copying: what is worked after it is right, and so is what follows from that."""
    right = "0.73 0.27; 0.73 0.27"
    output = weighed("7.31 2.69; 7.31 2.89", weights=right)[2]
    assert (output.verdict, output.entries_wrong, output.message) == ("wrong", ((2, 2),), "")


def test_who_made_no_slip_is_right_however_it_was_rounded() -> None:
    """Four places are written and carried on where two are asked for: the last digits are off, and nothing is wrong."""
    desk = marker(0)
    problem = desk.problems[0]
    worked = problem.judge.diagnosis.right.everything(float_handed(problem.ready.handed), rules=rounded_rules(4))
    asked = {(label, q.name): q.found.step for label, truth in problem.truths.items() for q in truth.asked}
    marks = answers_of(desk.mark(texts({key: worked[step] for key, step in asked.items()}, 4)))
    assert {answer.verdict for answer in marks} == {"right"}
    assert {verdict for answer in marks for row in answer.rows for _, verdict in row} == {"right"}
    assert "is as near as the rounded numbers that it was worked from" in {answer.message for answer in marks}
