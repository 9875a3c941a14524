"""The picture's geometry: nothing over anything else, no arrow through a box, no text outside its box."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import pytest

import headwork
from headwork.render.diagram import draw
from headwork.render.drawing import Drawing, Label, Line, Rect, label_width
from headwork.sheets.load import parse_sheet
from headwork.working import Diagram

Box = tuple[float, float, float, float]  # left, top, right, bottom
BACK = """
title = "Back"
formula = "{formula}"
{sizes}
[given]
{given}
[[part]]
label = "a"
kind = "gradient"
loss = "sum"
[[part]]
label = "b"
kind = "diagram"
"""
HEADS = """X = [[1, 0], [0, 1]]
W_Q = [[[1],[0]],[[0],[1]]]
W_K = [[[1],[1]],[[0],[1]]]
W_V = [[[1],[1]],[[1],[0]]]
W_O = [[1,0],[0,1]]"""
SHARED = """X = [[1, 0], [0, 1]]
W_Q = [[[1],[0]],[[0],[1]],[[1],[1]],[[2],[1]]]
W_K = [[[1],[1]],[[0],[1]]]
W_V = [[[1],[1]],[[1],[0]]]
W_O = [[1,0],[0,1],[1,1],[0,2]]"""
QKV = "Q = [[1, 0], [1, 1]]\nK = [[1, 1], [2, 0], [0, 1], [1, 0]]\nV = [[1], [2], [3], [4]]"
PAST = """X = [[1, 2], [3, 1]]
X_past = [[1, 0], [2, 2]]
W_Q = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
W_K = [[[0, 1], [1, 0]]]
W_V = [[[1, 0], [0, -1]]]
W_O = [[1, 0], [0, 1], [1, 1], [2, 0]]"""
VARIED = """kv_heads = 1
mask = "causal"
bias = "alibi"
rotary = { degrees = [30] }
softcap = 3"""
ENCODER = (
    HEADS
    + """
