"""The picture comes from the graph: every step, every shape, and files of every kind. Its geometry: test_figure."""

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
from headwork.render.colours import FAMILIES, LIGHT, THEMES
from headwork.render.diagram import draw, fitting
from headwork.render.drawing import Line, Rect
from headwork.render.save import rendered
from headwork.render.svg import svg
from headwork.working import Diagram, Working
from tests.render.conftest import require

SVG = "{http://www.w3.org/2000/svg}"


def drawn(**configuration: Any) -> tuple[Diagram, ElementTree.Element]:
    diagram = headwork.diagram(**configuration)
    return diagram, ElementTree.fromstring(svg(draw(diagram)))


def labels(picture: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()).replace("\u00a0", " ") for text in picture.iter(f"{SVG}text")]


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_every_head_shows_its_projections_and_its_output(heads: int) -> None:
    _, picture = drawn(heads=heads)
    shown = labels(picture)
    for head in range(1, heads + 1):
        for name in (f"WQ,{head}", f"WK,{head}", f"WV,{head}", f"Q{head}", f"K{head}", f"V{head}"):
            assert name in shown
        assert f"head{head}" in shown
    assert f"[{' | '.join(f'head{h}' for h in range(1, heads + 1))}]" in shown
    assert "WO" in shown


def test_every_arrow_has_its_shape(workings: dict[str, Working]) -> None:
    """The picture that the sheet asks for: each matrix of the first head with its shape beside it."""
    (diagram,) = [line for part in workings["block-matrices"].problems[1].parts for line in part.lines]
    assert isinstance(diagram, Diagram)
    shown = labels(ElementTree.fromstring(svg(draw(diagram))))
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
    shown = labels(picture)
    assert {"heads 1 and 2 share K1 and V1", "heads 3 and 4 share K2 and V2", "WK,1", "WK,2", "WQ,4"} <= set(shown)


def test_a_box_says_whose_step_it_is() -> None:
    """So a page can link it with the equations: by role and head, as matrices are."""
    _, picture = drawn(heads=2, biases=True)
    found = {(g.get("data-role"), g.get("data-head")) for g in picture.iter(f"{SVG}g")}
    each = ("Q_before_bias", "Q", "K", "V", "head_output")
    assert {(role, head) for role in each for head in "01"} <= found
    assert {("X", ""), ("joined", ""), ("output", "")} <= found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_file_has_its_own_colours_whatever_the_system_prefers(theme: str) -> None:
    """On a white slide a light picture stays dark on white when the system is dark."""
    picture = ElementTree.fromstring(svg(draw(headwork.diagram(heads=2)), theme))
    (paper, *_) = picture.iter(f"{SVG}rect")
    assert paper.get("fill") == {"light": "#ffffff", "dark": THEMES["dark"]["paper"]}[theme]
    assert (paper.get("width"), paper.get("height")) == (picture.get("width"), picture.get("height"))
    used = {shape.get(side) for shape in picture.iter() for side in ("fill", "stroke")} - {None, "none", "#ffffff"}
    assert used <= set(THEMES[theme].values())
    assert not list(picture.iter(f"{SVG}style"))


def test_on_a_page_it_takes_the_colours_of_the_page() -> None:
    _, picture = drawn(heads=2)
    used = {shape.get(side) or "" for shape in picture.iter() for side in ("fill", "stroke")} - {"", "none"}
    assert all(colour == "currentColor" or colour.startswith("var(--role-") for colour in used)
    assert {f"var(--role-{name}, {LIGHT[name]})" for name in FAMILIES} <= used


def test_a_change_in_the_graph_changes_the_picture() -> None:
    """It is no stored picture: a mask, a bias or another size is seen."""
    plain = svg(draw(headwork.diagram(heads=2)))
    changes: list[dict[str, Any]] = [{"mask": True}, {"biases": True}, {"d_model": 6}, {"formula": "multi_head_blocks"}]
    for change in changes:
        assert svg(draw(headwork.diagram(**{"heads": 2, **change}))) != plain


