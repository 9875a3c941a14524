"""Predictions held against an answer: what says enough, and what chance could have written."""

from __future__ import annotations

from math import comb, inf, log2
from random import Random

import pytest

from headwork.graph import Step
from headwork.marking.mark import Marker, mark
from headwork.mistakes.evidence import BEYOND_CHANCE, Predictions, evidence
from headwork.mistakes.make import Plan, new_sheet
from headwork.mistakes.operations import FLOATS
from headwork.mistakes.predict import Variant, float_handed
from headwork.readings.floats import Floats
from headwork.sheets.load import parse_sheet

RIGHT = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
CLOSE = [[0.01] * 3] * 3


def changed(*entries: tuple[int, int, float]) -> Floats:
    matrix = [list(row) for row in RIGHT]
    for i, j, value in entries:
        matrix[i][j] = value
    return matrix


def of_each(matrix: Floats, factor: float, term: float = 0.0) -> Floats:
    return [[factor * x + term for x in row] for row in matrix]


def test_evidence_counts_which_entries_differ_and_what_is_there() -> None:
    """Two of nine entries, each one of the nine whole numbers from 0 to 8."""
    bits = evidence(changed((0, 0, 5), (1, 1, 7)), RIGHT, CLOSE)
    assert bits == pytest.approx(log2(comb(9, 2)) + 2 * log2(9))
    assert evidence(of_each(RIGHT, 1, 0.005), RIGHT, CLOSE) == 0
    assert evidence(RIGHT[:2], RIGHT, CLOSE) == inf


def test_evidence_of_decimals_is_as_fine_as_they_are_written() -> None:
    half = evidence(of_each(RIGHT, 1 / 16, 0.25), of_each(RIGHT, 1 / 16), CLOSE)
    assert half == pytest.approx(9 * log2(0.5 / 0.02))
    finer = evidence(of_each(RIGHT, 1 / 16, 0.25), of_each(RIGHT, 1 / 16), of_each(CLOSE, 0.01))
    assert finer == pytest.approx(half + 9 * log2(100))


def test_the_more_predictions_there_are_the_more_it_takes() -> None:
    """Predictions that agree are one, and one that is right is none."""
    one_more = of_each(RIGHT, 1, 1)
    few = Predictions([(("a",), one_more), (("b",), one_more), (("c",), RIGHT)], RIGHT)
    many = Predictions([((str(i),), of_each(RIGHT, 1, i)) for i in range(1, 9)], RIGHT)
    assert few.enough == BEYOND_CHANCE
    assert many.enough == BEYOND_CHANCE + 3


def test_what_one_entry_tells_is_not_enough_but_three_are() -> None:
    one, three = changed((0, 0, 5)), changed((0, 0, 5), (1, 1, 7), (2, 2, 1))
    table = Predictions([(("one",), one), (("three",), three)], RIGHT)
    assert table.fitting(one, CLOSE) == []
    assert table.fitting(three, CLOSE) == [("three",)]


def test_a_mistake_and_a_slip_take_as_much_more_as_there_are_places_for_the_slip() -> None:
    """Two entries as a mistake has them, and a slip in its third: enough for a mistake alone, and not for both."""
    three, everywhere = changed((0, 0, 5), (1, 1, 7), (2, 2, 1)), of_each(RIGHT, 1, 1)
    table = Predictions([(("three",), three), (("everywhere",), everywhere)], RIGHT)
    assert evidence(changed((0, 0, 5), (1, 1, 7)), RIGHT, CLOSE) > table.enough
    assert table.nearly(changed((0, 0, 5), (1, 1, 7), (2, 2, 3)), CLOSE) == []
    slipped = [[-7.0, *everywhere[0][1:]], *everywhere[1:]]
    assert [tags[0] for tags in table.nearly(slipped, CLOSE)] == ["everywhere"]


