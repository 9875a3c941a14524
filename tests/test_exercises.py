"""Every number of the built-in sheets: the five of the courses, and those of later models."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import headwork
from headwork.inline import inline
from headwork.numbers.digits import decimal, leading_digits
from headwork.numbers.surd import root
from headwork.readings.exact import Matrix
from headwork.render.papers import blank
from headwork.working import Argument, Counts, Derivation, Near, ProblemWorking, Samples, Shapes
from tests.render.conftest import require


def problem(sheet: str, number: int) -> ProblemWorking:
    return headwork.solve(sheet).problems[number]


def ints(matrix: Matrix | None) -> list[list[Any]]:
    assert matrix is not None
    return [list(row) for row in matrix]


def rounded(matrix: Matrix | None, places: int) -> list[list[str]]:
    assert matrix is not None
    return [[decimal(x, places) for x in row] for row in matrix]  # type: ignore[arg-type]  # no entry is hidden


def shape_rows(worked: ProblemWorking, part: int) -> dict[str, str]:
    (line,) = worked.parts[part].lines
    assert isinstance(line, Shapes)
    return {row.role: "×".join(map(str, row.shape)) for row in line.rows}


class TestBlockMatrices:
    def test_shapes_in_a_batch(self) -> None:
        worked = problem("block-matrices", 0)
        assert shape_rows(worked, 0) == {"W_Q": "d×d", "W_K": "d×d", "W_V": "d×d"}
        assert shape_rows(worked, 1) == {"Q": "B×n×d", "K": "B×n×d", "V": "B×n×d"}
        assert shape_rows(worked, 2) == {"scores": "B×n×n", "scaled": "B×n×n", "weights": "B×n×n"}
        assert shape_rows(worked, 3) == {"head_output": "B×n×d", "W_O": "d×d", "output": "B×n×d"}

    def test_one_head_by_hand(self) -> None:
        worked = problem("block-matrices", 2)
        assert ints(worked["Q"].value) == [[4, 0], [1, 1]]
        assert ints(worked["K"].value) == [[3, 1], [1, 3]]
        assert ints(worked["V"].value) == [[2, 0], [0, 2]]
        assert ints(worked["output"].value) == [[4, 0], [2, 1]]

    def test_without_the_hand_over(self) -> None:
        import dataclasses

        sheet = headwork.load("block-matrices")
        part = dataclasses.replace(sheet.problems[2].parts[1], given={})
        alone = dataclasses.replace(sheet.problems[2], parts=(part,))
        working = headwork.solve(dataclasses.replace(sheet, problems=(alone,)))
        assert rounded(working["output"].value, 6)[0] == ["3.986075", "0.006963"]

    def test_the_split_is_proved(self) -> None:
        worked = problem("block-matrices", 3)
        arguments = [line for part in worked.parts for line in part.lines if isinstance(line, Argument)]
        assert [argument.proof.holds for argument in arguments] == [True, True]
        assert [str(name) for name in arguments[0].proof.claimed] == ["Q_0", "Q_1"]
        assert [str(name) for name in arguments[1].proof.claimed] == ["output"]

    def test_two_heads_by_parts(self) -> None:
        worked = problem("block-matrices", 4)
        assert ints(worked["Q", 0].value) == [[1, 2], [5, 6]]
        assert ints(worked["Q", 1].value) == [[3, 4], [7, 8]]
        assert ints(worked["K", 0].value) == [[2, 0], [1, 3]]
        assert ints(worked["K", 1].value) == [[1, 1], [0, 2]]
        assert ints(worked["V", 0].value) == [[1, 0], [3, 1]]
        assert ints(worked["V", 1].value) == [[2, 1], [0, 2]]
        assert ints(worked["joined"].value) == [[1, 0, 2, 1], [0, 1, 1, 2]]
        assert ints(worked["output"].value) == [[3, 1, 2, 2], [1, 3, 2, 2]]

    def test_the_picture_names_every_piece(self) -> None:
        page = repr(problem("block-matrices", 1))
        for head in "123":
            for piece in ("W_Q", "W_K", "W_V"):
                assert f"X·{piece},{head} →" in page
            for piece in "QKVH":
                assert f"→ {piece}_{head} " in page
        assert "[H_1 | H_2 | H_3] → H" in page
        assert "H·W_O → Y" in page


class TestThinkingMachine:
    def test_decimals_are_exact_tenths(self) -> None:
        working = headwork.solve("thinking-machine")
        assert working["Q", 0].value == (
            (Fraction(7), Fraction(8), Fraction(9)),
            (Fraction(79, 5), Fraction(92, 5), Fraction(21)),
        )
        assert ints(working["K", 1].value)[1] == [Fraction(118, 5), 21, Fraction(92, 5)]
        assert ints(working["V", 1].value)[0] == [Fraction(43, 5), Fraction(48, 5), Fraction(53, 5)]

    def test_scores_and_scaled_scores_are_in_closed_form(self) -> None:
        working = headwork.solve("thinking-machine")
        assert working["scores", 0].value == (
            (Fraction(190), Fraction(2182, 5)),
            (Fraction(2182, 5), Fraction(25054, 25)),
        )
        assert ints(working["scaled", 0].value)[0][0] == 190 * root(Fraction(1, 3))

    def test_saturation_is_said(self) -> None:
        """The second weight of every row is within 10⁻⁶¹ of 1, and is not 1."""
        working = headwork.solve("thinking-machine")
        for head in (0, 1):
            near = working["weights", head].near
            assert len(near) == 4
            for row in (0, 1):
                small, large = near[2 * row : 2 * row + 2]
                assert isinstance(small, Near)
                assert (small.whole, large.whole) == (0, 1)
                assert leading_digits(large.distance, 3)[1] <= -62
        assert "weights_0[0,1] is not 1 but 1 − 1.65·10⁻⁶²" in repr(working)

    def test_output(self) -> None:
        working = headwork.solve("thinking-machine")
        row = ["155.960000", "169.040000", "182.120000", "195.200000"]
        assert rounded(working["output"].value, 6) == [row, row]


class TestTwoHeads:
    def test_warm_up(self) -> None:
        assert ints(problem("two-heads", 0)["joined"].value) == [[1, 2, 5, 6], [3, 4, 7, 8]]

    def test_the_layer_against_numpy(self) -> None:
        X = np.array([[1.0, 2], [3, 4]])
        swap, one = np.array([[0.0, 1], [1, 0]]), np.eye(2)

        def head(W_Q: Any, W_K: Any, W_V: Any) -> Any:
            scores = (X @ W_Q) @ (X @ W_K).T / np.sqrt(2)
            powers = np.exp(scores)
            return powers / powers.sum(1, keepdims=True) @ (X @ W_V)

        heads = [
            head(one, swap, np.array([[1, 0], [0, -1]])),
            head(swap, one, np.array([[0, 1], [-1, 0]])),
        ]
        M = np.concatenate(heads, 1) @ np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
        np.testing.assert_allclose(np.asarray(headwork.solve("two-heads")["output"]), M, rtol=1e-12)


class TestDotProduct:
    def test_one_source(self) -> None:
        worked = problem("dot-product", 0)
        assert ints(worked["scores"].value) == [[8, 6, 1]]
        assert rounded(worked["weights"].value, 2) == [["0.88", "0.12", "0.00"]]
        assert rounded(worked["head_output"].value, 2) == [["1.00", "2.00", "2.76"]]

    def test_the_softmax_keeps_the_shape(self) -> None:
        assert shape_rows(problem("dot-product", 1), 0) == {"scores": "n_q×n_k", "weights": "n_q×n_k"}

    def test_the_count_in_symbols(self) -> None:
        import sympy

        n_q, n_k, d_k, d_v = sympy.symbols("n_q n_k d_k d_v", positive=True, integer=True)
        (line,) = problem("dot-product", 1).parts[2].lines
        assert isinstance(line, Counts)
        count = {equation.role: count for equation, count, _ in line.rows}
        assert count["scores"].multiplications == n_q * n_k * d_k
        assert sympy.expand(count["scores"].additions - n_q * n_k * (d_k - 1)) == 0
        assert count["scaled"].divisions == n_q * n_k
        assert count["weights"].divisions == n_q * n_k
        assert sympy.expand(count["weights"].additions - n_q * (n_k - 1)) == 0
        assert count["head_output"].multiplications == n_q * d_v * n_k
        assert sympy.expand(count["head_output"].additions - n_q * d_v * (n_k - 1)) == 0
        assert line.convention.name == "by-hand"
        assert "n_q·n_k·(d_k − 1)" in repr(line)

    def test_the_mask(self) -> None:
        worked = problem("dot-product", 2)
        assert shape_rows(worked, 0)["mask"] == "n_q×n_k"
        assert "−∞" in worked.parts[0].part.answer

    def test_a_scaled_pass(self) -> None:
        worked = problem("dot-product", 3)
        assert rounded(worked["output"].value, 2) == [["0.86", "1.58", "-0.72"], ["0.99", "1.88", "-1.56"]]


class TestQueryKeyValue:
    def test_vectors(self) -> None:
        worked = problem("query-key-value", 0)
        assert ints(worked["Q"].value) == [[2, 3, -5], [-1, 0, -2], [1, -2, 8]]
        assert ints(worked["K"].value) == [[-6, 0, 1], [0, 0, 1], [4, 0, -3]]
        assert ints(worked["V"].value) == [[16, 27], [-8, 0], [8, -18]]

    def test_vectors_are_written_as_columns(self) -> None:
        page = repr(problem("query-key-value", 0))
        assert "q_2 = W_Qᵀ·x_2   (3×1)" in page

    def test_one_row_of_attention(self) -> None:
        worked = problem("query-key-value", 0)
        scores, weights, out = (worked[name].value for name in ("scores", "weights", "head_output"))
        assert scores is not None
        assert weights is not None
        assert out is not None
        assert list(scores[2]) == [2, 8, -20]
        assert rounded(weights, 5)[2][:2] == ["0.00247", "0.99753"]
        from headwork.numbers.digits import scientific

        assert scientific(weights[2][2], 3) == "6.90e-13"  # type: ignore[arg-type]  # no entry is hidden
        assert [rounded(out, 2)[2][0], rounded(out, 3)[2][1]] == ["-7.94", "0.067"]

    def test_both_proofs_hold(self) -> None:
        worked = problem("query-key-value", 0)
        for part in worked.parts[4:6]:
            (line,) = part.lines
            assert isinstance(line, Argument)
            assert line.proof.holds

    def test_why_scale(self) -> None:
        ends = []
        for part in problem("query-key-value", 1).parts[:4]:
            (line,) = part.lines
            assert isinstance(line, Derivation)
            ends.append(inline(line.lines[-1].right))
        assert ends == ["D·μ²", "D", "√D", "D·σ²·(2·μ² + σ²)"]

    def test_sampling_shows_it(self) -> None:
        (line,) = problem("query-key-value", 1).parts[4].lines
        assert isinstance(line, Samples)
        assert [row.width for row in line.rows] == [4, 64, 1024]
        for row in line.rows:
            assert row.sampled == pytest.approx(row.predicted, rel=0.1)
        assert line.rows[2].largest[0] > 0.9 > 0.4 > line.rows[2].largest[1]
        assert line.rows[2].gradient[0] < 0.1 < 0.25 < line.rows[2].gradient[1]


class TestGrowingCache:
    def test_by_hand(self) -> None:
        """q = (1, 1) meets (1, 0), (0, 1), (1, 1): scores 1, 1, 2. With e taken out the powers are 1, 1, e."""
        worked = problem("growing-cache", 0)
        assert ints(worked["K"].value) == [[1, 0], [0, 1], [1, 1]]
        assert ints(worked["scores"].value) == [[1, 1, 2]]
        total = 2 + mpmath.e
        first, last = 1 / total, mpmath.e / total
        expected = [first, first, last]
        assert [float(x) for x in np.asarray(worked["weights"])[0]] == pytest.approx([float(x) for x in expected])
        by_hand = [3 * first + last, first + 2 * last]
        assert rounded(worked["output"].value, 6) == [[mpmath.nstr(x, 7) for x in by_hand]]


class TestRotary:
    def test_by_hand(self) -> None:
        """Equal vectors turned by 60° a position: 2·cos(60°·distance), which is 2, 1, −1."""
        worked = problem("rotary", 0)
        half_root = root(Fraction(3, 4))
        assert ints(worked["K_rotated"].value) == [[1, 0], [Fraction(1, 2), half_root], [Fraction(-1, 2), half_root]]
        assert ints(worked["Q_rotated"].value) == [[2, 0], [1, 2 * half_root], [-1, 2 * half_root]]
        assert ints(worked["scores"].value) == [[2, 1, -1], [1, 2, 1], [-1, 1, 2]]


class TestGroupedHeads:
    def test_by_hand(self) -> None:
        worked = problem("grouped-heads", 0)
        queries, keys = [(1, 0), (0, 1), (1, 1), (2, -1)], [((1, 1), (0, 1)), ((0, 1), (1, 0))]
        for head, (a, b) in enumerate(queries):
            expected = [a * k + b * m for k, m in keys[head // 2]]
            assert ints(worked["scores", head + 1].value) == [expected]

    def test_the_words_have_the_numbers_that_the_heads_have(self) -> None:
        """Part b says what heads 2 and 3 put out: halves of their values' rows."""
        import dataclasses

        sheet = headwork.load("grouped-heads")
        asked = dataclasses.replace(sheet.problems[0].parts[0], find=("head_output",))
        alone = dataclasses.replace(sheet.problems[0], parts=(asked,))
        working = headwork.solve(dataclasses.replace(sheet, problems=(alone,)))
        assert ints(working["head_output", 2].value) == [[1, Fraction(1, 2)]]
        assert ints(working["head_output", 3].value) == [[Fraction(1, 2), 2]]
        assert "(1, 0.5)" in sheet.problems[0].parts[1].answer
        assert "(0.5, 2)" in sheet.problems[0].parts[1].answer


@pytest.mark.parametrize(
    "name",
    ["one-step-of-learning", "two-blocks", "growing-cache", "rotary", "encoder-block", "grouped-heads"],
)
def test_a_sheet_of_later_models_is_one_printed_page(name: str, tmp_path: Path) -> None:
    """Worked, and as a question paper."""
    require("typst")
    for working in (headwork.solve(name), blank(headwork.solve(name))):
        working.save(tmp_path / "page.pdf")
        assert len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "page.pdf").read_bytes())) == 1
