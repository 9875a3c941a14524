"""Two mistakes at once are both named, also where one of them changes an answer's shape."""

from __future__ import annotations

import pytest
from marking_study import pair_found
from planting import Desk

from headwork.mistakes.make import Plan, new_sheet

PLAN = Plan("multi_head", 3, 2, 6)


@pytest.mark.parametrize(
    "tags", [("forgot-scale", "q-k-swapped"), ("q-k-swapped", "joined-by-rows"), ("q-k-swapped", "heads-added")]
)
def test_both_are_named(tags: tuple[str, str]) -> None:
    desk = Desk(new_sheet(PLAN))
    planted = [graph for both, graph in desk.diagnosis.pairs() if set(both) == set(tags)]
    assert planted
    assert pair_found(desk.mark(desk.with_graph(planted[0]), 4), tags)
