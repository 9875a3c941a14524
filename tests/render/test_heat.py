"""Heat maps: names at the sides, numbers where there is room, what the mask hides crossed out, and a legend."""

from __future__ import annotations

from itertools import combinations

import headwork
from headwork.inline import inline
from headwork.render.blocks import Heat
from headwork.render.colours import THEMES
from headwork.render.drawing import Drawing, Label, Rect
from headwork.render.heat import heat_map
from headwork.render.markdown import with_pictures
from headwork.render.svg import svg
from headwork.sheets.load import parse_sheet
from headwork.working import Equation
from tests.render.test_colours import contrast, over
from tests.render.test_figure import corners, overlap

SHEET = """
title = "Weights"
formula = "scaled_dot_product"
mask = "causal"
[given]
Q = {q}
K = {q}
V = {q}
[[part]]
label = "a"
find = ["weights"]
"""


def weights(tokens: int) -> Equation:
    q = [[(i * j) % 3 for j in range(2)] for i in range(tokens)]
    return headwork.solve(parse_sheet(SHEET.format(q=q), "weights.toml"))["weights"]


def cells(drawing: Drawing, look: str) -> list[Rect]:
    """Those of the matrix, not of the legend below it."""
    return [s for s in drawing.shapes if isinstance(s, Rect) and s.look == look and s.width > 10]


def labels(drawing: Drawing) -> list[str]:
    return [inline(shape.maths) for shape in drawing.shapes if isinstance(shape, Label)]


def test_names_numbers_and_a_legend() -> None:
    drawing = heat_map(weights(3), 1, tokens=("the", "cat", "sat"), keys=("the", "cat", "sat"))
    shown = labels(drawing)
    assert shown[0] == "weights"
    assert shown.count("cat") == 2
    assert "1.00" in shown
    assert {"0", "1", "hidden"} <= set(shown)
    counted = labels(heat_map(weights(3), 0))
    assert [counted.count(n) for n in "012"] == [3, 3, 2]  # at both sides, and 0 and 1 in the legend


def test_what_the_mask_hides_looks_hidden() -> None:
    drawing = heat_map(weights(4), 1)
    assert len(cells(drawing, "hidden")) == 6
    assert len(cells(drawing, "cell")) == 10
    assert all(hidden.colour == "" for hidden in cells(drawing, "hidden"))


def test_many_columns_have_no_numbers_and_fuller_squares() -> None:
    few, many = heat_map(weights(3), 1), heat_map(weights(14), 1)
    assert "1.00" not in labels(many)
    assert max(c.share for c in cells(many, "cell")) > 2 * max(c.share for c in cells(few, "cell"))
    assert many.width < 460


def test_a_number_can_be_read_on_its_square() -> None:
    fullest = max(cell.share for cell in cells(heat_map(weights(3), 1), "cell"))
    for colours in THEMES.values():
        assert contrast(colours["ink"], over(colours["weights"], fullest, colours["paper"])) >= 4.4


def test_nothing_overlaps_and_everything_is_on_the_canvas() -> None:
    """Long names of tokens are shortened, and stand upright over narrow columns."""
    names = ("a", "extraordinarily-long-token", "“quoted”")
    for drawing in (heat_map(weights(3), 1, names, names), heat_map(weights(14), 1)):
        squares = [*map(corners, cells(drawing, "cell")), *map(corners, cells(drawing, "hidden"))]
        assert not any(overlap(one, other) for one, other in combinations(squares, 2))
        level = [s for s in drawing.shapes if isinstance(s, Label) and not s.turned]
        for one, other in combinations(map(corners, level), 2):
            assert not overlap(one, other)
        for left, top, right, bottom in (*squares, *map(corners, level)):
            assert min(left, top) >= 0
            assert right <= drawing.width
            assert bottom <= drawing.height
    upright = [s for s in heat_map(weights(3), 1, names, names).shapes if isinstance(s, Label) and s.turned]
    assert [inline(label.maths) for label in upright] == ["a", "extraordinarily…", "“quoted”"]


def test_the_files_beside_markdown_have_the_names_too() -> None:
    block = Heat(weights(3), 1, ("the", "cat", "sat"), ("the", "cat", "sat"))
    _, files = with_pictures([block], "page")
    (picture,) = files.values()
    assert picture == svg(heat_map(weights(3), 1, block.tokens, block.keys), "light") + "\n"
    assert picture != svg(heat_map(weights(3), 1), "light") + "\n"