W_1 = [[1, 0, -1], [0, 1, 0]]
b_1 = [0, 1, "0.5"]
W_2 = [[1, 0], [0, 1], [0, 0]]
gamma_1 = [1, 2]
beta_1 = [0, 1]"""
)
SHEETS = {
    **{
        f"{around} and back": BACK.format(formula="multi_head", sizes=f'around = "{around}"', given=ENCODER)
        for around in ("pre-norm", "post-norm")
    },
    "past keys, rotations, caps and biases": BACK.format(formula="multi_head", sizes=VARIED, given=PAST).replace(
        'kind = "gradient"\nloss = "sum"', 'find = ["output"]'
    ),
    "the way back": BACK.format(formula="multi_head", sizes="", given=HEADS),
    "the way back of shared keys": BACK.format(formula="multi_head", sizes="", given=SHARED),
    "the way back of one head": BACK.format(formula="scaled_dot_product", sizes="", given=QKV),
    "blockwise": BACK.format(formula="blockwise", sizes="blocks = [2, 2]", given=QKV).replace(
        'kind = "gradient"\nloss = "sum"', 'find = ["output"]'
    ),
}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    **{f"{heads} heads": {"heads": heads} for heads in (1, 2, 3, 4, 8)},
    "dot product": {"formula": "dot_product"},
    "masked": {"formula": "scaled_dot_product", "mask": True},
    "one head": {"formula": "single_head", "keys": "m", "biases": True},
    "mask and biases": {"heads": 2, "mask": True, "biases": True},
    "numbers": {"heads": 8, "d_model": 64, "tokens": 5, "batch": 2},
    "cross-attention": {"heads": 2, "keys": "m"},
    "4 heads, 2 keys": {"heads": 4, "kv_heads": 2},
    "8 heads, 2 keys": {"heads": 8, "kv_heads": 2, "biases": True},
    "8 heads, 4 keys": {"heads": 8, "kv_heads": 4, "keys": "m"},
    "4 heads, 1 key": {"heads": 4, "kv_heads": 1},
    "blocks": {"formula": "multi_head_blocks", "heads": 2},
    "blocks of shared keys": {"formula": "multi_head_blocks", "heads": 8, "d_model": 64, "kv_heads": 2},
    "a typical head": {},
    "typical blocks": {"formula": "multi_head_blocks"},
}


@cache
def diagrams(name: str) -> tuple[Diagram, ...]:
    if name in CONFIGURATIONS:
        return (headwork.diagram(**CONFIGURATIONS[name]),)
    working = headwork.solve(parse_sheet(SHEETS[name], name) if name in SHEETS else name)
    own = [problem.picture for problem in working.problems if problem.picture is not None]
    asked = [line for p in working.problems for part in p.parts for line in part.lines if isinstance(line, Diagram)]
    return (*own, *asked)


BUILT_IN = ("block-matrices", "grouped-heads", "growing-cache", "query-key-value", "thinking-machine", "two-heads")
PICTURES = [(name, wide) for name in (*CONFIGURATIONS, *SHEETS, *BUILT_IN) for wide in (False, True)]
every_picture = pytest.mark.parametrize(("name", "wide"), PICTURES, ids=[f"{n}{', wide' * w}" for n, w in PICTURES])


def drawings(name: str, wide: bool) -> list[Drawing]:
    found = [draw(diagram, wide=wide) for diagram in diagrams(name)]
    assert found, name
    return found


def boxes(drawing: Drawing) -> list[Rect]:
    return [shape for shape in drawing.shapes if isinstance(shape, Rect) and shape.look != "card"]


def corners(shape: Rect | Label) -> Box:
    if isinstance(shape, Rect):
        return shape.x, shape.y, shape.x + shape.width, shape.y + shape.height
    width = label_width(shape.maths, shape.size)
    return shape.left, shape.y - 0.7 * shape.size, shape.left + width, shape.y + 0.1 * shape.size


def overlap(one: Box, other: Box, by: float = 0.1) -> bool:
    return one[0] < other[2] - by and other[0] < one[2] - by and one[1] < other[3] - by and other[1] < one[3] - by


def segments(drawing: Drawing) -> list[tuple[Line, Box]]:
    """Every straight piece of every arrow, as a box without a width."""
    found = []
    for line in drawing.shapes:
        if isinstance(line, Line) and not line.dashed:
            for (a, b), (c, d) in zip(line.points, line.points[1:], strict=False):
                found.append((line, (min(a, c), min(b, d), max(a, c), max(b, d))))
    return found


def crosses(segment: Box, box: Box) -> bool:
    left, top, right, bottom = segment
    return overlap((left - 0.2, top - 0.2, right + 0.2, bottom + 0.2), box, by=0.5)


@every_picture
def test_boxes_stand_apart_and_on_the_canvas(name: str, wide: bool) -> None:
    for drawing in drawings(name, wide):
        for one, other in combinations(map(corners, boxes(drawing)), 2):
            assert not overlap(one, other)
        for shape in drawing.shapes:
            if not isinstance(shape, Line):
                left, top, right, bottom = corners(shape)
                assert min(left, top) >= 0
                assert right <= drawing.width
                assert bottom <= drawing.height


@every_picture
def test_no_arrow_runs_through_a_box(name: str, wide: bool) -> None:
    for drawing in drawings(name, wide):
        for _, segment in segments(drawing):
            for box in map(corners, boxes(drawing)):
                assert not crosses(segment, box)


@every_picture
def test_text_stays_in_its_box_and_off_everything_else(name: str, wide: bool) -> None:
    for drawing in drawings(name, wide):
        labels = [shape for shape in drawing.shapes if isinstance(shape, Label)]
        inside = [label for label in labels if label.anchor == "middle"]
        for label in inside:
            left, top, right, bottom = corners(label)
            assert any(
                x <= left and right <= x2 and y <= top and bottom <= y2 for x, y, x2, y2 in map(corners, boxes(drawing))
            )
        for one, other in combinations(map(corners, labels), 2):
            assert not overlap(one, other)
        for outside in (corners(label) for label in labels if label not in inside):
            assert not any(overlap(outside, box) for box in map(corners, boxes(drawing)))
            assert not any(crosses(segment, outside) for _, segment in segments(drawing))


@every_picture
def test_arrows_run_apart(name: str, wide: bool) -> None:
    """Two may cross; none lies on another, unless they start in one place and so are one matrix."""
    for drawing in drawings(name, wide):
        for (one, (a, b, c, d)), (other, (e, f, g, h)) in combinations(segments(drawing), 2):
            if one.points[0] == other.points[0]:
                continue
            upright = abs(a - c) < 0.1 and abs(e - g) < 0.1 and abs(a - e) < 1.5
            level = abs(b - d) < 0.1 and abs(f - h) < 0.1 and abs(b - f) < 1.5
            assert not (upright and min(d, h) - max(b, f) > 1), (one, other)
            assert not (level and min(c, g) - max(a, e) > 1), (one, other)


@every_picture
def test_every_arrow_ends_at_a_box_or_in_the_open(name: str, wide: bool) -> None:
    """And every box that reads something has an arrow for each matrix that it reads."""
    for drawing in drawings(name, wide):
        tips = [line.points[-1] for line in drawing.shapes if isinstance(line, Line) and line.head]
        reached = [[tip for tip in tips if x < tip[0] < x2 and abs(tip[1] - y) < 0.1] for x, y, x2, _ in
                   map(corners, boxes(drawing))]  # fmt: skip
        loose = [tip for tip in tips if not any(tip in group for group in reached)]
        assert all(abs(one[0] - other[0]) > 8 for group in reached for one, other in combinations(group, 2))
        # Rows of a table of cosines read nothing that is drawn: a parameter stands in the box that uses it.
        reading = {box.of for box in boxes(drawing) if box.of and box.of.role not in ("cos_Q", "sin_Q")}
        plain = [g for g, box in zip(reached, boxes(drawing), strict=True) if box.look == "plain" and box.of in reading]
        assert all(plain)
        assert loose


def test_shared_keys_are_drawn_once_and_read_by_their_heads() -> None:
    """4 heads on 2 keys: W_K,2 is there, heads 1 and 2 read K_1, heads 3 and 4 read K_2."""
    (drawing,) = drawings("4 heads, 2 keys", wide=True)
    found = [(box.of.role, box.of.head) for box in boxes(drawing) if box.of]
    assert [pair for pair in found if pair[0] == "K"] == [("K", 0), ("K", 1)]
    assert [head for role, head in found if role == "scores"] == [0, 1, 2, 3]
    (x, _, x2, _), (y, _, y2, _) = _group_cards(drawing)
    for box in boxes(drawing):
        if box.of and box.of.role == "scores":
            left, right = ((x, x2), (y, y2))[int(box.of.head or 0) // 2]
            assert left < box.x
            assert box.x + box.width < right


def _group_cards(drawing: Drawing) -> tuple[Box, Box]:
    """The two cards that hold another one."""
    cards = [corners(shape) for shape in drawing.shapes if isinstance(shape, Rect) and shape.look == "card"]
    holding = [card for card in cards if any(overlap(card, other) and card[0] < other[0] for other in cards)]
    one, other = sorted(holding)
    return one, other


def test_heads_stand_side_by_side_in_the_wide_form() -> None:
    def places(wide: bool) -> list[tuple[float, float]]:
        (drawing,) = drawings("3 heads", wide=wide)
        return [(box.x, box.y) for box in boxes(drawing) if box.of and box.of.role == "head_output"]

    wide, tall = places(True), places(False)
    assert len({y for _, y in wide}) == 1
    assert len({x for x, _ in wide}) == 3
    assert [y for _, y in tall] == sorted({y for _, y in tall})
    (landscape,) = drawings("4 heads", wide=True)
    assert landscape.width > 1.5 * landscape.height
