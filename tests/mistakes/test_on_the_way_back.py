"""Mistakes on the way back do what NumPy says they do, and are named from the answer alone."""

from typing import Any

import numpy as np
import pytest

from headwork.graph import read
from headwork.marking.answers import Answers
from headwork.marking.mark import Marker
from headwork.mistakes import on_the_way_back
from headwork.mistakes.catalogue import CATALOGUE
from headwork.mistakes.operations import EXACT, FLOATS
from headwork.mistakes.predict import Variant, float_handed
from headwork.mistakes.rewriting import ENTERED
from headwork.readings.floats import to_floats
from headwork.sheets.load import parse_sheet

TAGS = list(ENTERED[on_the_way_back.__name__])
SHEET = """
title = "Back"
formula = "multi_head"
heads = 2
places = 3
[given]
X = [[1, 0, 2, 1], [0, 1, -1, 1], [1, 1, 0, 2]]
W_Q = [[[1, 0], [0, 1], [1, 0], [0, -1]], [[0, 1], [1, 0], [0, 1], [1, 0]]]
W_K = [[[0, 1], [1, 0], [1, 1], [0, 1]], [[1, 0], [0, 1], [0, 1], [-1, 0]]]
W_V = [[[1, 2], [0, 1], [1, 0], [0, 1]], [[2, 0], [1, 1], [0, 1], [1, -1]]]
b_V = [[1, 0], [0, 2]]
W_O = [[1, 0, 2, 1], [0, 1, 0, 1], [1, 0, 1, 0], [2, 1, 0, 1]]
d_output = [[1, 2, -1, 1], [0, 1, 2, -1], [1, -2, 1, 3]]
[[part]]
label = "a"
text = "Find the gradients of the scores, of the projections and of X."
kind = "gradient"
find = ["scores", "Q", "W_V", "b_V", "X"]
"""
MARKER = Marker(parse_sheet(SHEET, "back.toml"))
PROBLEM = MARKER.problems[0]
HANDED = float_handed(PROBLEM.ready.handed)


def answers(graph: Any) -> dict[str, list[list[str]]]:
    """What somebody who makes this mistake hands in, to three places."""
    worked = Variant(graph, FLOATS).by_name(Variant(graph, FLOATS).everything(HANDED))
    asked = {q.name: (q.found.step.role, q.found.step.head) for q in PROBLEM.truths["a"].asked}
    return {name: [[f"{x:.3f}" for x in row] for row in worked[key]] for name, key in asked.items()}


def test_the_right_answers_are_right() -> None:
    marks = MARKER.mark(Answers("key", {"a": answers(PROBLEM.ready.ends)}))
    assert marks.score == marks.max_score


@pytest.mark.parametrize("tag", TAGS)
def test_each_is_named_in_every_way_it_can_be_made(tag: str) -> None:
    graphs = CATALOGUE[tag].made_in(PROBLEM.ready.ends)
    assert graphs
    for graph in graphs:
        marks = MARKER.mark(Answers("Ada", {"a": answers(graph)}))
        wrong = [a for a in marks.parts[0].answers if a.verdict in ("wrong", "malformed")]
        if wrong:  # a transpose left out of a step that nobody asks for here changes nothing
            assert any(tag in answer.tags for answer in wrong), [a.tags for a in wrong]


@pytest.mark.parametrize("tag", TAGS)
def test_closed_forms_and_floats_agree_on_every_mistaken_way_back(tag: str) -> None:
    for graph in CATALOGUE[tag].made_in(PROBLEM.ready.ends)[:2]:
        near, closed = Variant(graph, FLOATS).everything(HANDED), read(graph, EXACT, PROBLEM.ready.handed)
        for step in graph:
            np.testing.assert_allclose(np.array(near[step]), np.array(to_floats(closed[step])), rtol=1e-9, atol=1e-9)


def test_the_softmax_by_numpy() -> None:
    """P∘dP, P∘(1 − P)∘dP and the right P∘(dP − Σ P∘dP), of the same P and dP."""
    steps = PROBLEM.ready.steps
    right = Variant(PROBLEM.ready.ends, FLOATS).everything(HANDED)
    P, dP = (np.array(right[steps[role, 1]]) for role in ("weights", "d_weights"))
    expected = {
        "": P * (dP - (P * dP).sum(1, keepdims=True)),
        "row-term-forgotten": P * dP,
        "jacobian-diagonal": P * (1 - P) * dP,
    }
    for tag, matrix in expected.items():
        graph = CATALOGUE[tag].made_in(PROBLEM.ready.ends)[0] if tag else PROBLEM.ready.ends
        found = Variant(graph, FLOATS).value(steps["d_scaled", 1], HANDED)
        np.testing.assert_allclose(np.array(found), matrix)


ONE_HEAD = """
title = "Back"
formula = "single_head"
places = 3
[given]
X = [[1, 2], [0, 1], [1, 0]]
W_Q = [[1, 0], [1, 1]]
W_K = [[0, 1], [1, 0]]
W_V = [[1, -1], [2, 0]]
d_output = [[1, 2], [2, 3], [-3, 1]]
[[part]]
label = "a"
kind = "gradient"
find = ["X"]
"""


@pytest.mark.parametrize(
    ("tag", "mistaken"),
    [
        ("gradients-not-summed", lambda d, W: d["Q"] @ W["Q"].T + d["K"] @ W["K"].T),
        ("gradients-not-summed", lambda d, W: d["Q"] @ W["Q"].T + d["V"] @ W["V"].T),
        ("gradient-not-transposed", lambda d, W: sum(d[name] @ W[name] for name in "QKV")),
    ],
    ids=["without values", "without keys", "no projection transposed"],
)
def test_what_x_gets_by_numpy(tag: str, mistaken: Any) -> None:
    """One of the three ways back to X left out, or no transpose in any of them: neither had a name."""
    marker = Marker(parse_sheet(ONE_HEAD, "one.toml"))
    ready = marker.problems[0].ready
    right = Variant(ready.ends, FLOATS).everything(float_handed(ready.handed))
    d, W = ({name: np.array(right[ready.steps[f"{kind}_{name}", None]]) for name in "QKV"} for kind in "dW")
    marks = marker.mark(Answers("Ada", {"a": {"d_X": [[f"{x:.3f}" for x in row] for row in mistaken(d, W)]}}))
    (answer,) = marks.parts[0].answers
    assert answer.tags == (tag,)
