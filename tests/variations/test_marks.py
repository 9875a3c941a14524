"""Mistakes in what later models changed are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headwork
from headwork.sheets.load import parse_sheet
from headwork.sheets.sheet import Sheet
from tests.variations.worked import drawn, softmax, text, turned

# Of two tokens after one: how far a key is, and a causal mask laid on at the wrong corner.
FAR = np.array([[1.0, 0, 1], [2, 1, 0]])
CORNER = np.array([[0, 0, -np.inf], [0, 0, 0]])
TOP_LEFT = np.triu(np.full((2, 3), -np.inf), 1)


class TestMarks:
    """A planted mistake is named; the right answer gets full marks."""

    def sheet(self, formula: str, given: dict[str, Any], keys: str, find: str) -> Sheet:
        matrices = "\n".join(f"{role} = {text(value)}" for role, value in given.items())
        return parse_sheet(
            f'formula = "{formula}"\n{keys}\n[given]\n{matrices}\n[[part]]\nlabel = "a"\nfind = ["{find}"]', "s"
        )

    @pytest.mark.parametrize(
        ("tag", "keys", "find", "wrong"),
        [
            (
                "causal-top-left",
                'mask = "causal"',
                "weights",
                lambda s: softmax(s + np.triu(np.full((2, 3), -np.inf), 1)),
            ),
            ("position-bias-sign", 'bias = { alibi = ["1/2"] }', "weights", lambda s: softmax(s + FAR / 2)),
            ("forgot-position-bias", 'bias = { alibi = ["1/2"] }', "weights", softmax),
            ("forgot-mask", "window = [1, 0]", "weights", softmax),
            ("forgot-softcap", "softcap = 1", "weights", softmax),
            ("softcap-after-mask", 'mask = "causal"\nsoftcap = 1', "weights", lambda s: softmax(np.tanh(s + CORNER))),
        ],
    )
    def test_within_the_scores(self, tag: str, keys: str, find: str, wrong: Any) -> None:
        given = {"Q": np.array([[1.0, 2], [2, -1]]), "K": np.array([[1.0, 0], [0, 1], [1, 1]]), "V": drawn(3, 2)}
        sheet = self.sheet("scaled_dot_product", given, f"places = 4\n{keys}", find)
        answer = wrong(given["Q"] @ given["K"].T / np.sqrt(2))
        marked = headwork.mark(sheet, {"a": {find: [[f"{x:.6f}" for x in row] for row in answer]}})
        assert tag in str(marked)
        right = np.asarray(headwork.solve(sheet)[find])
        marked = headwork.mark(sheet, {"a": {find: [[f"{x:.6f}" for x in row] for row in right]}})
        assert "consistent" not in str(marked)

    @pytest.mark.parametrize(
        ("tag", "angles", "pairs"),
        [
            ("rotary-backwards", [-30, -90], "neighbours"),
            ("rotary-pairs", [30, 90], "halves"),
            ("forgot-rotary", [0, 0], "halves"),
        ],
    )
    def test_within_a_turn(self, tag: str, angles: list[int], pairs: str) -> None:
        given = {"Q": np.array([[1.0, 2, 3, 4], [2, -1, 1, 5]]), "K": drawn(2, 4), "V": drawn(2, 2)}
        sheet = self.sheet("scaled_dot_product", given, "places = 4\nrotary = { degrees = [30, 90] }", "Q_rotated")
        answer = turned(given["Q"], np.outer([0, 1], angles), pairs)
        marked = headwork.mark(sheet, {"a": {"Q_rotated": [[f"{x:.6f}" for x in row] for row in answer]}})
        assert tag in str(marked)