def test_words_for_those_who_do_not_see_it() -> None:
    _, picture = drawn(heads=2)
    assert picture.get("role") == "img"
    assert picture.find(f"{SVG}title") is not None
    words = picture.findtext(f"{SVG}desc") or ""
    assert words.startswith("Head 1: X·W_Q,1 gives Q_1, n×d/2;")
    assert words.endswith("joined·W_O gives output, n×d.")


def test_whole_picture(matches: Callable[[str, str], None]) -> None:
    matches(svg(draw(headwork.diagram(heads=3, tokens="n", d_model="d")), "light"), "three-heads.svg")


def test_png_and_pdf_show_the_picture(tmp_path: Path) -> None:
    require("typst")
    diagram = headwork.diagram(heads=2)
    diagram.save(tmp_path / "block.png", wide=True)
    content = (tmp_path / "block.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20]) == pytest.approx(2 * draw(diagram, wide=True).width, abs=4)
    diagram.save(tmp_path / "block.pdf", theme="dark")
    assert (tmp_path / "block.pdf").read_bytes().startswith(b"%PDF")


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    with pytest.raises(HeadworkError, match=r"a picture is written as \.svg, \.png or \.pdf"):
        headwork.diagram().save(tmp_path / "block.gif")
    with pytest.raises(HeadworkError, match="there is no theme 'sepia'; choose light or dark"):
        headwork.diagram().save(tmp_path / "block.svg", theme="sepia")


def test_the_command_draws_wide_and_dark(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from headwork.cli import app

    path = tmp_path / "wide.svg"
    done = CliRunner().invoke(app, ["draw", "--heads", "2", "--wide", "--theme", "dark", "--output", str(path)])
    assert done.exit_code == 0
    assert path.read_text("utf-8") == svg(draw(headwork.diagram(heads=2), wide=True), "dark") + "\n"
    CliRunner().invoke(app, ["draw", "thinking-machine", "--wide", "--output", str(path)])
    assert ElementTree.parse(path).getroot().tag == f"{SVG}svg"


def test_the_same_picture_on_every_page(workings: dict[str, Working]) -> None:
    """HTML, PDF and notebook hold what `draw` draws."""
    from headwork.render.typst import string

    working = workings["thinking-machine"]
    picture = working.problems[0].picture
    assert picture is not None
    drawing = fitting(picture)
    assert svg(drawing) in rendered(working, ".html")
    assert string(svg(drawing, "light")) in rendered(working, ".typ")
    assert re.search(r"Z<", svg(drawing))


@pytest.mark.parametrize("sizes", [{"tokens": "n<b>&"}, {"batch": '"><script>'}, {"d_model": "d&"}])
def test_what_is_no_symbol_is_not_drawn(sizes: GivenSizes) -> None:
    with pytest.raises(HeadworkError, match="is not a size"):
        headwork.diagram(**sizes)


def test_markdown_has_its_pictures_beside_it(tmp_path: Path, workings: dict[str, Working]) -> None:
    """Every picture that the page names is a file, and every file is named."""
    workings["two-heads"].save(tmp_path / "my page.md")
    named = re.findall(r"!\[[^\]]*\]\(<(.*?)>\)", (tmp_path / "my page.md").read_text("utf-8").replace("\\]", ""))
    assert sorted(named) == sorted(path.name for path in tmp_path.glob("*.svg"))
    assert len(named) == 3  # the block, and the weights of two heads
    picture = workings["two-heads"].problems[1].picture
    assert picture is not None
    assert (tmp_path / named[0]).read_text("utf-8") == svg(fitting(picture), "light") + "\n"


def test_latex_draws_it_itself(workings: dict[str, Working]) -> None:
    """Every box and every arrow, in LaTeX's own picture, with no package but color."""
    from headwork.render.latex import latex_picture

    drawing = draw(headwork.diagram(heads=2), wide=True)
    source = latex_picture(drawing)
    boxes = [shape for shape in drawing.shapes if isinstance(shape, Rect)]
    tips = [shape for shape in drawing.shapes if isinstance(shape, Line) and shape.head]
    assert source.count(r"\framebox") + source.count(r"\oval") == len(boxes)
    assert source.count(r"\vector(0,-1)") == len(tips)
    page = rendered(workings["two-heads"], ".tex")
    assert r"\usepackage{color}" in page
    assert page.count(r"\begin{picture}") == 3
