"""Pages with every variation at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headwork
from headwork.numbers.digits import to_float
from headwork.sheets.load import parse_sheet
from headwork.working import Arithmetic
from tests.variations.worked import QKV, solved

EVERYTHING = """
title = "Everything at once"
formula = "multi_head"
kv_heads = 1
mask = ["causal", "none"]
window = [2, 0]
bias = "alibi"
rotary = { degrees = [30] }
softcap = 3
[given]
X = [[1, 2], [3, 1]]
positions = [[0, 1], [1, 0]]
W_Q = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
W_K = [[[0, 1], [1, 0]]]
W_V = [[[1, 0], [0, -1]]]
W_O = [[1, 0], [0, 1], [-1, 0], [0, -1]]
K_past = [[[1, 1]]]
V_past = [[[2, 1]]]
[[part]]
label = "a"
find = ["Q_rotated", "K", "weights", "output"]
[[part]]
label = "b"
kind = "shape"
[[part]]
label = "c"
kind = "count"
[[part]]
label = "d"
kind = "diagram"
[[part]]
label = "e"
kind = "gradient"
loss = "sum"
find = ["W_Q", "W_K", "K_past", "X"]
"""


class TestPages:
    @pytest.mark.parametrize("ending", [".txt", ".md", ".tex", ".html", ".json", ".ipynb", ".svg"])
    def test_every_format_sets_it(self, ending: str, tmp_path: Path) -> None:
        page = tmp_path / f"page{ending}"
        headwork.solve(parse_sheet(EVERYTHING, "everything.toml")).save(page)
        assert page.stat().st_size > 500

    def test_a_hidden_key_is_not_said_to_come_later_where_a_window_hides_it(self, tmp_path: Path) -> None:
        for keys, reason in (
            ('mask = "causal"', "comes later"),
            ('mask = "causal"\nwindow = [0, 0]', "may not read"),
            ('mask = "causal"\ntokens = ["a", "b", "c"]\npadding = ["a"]', "may not read"),
        ):
            page = tmp_path / "page.html"
            solved("scaled_dot_product", QKV, keys).save(page)
            assert ("comes later" in page.read_text("utf-8")) == (reason == "comes later")

    def test_the_entries_of_a_turn(self) -> None:
        sheet = parse_sheet(EVERYTHING, "everything.toml")
        (line,) = headwork.solve(sheet, entry="Q_rotated_1[2,1]").problems[0].parts[0].lines
        assert isinstance(line, Arithmetic)
        terms = np.array([[to_float(x) for x in pair] for pair in line.terms])  # type: ignore[arg-type]  # none hidden
        assert terms.prod(axis=1).sum() == pytest.approx(to_float(line.result))  # type: ignore[arg-type]  # not hidden