def test_random_numbers_fit_a_prediction_less_than_once_in_a_thousand_times() -> None:
    """2×2 whole numbers from 0 to 9, against 300 predictions of the same kind: a fit alone happens often enough."""
    generator = Random(1)

    def drawn() -> Floats:
        return [[float(generator.randrange(10)) for _ in range(2)] for _ in range(2)]

    table = Predictions([((str(i),), drawn()) for i in range(300)], [[0.0, 9.0], [4.0, 5.0]])
    predicted = [matrix for _, matrix, _ in table.of_shape[2, 2]]
    answers = [drawn() for _ in range(3000)]
    assert sum(answer in predicted for answer in answers) > 30
    assert sum(bool(table.fitting(answer, [[0.01] * 2] * 2)) for answer in answers) <= 3


def test_only_what_comes_after_the_mistake_is_mistaken() -> None:
    """Q is mistaken; what rests on it is carried on from there."""
    problem = Marker(new_sheet(Plan("single_head", 3, 1, 3))).problems[0]
    steps, handed = problem.ready.steps, float_handed(problem.ready.handed)
    turned = [g for tag, g in problem.judge.diagnosis.single if tag == "projection-transposed"][1]

    def mistaken(graph: Variant[Floats], role: str, handed: dict[Step, Floats]) -> bool:
        route = graph.route(steps[role, None], handed)
        assert route is not None
        return route.mistaken

    assert mistaken(turned, "Q", handed)
    assert mistaken(turned, "scores", handed)
    own = {steps[role, None]: turned.value(steps[role, None], handed) for role in ("Q", "K")}
    assert not mistaken(turned, "scores", {**handed, **own})
    assert not mistaken(Variant(problem.ready.last, FLOATS, problem.ready.last), "output", handed)


def sheet(Q: str, K: str, find: str) -> str:
    return (
        f'formula = "scaled_dot_product"\nplaces = 2\n[given]\nQ = {Q}\nK = {K}\nV = [[1], [2], [3]]\n'
        f'[[part]]\nlabel = "a"\nfind = [{find}]\n'
    )


def test_queries_and_keys_exchanged_are_named_beside_rows_and_columns() -> None:
    """Scores that differ from their transpose in one pair of entries say little, but no less of the mistake than of
    the slips, which lead to the very same numbers. Two slips fit, and the widest is kept."""
    Q, K = "[[0, 1, 0], [0, 1, 1], [0, 0, 0]]", "[[1, 0, 1], [0, 0, 1], [1, 0, 0]]"
    marks = mark(parse_sheet(sheet(Q, K, '"scores"'), "test"), {"a": {"scores": [[0, 1, 0], [0, 1, 0], [0, 0, 0]]}})
    assert marks.parts[0].answers[0].tags == ("q-k-swapped", "transposed")


def test_a_whole_unit_away_is_one_entry_wrong_and_is_called_so() -> None:
    """ "less than one unit" leaves a unit itself outside: the same bound decides what is wrong and what differs."""
    eye = "[[1, 0, 0], [0, 1, 0], [0, 0, 1]]"
    problem = parse_sheet(sheet("[[1, 2, 3], [4, 5, 6], [7, 8, 9]]", eye, '"scores"'), "test")
    marks = mark(problem, {"a": {"scores": [["1.01", 2, 3], [4, 5, 6], [7, 8, 9]]}})
    answer = marks.parts[0].answers[0]
    assert (answer.verdict, answer.tags) == ("wrong", ("one-entry",))


def test_two_mistakes_in_whole_numbers_are_named_where_few_rivals_are() -> None:
    """W_Q and W_K taken for each other, and transposed: X·W_Kᵀ handed in as Q."""
    problem = parse_sheet(
        'formula = "single_head"\n[given]\nX = [[1, 0, 0], [0, 1, 0], [1, 1, 0]]\n'
        "W_Q = [[1, 2, 0], [0, 1, 1], [2, 0, 1]]\nW_K = [[2, 0, 1], [1, 1, 0], [0, 3, 1]]\n"
        'W_V = [[1, 0, 1], [0, 1, 0], [0, 0, 1]]\n[[part]]\nlabel = "a"\nfind = ["Q"]\n',
        "test",
    )
    marks = mark(problem, {"a": {"Q": [[2, 1, 0], [0, 1, 3], [2, 2, 3]]}})
    assert marks.parts[0].answers[0].tags == ("q-k-swapped+projection-transposed",)
