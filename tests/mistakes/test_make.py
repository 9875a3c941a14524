"""New sheets: reproducible, fit for pencil, every mistake told from every other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from headwork.cli import app
from headwork.errors import HeadworkError
from headwork.mistakes.apart import Apart
from headwork.mistakes.make import Plan, new_sheet
from headwork.sheets.load import load, parse_sheet
from headwork.sheets.ready import Ready
from headwork.sheets.save import sheet_toml
from headwork.sheets.shelf import built_in
from headwork.solving import solve

PLANS = [
    Plan(),
    Plan(mask="causal"),
    Plan("multi_head_blocks", mask="causal", biases=True),
    Plan("single_head", heads=1, d_model=3),
    Plan("scaled_dot_product", d_model=3),
    Plan("dot_product", d_model=2),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.formula + plan.mask)
def test_a_new_sheet_is_small_whole_and_lively(plan: Plan) -> None:
    sheet = new_sheet(plan, seed=11)
    ready = Ready(sheet.problems[0])
    assert Apart(ready).coincidence(ready) == ""
    for part in solve(sheet).problems[0].parts:
        for step in part.steps:
            value = np.asarray(step)
            if step.role in ("Q", "K", "V", "scores") or step.given:
                assert np.all((value == np.round(value)) | np.isneginf(value))
                assert np.max(np.abs(value[np.isfinite(value)])) <= 40
            if step.role == "weights":
                assert value.sum(axis=1) == pytest.approx(1)
                assert value.max(axis=1)[1:].max() < 0.98


def test_the_seed_and_the_number_decide() -> None:
    assert new_sheet(seed=7, number=2) == new_sheet(seed=7, number=2)
    assert len({sheet_toml(new_sheet(seed=7, number=n)) for n in range(1, 6)}) == 5
    assert new_sheet(seed=8, number=2) != new_sheet(seed=7, number=2)


def test_all_sheets_of_one_size_cost_the_same_work() -> None:
    """Every projection has two entries in a column that are not 0."""
    for number in range(1, 4):
        given = new_sheet(number=number).problems[0].given
        for (role, _), matrix in given.items():
            if role.startswith("W_"):
                assert all(sum(1 for x in column if x) == 2 for column in zip(*matrix, strict=True))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            {"d_model": 4},
            "scaled-by-d_k and scaled-by-sqrt-d_model predict the same answer: √d_model = √4 and d_k = 2",
        ),
        ({"d_model": 2}, "forgot-scale predicts the right answer: √d_k = 1 changes nothing"),
        ({"tokens": 1}, "with one token there is nothing to choose between"),
        ({"d_model": 7}, "cannot be shared by 2 heads"),
        ({"tokens": 99}, "tokens = 99 is no size for pencil"),
        ({"mask": "odd"}, "there is no mask 'odd'"),
        ({"formula": "odd"}, "there is no formula 'odd'"),
        ({"formula": "dot_product", "biases": True}, "has no projections and so no biases"),
    ],
)
def test_sizes_that_cannot_do_say_why(plan: dict[str, Any], message: str) -> None:
    with pytest.raises(HeadworkError, match=message.replace("√", ".")):
        new_sheet(Plan(**plan))


@pytest.mark.parametrize("name", built_in())
def test_a_saved_sheet_is_read_back_the_same(name: str) -> None:
    assert parse_sheet(sheet_toml(load(name)), name) == load(name)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.formula + plan.mask)
def test_a_new_sheet_is_read_back_the_same(plan: Plan) -> None:
    sheet = new_sheet(plan)
    assert parse_sheet(sheet_toml(sheet), sheet.source) == sheet


def test_everything_a_problem_may_hold_is_saved() -> None:
    text = """
title = "All \\"of\\" it"
formula = "multi_head"
heads = 2
kv_heads = 1
scale = "2*sqrt(3)/3 + 1/7"
mask = [[true, false], [0, "-inf"]]
[given]
X = [["0.1", "1/3"], [1, "sqrt(2)"]]
W_Q = [[[1], [2]], [[3], [4]]]
W_K_1 = [[1], [2]]
W_V = [[[1], [2]]]
b_Q = [[1], [2]]
W_O = [[1, 2], [3, 4]]
[marking]
tolerance = "0.01 + 1%"
working_from = 2026-12-01
shape = true
points = { a = 2 }
[[part]]
label = "a"
find = ["Q"]
given = { K_1 = [[1], [2]] }
"""
    sheet = parse_sheet(text, "all")
    assert parse_sheet(sheet_toml(sheet), "all") == sheet


def test_the_command_writes_as_many_as_asked(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "sheets"
    result = CliRunner().invoke(app, ["new", "--output", str(out), "--count", "10", "--mask", "causal", "--seed", "3"])
    assert result.exit_code == 0
    assert sorted(p.name for p in out.iterdir()) == [f"sheet-{n:02d}.toml" for n in range(1, 11)]
    again = new_sheet(Plan(mask="causal"), seed=3, number=4)
    assert load(out / "sheet-04.toml").problems == again.problems
