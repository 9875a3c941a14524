"""Several items: X as a list of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headwork
from headwork.errors import HeadworkError
from headwork.sheets.load import parse_sheet
from headwork.working import Shapes
from tests.variations.worked import QKV, W_K, W_O, W_Q, W_V, Array, K, Q, V, W, X, close, drawn, softmax, solved, text


class TestItems:
    ITEMS = np.stack([drawn(2, 3), drawn(2, 3)])
    KEYS = 'title = "Two"'
    PARTS = 'label = "a"\nkind = "shape"\nfind = ["Q", "W_Q"]\n[[part]]\nlabel = "b"\nfind = ["output"]'

    def test_each_is_worked(self) -> None:
        working = solved("single_head", {"X": self.ITEMS, **W}, self.KEYS, self.PARTS)
        assert [p.problem.title for p in working.problems] == ["Two, item 1", "Two, item 2"]
        for item, worked in zip(self.ITEMS, working.problems, strict=True):
            close(worked["output"], softmax(item @ W_Q @ (item @ W_K).T / np.sqrt(2)) @ item @ W_V @ W_O)
            assert worked["output"].shape == (2, 3)

    @pytest.mark.parametrize(("sizes", "shape"), [("", (2, 2, 2)), ('[sizes]\nbatch = "B"', ("B", 2, 2))])
    def test_shapes_have_the_items_before_them_and_are_asked_once(self, sizes: str, shape: Any) -> None:
        working = solved("single_head", {"X": self.ITEMS, **W}, f"{self.KEYS}\n{sizes}", self.PARTS)
        first, second = working.problems
        assert [part.part.label for part in first.parts] == ["a", "b"]
        assert [part.part.label for part in second.parts] == ["b"]
        (line,) = first.parts[0].lines
        assert isinstance(line, Shapes)
        assert [tuple(map(str, row.shape)) for row in line.rows] == [tuple(map(str, shape)), ("3", "2")]

    def test_an_answer_names_its_item(self) -> None:
        sheet = parse_sheet(sheet_of_items(self.ITEMS), "items.toml")
        right = {f"{number}.a": {"Q": (X @ W_Q).astype(int).tolist()} for number, X in enumerate(self.ITEMS, 1)}
        assert "consistent" not in str(headwork.mark(sheet, right))
        right["2.a"] = {"Q": (-self.ITEMS[1] @ W_Q).astype(int).tolist()}
        assert "sign" in str(headwork.mark(sheet, right))

    def test_without_projections_Q_K_and_V_are_lists(self) -> None:
        given = {name: np.stack([matrix, matrix + 1]) for name, matrix in QKV.items()}
        working = solved("dot_product", given)
        close(working.problems[1]["output"], softmax((Q + 1) @ (K + 1).T) @ (V + 1))

    def test_gradients_of_items_below_one_another_are_the_sums_over_them(self) -> None:
        """What the refusal offers and docs/reference/sheets.md shows: one X, and a mask that keeps the items apart."""
        part = 'kind = "gradient"\nloss = "sum"\nfind = ["W_Q", "W_K", "W_V"]'
        apart = "mask = [[0, 0, X, X], [0, 0, X, X], [X, X, 0, 0], [X, X, 0, 0]]".replace("X", '"-inf"')
        at_once = solved("single_head", {"X": np.vstack(list(self.ITEMS)), **W}, apart, part)
        each = [solved("single_head", {"X": item, **W}, "", part) for item in self.ITEMS]
        for role in ("d_W_Q", "d_W_K", "d_W_V"):
            close(at_once[role], np.sum([np.asarray(one[role]) for one in each], axis=0))

    @pytest.mark.parametrize(
        ("given", "keys", "part", "message"),
        [
            ({}, "", 'kind = "gradient"\nloss = "sum"', "X holds 2 items, and gradients add up over them; write"),
            ({"context": np.stack([X, X, X])}, "", 'find = ["output"]', "X holds 2 items but context 3"),
            ({}, "[sizes]\nbatch = 3", 'find = ["output"]', "batch = 3, but X holds 2 items"),
        ],
    )
    def test_what_does_not_fit_is_named(self, given: dict[str, Any], keys: str, part: str, message: str) -> None:
        with pytest.raises(HeadworkError) as error:
            solved("single_head", {"X": self.ITEMS, **W, **given}, keys, part)
        assert message in str(error.value)


def sheet_of_items(items: Array) -> str:
    matrices = "\n".join(f"{role} = {text(value)}" for role, value in {"X": items, **W}.items())
    return f'formula = "single_head"\n[given]\n{matrices}\n[[part]]\nlabel = "a"\nfind = ["Q"]'
