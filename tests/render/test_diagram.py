"""The picture comes from the graph: every step, every shape, and nothing over anything else."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwork
from headwork import HeadworkError
from headwork.configure import GivenSizes
from headwork.readings.shapes import shape_text
from headwork.render.diagram import draw
from headwork.working import Diagram, Working
from tests.render.conftest import require

SVG = "{http://www.w3.org/2000/svg}"
CONFIGURATIONS: list[dict[str, Any]] = [
    {"formula": "dot_product"},
    {"formula": "scaled_dot_product", "mask": True},
    {"formula": "single_head"},
    {"formula": "single_head", "keys": "m", "biases": True},
    {"heads": 1},
    {"heads": 2, "mask": True, "biases": True},
    {"heads": 3},
    {"heads": 8, "d_model": 64, "tokens": 5, "batch": 2},
    {"heads": 4, "kv_heads": 2, "d_model": 64},
    {},
    {"formula": "multi_head_blocks", "heads": 2},
    {"formula": "multi_head_blocks", "heads": 8, "d_model": 64, "kv_heads": 2},
    {"formula": "multi_head_blocks"},
    {"heads": 2, "keys": "m"},
]


def drawn(**configuration: Any) -> tuple[Diagram, ElementTree.Element]:
    diagram = headwork.diagram(**configuration)
    return diagram, ElementTree.fromstring(draw(diagram).svg())


def labels(picture: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()).replace("\u00a0", " ") for text in picture.iter(f"{SVG}text")]


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_boxes_do_not_overlap_and_labels_stay_inside(configuration: dict[str, Any]) -> None:
    _, picture = drawn(**configuration)
    width, height = float(picture.get("width", 0)), float(picture.get("height", 0))
    boxes = [
        tuple(float(rect.get(side, 0)) for side in ("x", "y", "width", "height"))
        for rect in picture.iter(f"{SVG}rect")
        if rect.get("stroke-dasharray") != "4 3"  # a head's card holds boxes
    ]
    for i, (x, y, w, h) in enumerate(boxes):
        assert x >= 0
        assert y >= 0
        assert x + w <= width
        assert y + h <= height
        for x2, y2, w2, h2 in boxes[i + 1 :]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    for text in picture.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x", 0)) <= width
        assert 0 <= float(text.get("y", 0)) <= height


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_every_head_shows_its_projections_and_its_output(heads: int) -> None:
    _, picture = drawn(heads=heads)
    shown = labels(picture)
    for head in range(1, heads + 1):
        for name in (f"WQ,{head}", f"WK,{head}", f"WV,{head}", f"Q{head}", f"K{head}", f"V{head}"):
            assert name in shown
        assert any(label.startswith(f"head{head} ") for label in shown)
    assert f"[{' | '.join(f'head{h}' for h in range(1, heads + 1))}]" in shown
    assert "WO" in shown


def test_every_arrow_has_its_shape(workings: dict[str, Working]) -> None:
    """The picture that the sheet asks for: each matrix of the first head with its shape beside it."""
    (diagram,) = [line for part in workings["block-matrices"].problems[1].parts for line in part.lines]
    assert isinstance(diagram, Diagram)
    shown = labels(ElementTree.fromstring(draw(diagram).svg()))
    for equation in diagram.rows:
        if equation.head in (0, None) and not equation.given and not equation.name.transposed:
            assert sum(shape_text(equation.shape).replace("_", "") in label for label in shown) > 0
    assert shown.count("n×dh") >= 9  # Q, K, V of three heads


def test_many_heads_are_stacked() -> None:
    _, picture = drawn(heads=8, d_model=64)
    shown = labels(picture)
    assert "heads 2 to 8, each like this" in shown
    assert "[head1 | … | head8]" in shown
    assert "WQ,3" not in shown


def test_the_block_matrix_view_shows_the_cut() -> None:
    _, picture = drawn(formula="multi_head_blocks", heads=2)
    assert {"[Q1 | Q2]", "[K1 | K2]", "[V1 | V2]"} <= set(labels(picture))


def test_shared_keys_are_said_to_be_shared() -> None:
    _, picture = drawn(heads=4, kv_heads=2, d_model=64)
    assert "heads 2 to 4, each like this; 2 heads share each K and V" in labels(picture)


def test_a_change_in_the_graph_changes_the_picture() -> None:
    """It is no stored picture: a mask, a bias or another size is seen."""
    plain = draw(headwork.diagram(heads=2)).svg()
    changes: list[dict[str, Any]] = [{"mask": True}, {"biases": True}, {"d_model": 6}, {"formula": "multi_head_blocks"}]
    for change in changes:
        assert draw(headwork.diagram(**{"heads": 2, **change})).svg() != plain


def test_words_for_those_who_do_not_see_it() -> None:
    _, picture = drawn(heads=2)
    assert picture.get("role") == "img"
    assert picture.find(f"{SVG}title") is not None
    words = picture.findtext(f"{SVG}desc") or ""
    assert words.startswith("Head 1: X·W_Q,1 gives Q_1, n×d/2;")
    assert words.endswith("joined·W_O gives output, n×d.")


def test_whole_picture(matches: Callable[[str, str], None]) -> None:
    matches(draw(headwork.diagram(heads=3, tokens="n", d_model="d")).svg(alone=True), "three-heads.svg")


def test_png_shows_the_picture(tmp_path: Path) -> None:
    require("typst")
    headwork.diagram(heads=2).save(tmp_path / "block.png")
    content = (tmp_path / "block.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20]) == pytest.approx(2 * 392, abs=4)
    with pytest.raises(HeadworkError, match=r"a picture is written as \.svg or \.png"):
        headwork.diagram().save(tmp_path / "block.gif")


def test_the_same_picture_on_every_page(workings: dict[str, Working]) -> None:
    """HTML, PDF and notebook hold what `draw` draws."""
    from headwork.render.save import rendered
    from headwork.render.typst_maths import string

    working = workings["thinking-machine"]
    picture = working.problems[0].picture
    assert picture is not None
    drawing = draw(picture).svg()
    assert drawing in rendered(working, ".html")
    assert string(drawing) in rendered(working, ".typ")
    assert re.search(r"Z<", drawing)


@pytest.mark.parametrize("sizes", [{"tokens": "n<b>&"}, {"batch": '"><script>'}, {"d_model": "d&"}])
def test_what_is_no_symbol_is_not_drawn(sizes: GivenSizes) -> None:
    with pytest.raises(HeadworkError, match="is not a size"):
        headwork.diagram(**sizes)
