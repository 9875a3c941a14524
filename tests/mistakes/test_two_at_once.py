"""Two mistakes at once are both named, also where one of them changes an answer's shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from marking_study import pair_found
from planting import Desk

from headwork.graph import Step
from headwork.marking.mark import Marker
from headwork.marking.one_file import Answers
from headwork.mistakes.make import Plan, new_sheet
from headwork.mistakes.predict import Variant
from headwork.readings.floats import Floats
from headwork.sheets.load import parse_sheet

PLAN = Plan("multi_head", 3, 2, 6)


@pytest.mark.parametrize(
    "tags", [("forgot-scale", "q-k-swapped"), ("q-k-swapped", "joined-by-rows"), ("q-k-swapped", "heads-added")]
)
def test_both_are_named(tags: tuple[str, str]) -> None:
    desk = Desk(new_sheet(PLAN))
    planted = [graph for both, graph in desk.diagnosis.pairs() if set(both) == set(tags)]
    assert planted
    assert pair_found(desk.mark(desk.with_graph(planted[0]), 4), tags)


def test_parts_that_hand_over_the_same_share_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of graphs are worked out for random wrong answers: once, not once for every part of the sheet."""
    desk = Desk(new_sheet(PLAN))
    graphs = len(desk.diagnosis.single) + len(desk.diagnosis.pairs())
    worked: list[Variant[Floats]] = []
    everything = Variant.everything

    def counted(self: Variant[Floats], *given: Any, **named: Any) -> dict[Step, Floats]:
        worked.append(self)
        return everything(self, *given, **named)

    monkeypatch.setattr(Variant, "everything", counted)
    desk.mark(
        {
            key: matrix + 1000 + 7 * np.arange(matrix.size).reshape(matrix.shape) ** 2
            for key, matrix in desk.right().items()
        },
        2,
    )
    of_mistakes = [graph for graph in worked if graph is not desk.diagnosis.right]
    assert len(of_mistakes) == len(set(of_mistakes)) == graphs


def test_a_part_with_a_matrix_of_its_own_has_a_table_of_its_own() -> None:
    """The forgotten scale is named in both parts, though the numbers differ."""
    text = """
formula = "scaled_dot_product"
[given]
Q = [[1, 2, 0, 3], [2, 1, 4, 0]]
K = [[3, 1, 2, 2], [0, 5, 1, 1]]
V = [[1, 0], [2, 3]]
[[part]]
label = "a"
find = ["scaled"]
[[part]]
label = "b"
find = ["scaled"]
given.Q = [[7, 5, 2, 1], [3, 2, 1, 8]]
"""
    answers = {"a": {"scaled": [[11, 13], [15, 9]]}, "b": {"scaled": [[32, 28], [29, 19]]}}
    marks = Marker(parse_sheet(text, "two")).mark(Answers("student", answers))
    assert [answer.tags for part in marks.parts for answer in part.answers] == [("forgot-scale",), ("forgot-scale",)]
