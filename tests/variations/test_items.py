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

GRADIENT = 'kind = "gradient"\nloss = "sum"'


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

    @pytest.mark.parametrize(
        ("keys", "given"),
        [
            ("", {}),
            ('mask = "causal"\nbias = "alibi"', {"b_Q": [1, 2], "b_O": [1, 0, 2]}),
            ("window = [0, 0]\nrotary = { degrees = [60] }", {}),
            ("rotary = { degrees = [50], places = 1 }\nbias = [[1, 2], [0, 1]]", {}),
            ('tokens = ["a", "b"]\npadding = ["b"]\npositions = { base = 10, places = 2 }', {"X": drawn(2, 2, 4)}),
            ("mask = [[0, 1], [1, 0]]", {"positions": drawn(2, 3)}),
            ('around = "pre-norm"\neps = 1', {"W_1": drawn(3, 2), "W_2": drawn(2, 3), "gamma_1": [1, 2, 3]}),
            ('softmax = "safe-steps"\nsoftcap = 2', {"context": drawn(2, 3, 3)}),
        ],
    )
    @pytest.mark.parametrize("loss", ['loss = "sum"', 'loss = "half-squares"\ntarget = T', "given = { d_output = T }"])
    def test_gradients_are_the_sums_over_them(self, keys: str, given: dict[str, Any], loss: str) -> None:
        """Of what all items share; what each has of its own stands below one another."""
        given = {"X": self.ITEMS, **W, **given}
        own = [role for role in ("X", "context") if role in given]
        wide = given["X"].shape[2]
        given |= {f"W_{letter}": drawn(wide, 2) for letter in "QKV"} if wide != 3 else {}
        target = drawn(2, 2, 3)
        part = 'kind = "gradient"\n' + loss
        together = solved("single_head", given, keys, part.replace("T", text(target)))
        (worked,) = together.problems
        assert worked.problem.title.endswith(", all items")
        each = [
            solved("single_head", {**given, **{role: given[role][i] for role in own}}, keys, part.replace("T", text(t)))
            for i, t in enumerate(target)
        ]
        for role in set(given) - {"positions"}:
            gradients = [np.asarray(one[f"d_{role}"]) for one in each]
            expected = np.vstack(gradients) if role in own else sum(gradients)
            close(together[f"d_{role}"], np.asarray(expected))

    def test_gradients_of_heads_with_masks_of_their_own(self) -> None:
        keys = 'heads = 2\nmask = ["causal", [[1, 0], [0, "-inf"]]]\nbias = { relative = [[1, 0, 2], [0, 1, 1]] }'
        given = {"X": self.ITEMS, **{name: drawn(2, 3, 2) for name in ("W_Q", "W_K", "W_V")}, "W_O": drawn(4, 3)}
        part = 'kind = "gradient"\nloss = "sum"'
        together = solved("multi_head", given, keys, part)
        each = [solved("multi_head", {**given, "X": item}, keys, part) for item in self.ITEMS]
        close(together["d_W_Q", 2], np.sum([np.asarray(one["d_W_Q", 2]) for one in each], axis=0))
        close(together["d_W_O"], np.sum([np.asarray(one["d_W_O"]) for one in each], axis=0))

    def test_gradients_of_blocks_cut_in_every_item(self) -> None:
        given = {name: np.stack([matrix, matrix - 1]) for name, matrix in QKV.items()}
        part = 'kind = "gradient"\nloss = "sum"'
        together = solved("blockwise", given, "blocks = [1, 2]", part)
        each = [solved("scaled_dot_product", {n: m[i] for n, m in given.items()}, "", part) for i in (0, 1)]
        for role in ("d_Q", "d_K", "d_V"):
            close(together[role], np.vstack([np.asarray(one[role]) for one in each]))
        assert ("K", 4) in {
            (step.role, int(step.head) + 1) for step in together.problems[0].parts[0].steps if step.head
        }

    def test_points_are_those_of_the_parts_that_an_item_has(self) -> None:
        """And a part without a label has that of its place, with every item."""
        sheet = (
            sheet_of_items(self.ITEMS).replace('label = "a"', 'kind = "shape"')
            + f"""
            [[part]]
            find = ["weights"]
            [[part]]
            {GRADIENT}
            [marking]
            points = {{ 1 = 5, 2 = 3, 3 = 2 }}"""
        )
        problems = parse_sheet(sheet, "items.toml").problems
        assert [[part.label for part in problem.parts] for problem in problems] == [["1", "2"], ["2"], ["3"]]
        assert [list(problem.marking["points"]) for problem in problems] == [["1", "2"], ["2"], ["3"]]
        assert "0 of 13" in str(headwork.mark(parse_sheet(sheet, "items.toml"), {"1.1": {}}))
        with pytest.raises(HeadworkError, match="points names part '4'"):
            headwork.mark(parse_sheet(sheet.replace("3 = 2", "4 = 2"), "items.toml"), {"1.1": {}})

    def test_no_part_is_no_sheet_of_items_either(self) -> None:
        with pytest.raises(HeadworkError, match="at least one"):
            parse_sheet(f"part = []\n{sheet_of_items(self.ITEMS).partition('[[part]]')[0]}", "items.toml")

    def test_gradients_stand_after_what_is_asked_of_every_item(self) -> None:
        keys = 'title = "Two"\ntokens = [["a", "b"], ["c", "d"]]'
        parts = f'{self.PARTS}\n[[part]]\nlabel = "c"\nkind = "gradient"\nloss = "sum"\nfind = ["W_V"]\nrate = 1'
        working = solved("single_head", {"X": self.ITEMS, **W}, keys, parts)
        assert [[part.part.label for part in each.parts] for each in working.problems] == [["a", "b"], ["b"], ["c"]]
        assert working.problems[2].problem.tokens == ("a", "b", "c", "d")
        close(working["next_W_V"], W_V - np.asarray(working["d_W_V"]))

    @pytest.mark.parametrize(
        ("given", "keys", "part", "message"),
        [
            ({"context": X}, "", GRADIENT, "context is one matrix for 2 items; gradients need one for every item"),
            ({"X_past": drawn(2, 1, 3)}, "", GRADIENT, "gradients of several items are worked without a cache"),
            (
                {"context": drawn(2, 3, 3)},
                "rotary = { degrees = [30] }",
                GRADIENT,
                "where it has as many keys as tokens, not 3",
            ),
            ({"positions": X}, "", f'{GRADIENT}\nfind = ["positions"]', "of positions that all items share"),
            ({"weights": X[:, :2]}, "", GRADIENT, "weights is given for one item, and gradients take all of them"),
            ({}, 'positions = "sinusoidal"', GRADIENT, "add places, as in positions = { places = 4 }"),
            (
                {},
                "",
                'kind = "gradient"\ngiven = { d_output = [[[1, 1, 1]]] }',
                "d_output holds 1 matrices for 2 items",
            ),
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
