"""The notebook is valid, its code runs and finds the page's numbers again; things display themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headwork
from headwork.sheets.load import parse_sheet
from headwork.sheets.shelf import built_in
from headwork.working import Equation, Working
from tests.render.conftest import require


def cells(working: Working, folder: Path) -> list[dict[str, Any]]:
    require("nbformat")
    working.save(folder / "page.ipynb")
    notebook = json.loads((folder / "page.ipynb").read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    found: list[dict[str, Any]] = notebook["cells"]
    return found


def code(all_cells: list[dict[str, Any]]) -> list[str]:
    return ["".join(cell["source"]) for cell in all_cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("name", built_in())
def test_headwork_cells_find_every_number_again(name: str, workings: dict[str, Working], tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    found = []
    for source in code(cells(workings[name], tmp_path)):
        if "by_torch" in source:
            continue
        exec(source.replace("import torch  # pip install torch", ""), names)  # our own code
        *_, last = source.splitlines()
        if last.isidentifier():
            found.append(names[last])
    lines = [
        line
        for problem in workings[name].problems
        for part in problem.parts
        for line in part.lines
        if isinstance(line, Equation) and line.value is not None and not line.given
    ]
    assert [e.value for e in found] == [line.value for line in lines]


@pytest.mark.parametrize("name", built_in())
def test_pytorch_agrees(name: str, workings: dict[str, Working], tmp_path: Path) -> None:
    """Every cell runs, PyTorch's too; each compares itself with headwork."""
    all_cells = cells(workings[name], tmp_path)
    require("torch")
    names: dict[str, Any] = {}
    for source in code(all_cells):
        exec(source, names)  # our own code


def test_pytorch_agrees_where_a_row_reads_nothing(tmp_path: Path) -> None:
    """On the way back through 0/0, where PyTorch by itself has infinities."""
    sheet = """
    formula = "scaled_dot_product"
    softmax = "steps"
    mask = [[true, true], [false, false]]
    [given]
    Q = [[1], [2]]
    K = [[0], [1]]
    V = [[1], [3]]
    [[part]]
    kind = "gradient"
    loss = "sum"
    """
    all_cells = cells(headwork.solve(parse_sheet(sheet, "blind")), tmp_path)
    require("torch")
    assert any("DivideBy(back=True)" in source for source in code(all_cells))
    names: dict[str, Any] = {}
    for source in code(all_cells):
        exec(source, names)  # our own code


@pytest.mark.parametrize(
    "keys",
    [
        'softmax = "safe-steps"\nheads = 2\nrotary = { degrees = [30] }',
        'heads = 2\nmask = "causal"\naround = "post-norm"\neps = 1',
    ],
)
def test_cells_of_rows_that_stand_as_columns(keys: str, tmp_path: Path) -> None:
    """Every operation along a row is worked along a column then, by headwork as by PyTorch."""
    sheet = f"""
    formula = "multi_head_blocks"
    vectors = "columns"
    {keys}
    [given]
    X = [[1, 0, 1, 2], [0, 1, 1, 0], [1, 1, 2, 0]]
    W_Q = [[1, 0, 2, 1], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]]
    W_K = [[1, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 1, 1]]
    W_V = [[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]]
    W_O = [[1, 0, 0, 0], [0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1]]
    [[part]]
    find = ["{"normed_1" if "around" in keys else "output"}[2]"]
    """
    all_cells = cells(headwork.solve(parse_sheet(sheet, "columns")), tmp_path)
    assert any("upright=True" in source for source in code(all_cells))
    require("torch")
    names: dict[str, Any] = {}
    for source in code(all_cells):
        exec(source, names)  # our own code


def test_every_step_has_its_cells(workings: dict[str, Working], tmp_path: Path) -> None:
    found = cells(workings["thinking-machine"], tmp_path)
    steps = [line for part in workings["thinking-machine"].problems[0].parts for line in part.lines]
    assert sum("by_torch" in source for source in code(found)) == len(steps)
    assert len({cell["id"] for cell in found}) == len(found)


def test_pictures_stand_in_the_notebook(workings: dict[str, Working], tmp_path: Path) -> None:
    from base64 import b64encode

    from headwork.render.diagram import fitting
    from headwork.render.svg import svg

    picture = workings["thinking-machine"].problems[0].picture
    assert picture is not None
    data = b64encode(svg(fitting(picture), "light").encode()).decode()
    assert any(data in "".join(cell["source"]) for cell in cells(workings["thinking-machine"], tmp_path))


def test_things_display_themselves() -> None:
    """A working, a step, a table of shapes, counts, moments and a diagram."""
    working = headwork.solve("two-heads")
    shapes, counts, moments = headwork.shapes(), headwork.counts(), headwork.moments()
    for thing in (working, working.problems[0], working["output"], shapes, counts, moments, headwork.diagram()):
        shown = thing._repr_html_()
        assert shown.startswith('<div class="headwork">')
        assert "<script" not in shown
    assert "<table" in shapes._repr_html_()
    assert "<svg" in headwork.diagram()._repr_html_()
    assert headwork.diagram()._repr_svg_().startswith("<svg")


def test_one_step_at_a_time() -> None:
    from headwork.by_hand import matrix, step
    from headwork.ops import Divide, MatMul, Root, Softmax, Transpose

    Q, K = matrix("Q", [[1, 2], [3, 4]]), matrix("K", [["0.5", "1/3"], ["sqrt(2)", 0]])
    scores = step("S", MatMul(), Q, step("Kᵀ", Transpose(), K))
    weights = step("A", Softmax(), step("scaled", Divide(Root(2, "d_k")), scores))
    expected = np.exp(np.array(scores) / 2**0.5)
    np.testing.assert_allclose(np.array(weights), expected / expected.sum(-1, keepdims=True))
    assert "S = Q·Kᵀ" in repr(scores)
    with pytest.raises(headwork.HeadworkError, match="rows of equal length"):
        matrix("Q", [[1], [1, 2]])
    with pytest.raises(headwork.HeadworkError, match="cannot be multiplied"):
        step("S", MatMul(), Q, matrix("K", [[1, 2, 3]]))
