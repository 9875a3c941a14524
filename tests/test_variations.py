"""What later models changed: caches, positions, rotary positions, biases, windows; against NumPy written out here."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

import headwork
from headwork.errors import HeadworkError
from headwork.numbers.digits import to_float
from headwork.numbers.surd import Surd
from headwork.render.save import rendered
from headwork.sheets.added import paper_slopes
from headwork.sheets.load import parse_sheet
from headwork.sheets.save import sheet_toml
from headwork.sheets.sheet import Sheet
from headwork.working import Arithmetic, Shapes, Working

Array = NDArray[np.float64]
RNG = np.random.default_rng(14)


def drawn(*shape: int) -> Array:
    return RNG.integers(-2, 3, shape).astype(float)


def text(value: Any) -> str:
    return str(value.astype(int).tolist()) if isinstance(value, np.ndarray) else str(value)


def solved(formula: str, given: dict[str, Any], keys: str = "", part: str = 'find = ["output"]') -> Working:
    """The sheet is written, saved, read again and solved: what is saved means the same."""
    matrices = "\n".join(f"{role} = {text(value)}" for role, value in given.items())
    sheet = parse_sheet(f'formula = "{formula}"\n{keys}\n[given]\n{matrices}\n[[part]]\n{part}', "drawn.toml")
    again = parse_sheet(sheet_toml(sheet), "drawn.toml")
    assert again.problems == sheet.problems
    return headwork.solve(again)


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def close(worked: Any, expected: Array) -> None:
    np.testing.assert_allclose(np.asarray(worked), expected, rtol=1e-12, atol=1e-12)


X, X_PAST = drawn(2, 3), drawn(3, 3)
W_Q, W_K, W_V, W_O = drawn(3, 2), drawn(3, 2), drawn(3, 2), drawn(2, 3)
W = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": W_O}
CAUSAL = np.where(np.arange(5) <= 3 + np.arange(2)[:, None], 0.0, -np.inf)  # two new tokens after three


class TestCache:
    def test_one_new_token_reads_the_cache_and_itself(self) -> None:
        past = {"K_past": drawn(3, 2), "V_past": drawn(3, 2)}
        working = solved("single_head", {"X": X[:1], **past, **W})
        K, V = (np.vstack([past[f"{r}_past"], X[:1] @ W[f"W_{r}"]]) for r in "KV")
        close(working["K"], K)
        close(working["output"], softmax(X[:1] @ W_Q @ K.T / np.sqrt(2)) @ V @ W_O)

    def test_several_new_tokens_are_causal_from_the_bottom_right(self) -> None:
        past = {"K_past": X_PAST @ W_K, "V_past": X_PAST @ W_V}
        working = solved("single_head", {"X": X, **past, **W}, 'mask = "causal"')
        close(working["mask"], CAUSAL)
        everything = np.vstack([X_PAST, X])
        whole = softmax(everything @ W_Q @ (everything @ W_K).T / np.sqrt(2) + np.triu(np.full((5, 5), -np.inf), 1))
        close(working["output"], (whole @ everything @ W_V @ W_O)[3:])

    @pytest.mark.parametrize("formula", ["single_head", "multi_head", "multi_head_blocks"])
    def test_what_the_cache_holds_is_what_the_earlier_tokens_give(self, formula: str) -> None:
        """K_past = X_past·W_K + b_K: worked out, or given, the output is the same."""
        several = formula != "single_head"
        given: dict[str, Any] = {"X": X, **W}
        for role in ("b_K", "b_V"):
            given[role] = drawn(2)
        K_past, V_past = X_PAST @ W_K + given["b_K"], X_PAST @ W_V + given["b_V"]
        past: dict[str, Any] = {"K_past": K_past, "V_past": V_past}
        if formula == "multi_head":
            per_head = {r: np.stack(np.split(given[r], 2, axis=-1)) for r in ("W_Q", "W_K", "W_V", "b_K", "b_V")}
            given |= per_head
            past = {role: np.stack(np.split(matrix, 2, axis=1)) for role, matrix in past.items()}
        keys = f'mask = "causal"\n{"heads = 2" if several else ""}'
        cached = solved(formula, {**given, **past}, keys)
        worked = solved(formula, {**given, "X_past": X_PAST}, keys)
        close(worked["output"], np.asarray(cached["output"]))
        name: Any = ("K_past", 1) if formula == "multi_head" else "K_past"
        close(worked[name], K_past[:, :1] if formula == "multi_head" else K_past)

    def test_shapes_in_symbols(self) -> None:
        page = repr(
            solved("single_head", {}, '[sizes]\ntokens = "n"\npast = "p"', 'kind = "shape"\nfind = ["K", "weights"]')
        )
        assert "= [K_past;K_new]   (n + p)×d_k" in page
        assert "n×(n + p)" in page

    def test_gradients_reach_the_cache(self) -> None:
        """dK_past are the rows of dK that belong to it: what is given can be learned from too."""
        past = {"K_past": drawn(3, 2), "V_past": drawn(3, 2)}
        part = 'kind = "gradient"\nloss = "sum"\nfind = ["V_past", "K_past", "X"]'
        working = solved("single_head", {"X": X, **past, **W}, "", part)
        K, V = (np.vstack([past[f"{r}_past"], X @ W[f"W_{r}"]]) for r in "KV")
        P = softmax(X @ W_Q @ K.T / np.sqrt(2))
        dH = np.ones((2, 3)) @ W_O.T
        close(working["d_V_past"], (P.T @ dH)[:3])
        dP = dH @ V.T
        dS = P * (dP - (P * dP).sum(axis=1, keepdims=True)) / np.sqrt(2)
        close(working["d_K_past"], (dS.T @ X @ W_Q)[:3])

    def test_blocks_of_a_cache(self) -> None:
        given = {"Q": drawn(2, 2), "K_past": drawn(3, 2), "V_past": drawn(3, 2), "K_new": drawn(2, 2)}
        given["V_new"] = drawn(2, 2)
        keys = 'mask = "causal"\nbias = { relative = [[-1, 0, 1]] }'
        at_once, in_blocks = (
            solved("scaled_dot_product", given, keys),
            solved("blockwise", given, f"{keys}\nblocks = 2"),
        )
        assert at_once["output"].value == in_blocks["output"].value

    @pytest.mark.parametrize(
        ("given", "keys", "message"),
        [
            (
                {"X_past": drawn(3, 3)},
                "mask = [[0, 0], [0, 0]]",
                "keys is 2 (mask has 2 columns), but 3 earlier and 2 new tokens",
            ),
            ({"K_past": drawn(3, 2)}, "", "no matrix was given for V_past; hand one over"),
            ({"K_past": drawn(3, 3)}, "", "K_past has 3 columns, but d_k is 2"),
            ({"X_past": drawn(3, 3), "context": drawn(3, 3)}, "", "'X_past' counts positions"),
            ({"X_past": drawn(3, 3), "positions": drawn(2, 3)}, "", "positions are added to X alone"),
        ],
    )
    def test_what_does_not_fit_is_named(self, given: dict[str, Any], keys: str, message: str) -> None:
        with pytest.raises(HeadworkError) as error:
            solved("single_head", {"X": X, **W, **given}, keys)
        assert message in str(error.value)

    def test_a_formula_without_X_takes_no_X_past(self) -> None:
        with pytest.raises(HeadworkError, match="takes no X; give K_past and V_past"):
            solved("dot_product", {"Q": drawn(1, 2), "K_new": drawn(1, 2), "V_new": drawn(1, 2), "X_past": X_PAST})


Q, K, V = drawn(3, 2), drawn(3, 2), drawn(3, 2)
QKV = {"Q": Q, "K": K, "V": V}
DISTANCE = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))


def headed(keys: str) -> tuple[Working, list[Array]]:
    """Two heads, each its own projections; and what each head's scaled scores are."""
    given = {r: np.stack([drawn(3, 2), drawn(3, 2)]) for r in ("W_Q", "W_K", "W_V")}
    here = drawn(3, 3)
    working = solved("multi_head", {"X": here, **given, "W_O": drawn(4, 2)}, keys, 'find = ["weights"]')
    scaled = [(here @ given["W_Q"][h]) @ (here @ given["W_K"][h]).T / np.sqrt(2) for h in (0, 1)]
    return working, scaled


class TestAdded:
    def test_alibi_as_the_paper_has_it(self) -> None:
        working, scaled = headed('bias = "alibi"')
        for head, slope in enumerate((1 / 16, 1 / 256)):
            close(working["bias", head + 1], -slope * DISTANCE)
            close(working["weights", head + 1], softmax(scaled[head] - slope * DISTANCE))

    def test_slopes_as_given_under_a_causal_mask(self) -> None:
        working, scaled = headed('mask = "causal"\nbias = { alibi = ["1/2", 2] }')
        hidden = np.triu(np.full((3, 3), -np.inf), 1)
        for head, slope in enumerate((0.5, 2)):
            close(working["weights", head + 1], softmax(scaled[head] - slope * DISTANCE + hidden))

    def test_the_slopes_of_the_paper(self) -> None:
        def in_floats(heads: int) -> list[float]:
            """As the paper's own code has them."""
            power = 2 ** int(np.log2(heads))
            found = [2 ** (-8 / power * (i + 1)) for i in range(power)]
            return (
                found
                if heads == power
                else found + [2 ** (-4 / power * (i + 1)) for i in range(2 * power)][::2][: heads - power]
            )

        for heads in (1, 2, 3, 4, 5, 6, 8, 12, 16):
            assert [to_float(slope) for slope in paper_slopes(heads)] == pytest.approx(in_floats(heads), rel=1e-15)
        with pytest.raises(HeadworkError, match="no square roots; give them"):
            paper_slopes(32)

    def test_biases_by_distance_are_clipped_at_the_ends_of_their_table(self) -> None:
        working, scaled = headed("bias = { relative = [[-1, 0, 3], [2, 0, 5]] }")
        for head, (left, right) in enumerate(((-1, 3), (2, 5))):
            bias = np.array([[0, right, right], [left, 0, right], [left, left, 0]])
            close(working["bias", head + 1], bias)
            close(working["weights", head + 1], softmax(scaled[head] + bias))

    def test_a_mask_for_every_head(self) -> None:
        working, scaled = headed('mask = ["causal", [[true, false, true], [true, true, true], [0, 0, "-inf"]]]')
        first = np.triu(np.full((3, 3), -np.inf), 1)
        second = np.array([[0, -np.inf, 0], [0, 0, 0], [0, 0, -np.inf]])
        close(working["weights", 1], softmax(scaled[0] + first))
        close(working["weights", 2], softmax(scaled[1] + second))

    def test_a_bias_as_matrices(self) -> None:
        bias = np.stack([drawn(3, 3), drawn(3, 3)])
        working, scaled = headed(f"bias = {text(bias)}")
        close(working["weights", 2], softmax(scaled[1] + bias[1]))

    @pytest.mark.parametrize("window", [(1, 0), (0, 1), (-1, 0), (1, 1), (0, 0)])
    def test_a_sliding_window(self, window: tuple[int, int]) -> None:
        left, right = window
        working = solved("scaled_dot_product", QKV, f"window = {list(window)}", 'find = ["weights"]')
        offset = np.subtract.outer(np.arange(3), np.arange(3)) * -1  # key − token
        hidden = ((left >= 0) & (offset < -left)) | ((right >= 0) & (offset > right))
        close(working["weights"], softmax(Q @ K.T / np.sqrt(2) + np.where(hidden, -np.inf, 0)))

    def test_a_window_slides_along_a_cache(self) -> None:
        working = solved("scaled_dot_product", {**QKV, "Q": Q[:1]}, "window = [1, 0]", 'find = ["masked"]')
        assert np.isneginf(np.asarray(working["masked"])).tolist() == [[True, False, False]]

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ("window = 2", "key 'window': 2 was given; write [left, right]"),
            ("window = [-2, 0]", "key 'window': [-2, 0] was given"),
            ('bias = "alibis"', "key 'bias': 'alibis' was given; did you mean 'alibi'?"),
            ("bias = { alibi = [1, 2] }", "key 'bias': holds 2 slopes, but there is 1 head; give one for every head"),
            ("bias = { alibi = [] }", "key 'bias': alibi: needs a slope for every head"),
            ("bias = { relative = [[1, 2]] }", "of an odd number of biases"),
            ("bias = { slopes = [1] }", "key 'bias': unknown key 'slopes'; allowed are alibi, relative"),
            ("bias = [[1, 2], [3, 4]]", "bias has 2 rows, but tokens is 3"),
            ('mask = ["causal", "none"]', "key 'mask': holds 2 matrices or names, but there is 1 head"),
            ('mask = ["causal", "nonne"]', "key 'mask': head 2: 'nonne' was given"),
            (
                'padding = ["<pad>"]',
                "key 'padding': hides keys by their names, and none of 3 keys have one; name them all",
            ),
            ('tokens = ["a", "b", "<pad>"]\npadding = ["pad"]', "'pad' is the name of no key; did you mean '<pad>'?"),
            ('keys = ["a", "b", "c"]\npadding = ["xyz"]', "'xyz' is the name of no key; the keys are a, b, c"),
            ('tokens = ["a", "b", "c"]\npadding = "c"', "key 'padding': must be a list of names"),
        ],
    )
    def test_what_does_not_fit_is_named(self, keys: str, message: str) -> None:
        with pytest.raises(HeadworkError) as error:
            solved("scaled_dot_product", QKV, keys)
        assert message in str(error.value)

    @pytest.mark.parametrize(
        ("keys", "hidden"),
        [
            ("", [[0, 1, 1], [0, 1, 1], [0, 1, 1]]),
            ('mask = "causal"', [[0, 1, 1], [0, 1, 1], [0, 1, 1]]),
            ("window = [1, 1]", [[0, 1, 1], [0, 1, 1], [1, 1, 1]]),
            ("mask = [[true, true, true], [false, true, true], [true, true, true]]", [[0, 1, 1], [1, 1, 1], [0, 1, 1]]),
        ],
    )
    def test_padding_is_hidden_from_everybody_by_name(self, keys: str, hidden: list[list[int]]) -> None:
        names = 'tokens = ["hi", "<pad>", "<pad>"]\npadding = ["<pad>"]\n'
        working = solved("scaled_dot_product", QKV, names + keys, 'find = ["weights"]')
        added = np.where(np.array(hidden, bool), -np.inf, 0)
        scores = Q @ K.T / np.sqrt(2) + added
        everything = added == -np.inf
        expected = np.where(everything.all(axis=1, keepdims=True), 0, softmax(np.where(everything, -1e9, scores)))
        close(working["weights"], expected)

    def test_padding_of_every_head_of_a_context_and_of_a_cache(self) -> None:
        keys = 'keys = ["<pad>", "b", "c"]\npadding = ["<pad>"]\nmask = ["none", "causal"]'
        working, _ = headed(keys)
        assert np.isneginf(np.asarray(working["masked", 1])).tolist() == [[True, False, False]] * 3
        assert np.isneginf(np.asarray(working["masked", 2])).tolist() == [
            *([True, True, True], [True, False, True], [True, False, False])
        ]
        cached = 'tokens = ["<pad>", "b", "c"]\npadding = ["<pad>"]\nmask = "causal"'
        working = solved("scaled_dot_product", {**QKV, "Q": Q[:1]}, cached, 'find = ["masked"]')
        assert np.isneginf(np.asarray(working["masked"])).tolist() == [[True, False, False]]

    def test_padding_of_items_that_are_not_equally_long(self) -> None:
        """Each item has names of its own, and none may be padding of none."""
        both = {"Q": np.stack([Q, Q]), "K": np.stack([K, K]), "V": np.stack([V, V])}
        keys = 'tokens = [["a", "b", "<pad>"], ["c", "<pad>", "<pad>"]]\npadding = ["<pad>"]'
        one, two = solved("scaled_dot_product", both, keys, 'find = ["masked"]').problems
        assert np.isneginf(np.asarray(one["masked"])).tolist() == [[False, False, True]] * 3
        assert np.isneginf(np.asarray(two["masked"])).tolist() == [[False, True, True]] * 3
        _, full = solved(
            "scaled_dot_product", both, keys.replace('["c", "<pad>", "<pad>"]', '["c", "d", "e"]')
        ).problems
        assert "mask" not in {line.role for line in full.given}
        for wrong, message in (('["<pat>"]', "did you mean '<pad>'"), ('["xyz"]', "'xyz' is the name of no key")):
            with pytest.raises(HeadworkError, match=message):
                solved("scaled_dot_product", both, keys.replace('padding = ["<pad>"]', f"padding = {wrong}"))
        with pytest.raises(HeadworkError, match="tokens names 2 items, but Q holds 3"):
            solved("scaled_dot_product", {"Q": np.stack([Q, Q, Q]), "K": K, "V": V}, keys)

    def test_positions_need_one_sequence(self) -> None:
        with pytest.raises(HeadworkError, match="'window' counts positions"):
            solved("single_head", {"X": X, "context": X_PAST, **W}, "window = [1, 0]")

    def test_a_causal_token_needs_a_key_of_its_own(self) -> None:
        with pytest.raises(HeadworkError, match="at least as many keys as tokens, not 1 and 3"):
            solved("scaled_dot_product", {"Q": Q, "K": K[:1], "V": V[:1]}, 'mask = "causal"')

    def test_the_bias_passes_its_gradient_on(self) -> None:
        part = 'kind = "gradient"\nloss = "sum"\nfind = ["Q"]'
        working = solved("scaled_dot_product", QKV, 'softmax = "steps"\nbias = { alibi = ["1/2"] }', part)
        P = softmax(Q @ K.T / np.sqrt(2) - DISTANCE / 2)
        dP = np.ones((3, 2)) @ V.T
        close(working["d_Q"], P * (dP - (P * dP).sum(axis=1, keepdims=True)) @ K / np.sqrt(2))


def turned(matrix: Array, angles: Any, pairs: str) -> Array:
    """Every pair of columns as a complex number, times e^(iθ)."""
    half = matrix.shape[1] // 2
    first, second = (
        (slice(0, None, 2), slice(1, None, 2)) if pairs == "neighbours" else (slice(0, half), slice(half, None))
    )
    product = (matrix[:, first] + 1j * matrix[:, second]) * np.exp(1j * np.radians(angles))
    found = np.empty_like(matrix)
    found[:, first], found[:, second] = product.real, product.imag
    return found


class TestPositions:
    def test_they_are_added_to_X(self) -> None:
        P = drawn(2, 3)
        working = solved("single_head", {"X": X, "positions": P, **W})
        Y = X + P
        close(working["output"], softmax(Y @ W_Q @ (Y @ W_K).T / np.sqrt(2)) @ Y @ W_V @ W_O)

    def test_X_gets_its_gradient_through_them(self) -> None:
        part = 'kind = "gradient"\nloss = "sum"'
        there = solved("single_head", {"X": X, "positions": drawn(2, 3) * 0, **W}, "", part)
        without = solved("single_head", {"X": X, **W}, "", part)
        close(there["d_X"], np.asarray(without["d_X"]))
        assert "d_positions" not in repr(there)

    @pytest.mark.parametrize("pairs", ["neighbours", "halves"])
    @pytest.mark.parametrize("first", [0, 1])
    def test_rotary_by_angles(self, pairs: str, first: int) -> None:
        Q, K, V = drawn(3, 4), drawn(3, 4), drawn(3, 2)
        keys = f'rotary = {{ degrees = [30, 45], pairs = "{pairs}", first = {first} }}'
        working = solved("scaled_dot_product", {"Q": Q, "K": K, "V": V}, keys)
        angles = np.outer(np.arange(first, first + 3), [30, 45])
        Qr, Kr = turned(Q, angles, pairs), turned(K, angles, pairs)
        close(working["Q_rotated"], Qr)
        close(working["output"], softmax(Qr @ Kr.T / 2) @ V)

    def test_multiples_of_15_degrees_are_roots(self) -> None:
        working = solved("scaled_dot_product", QKV, "rotary = { degrees = [15], first = 7 }", 'find = ["Q_rotated"]')
        for name, function in (("cos", np.cos), ("sin", np.sin)):
            assert all(isinstance(x, Fraction | Surd) for row in working[name].value or () for x in row)
            close(working[name], function(np.radians(15 * np.arange(7, 10)))[:, None])

    def test_any_other_angle_has_certain_digits(self) -> None:
        Q, K, V = drawn(3, 4), drawn(3, 4), drawn(3, 2)
        for keys, angles in (
            ("degrees = [10, 100]", np.outer(np.arange(3), [10, 100])),
            ("base = 100", np.degrees(np.outer(np.arange(3), [1, 0.1]))),
            ("base = 10000, first = 2", np.degrees(np.outer(np.arange(2, 5), [1, 0.01]))),
        ):
            working = solved("scaled_dot_product", {"Q": Q, "K": K, "V": V}, f"rotary = {{ {keys} }}")
            Qr, Kr = turned(Q, angles, "neighbours"), turned(K, angles, "neighbours")
            close(working["output"], softmax(Qr @ Kr.T / 2) @ V)

    def test_a_table_of_so_many_places_is_rounded_before_it_is_used(self) -> None:
        working = solved("scaled_dot_product", QKV, "rotary = { base = 100, places = 3 }", 'find = ["Q_rotated"]')
        close(working["cos"], np.round(np.cos(np.arange(3.0)), 3)[:, None])
        cos, sin = (np.round(function(np.arange(3.0)), 3) for function in (np.cos, np.sin))
        close(working["Q_rotated"], np.stack([Q[:, 0] * cos - Q[:, 1] * sin, Q[:, 0] * sin + Q[:, 1] * cos], axis=1))
        assert all(isinstance(x, Fraction) for row in working["Q_rotated"].value or () for x in row)

    @pytest.mark.parametrize(
        ("keys", "base", "places"), [('"sinusoidal"', 10000, 15), ("{ base = 9, places = 2 }", 9, 2)]
    )
    def test_sinusoids_are_added_to_X(self, keys: str, base: int, places: int) -> None:
        X = drawn(3, 4)
        given = {"X": X, **{role: drawn(4, 2) for role in ("W_Q", "W_K", "W_V")}}
        working = solved("single_head", given, f"positions = {keys}")
        angles = np.outer(np.arange(3), [1, base**-0.5])
        P = np.round(np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(3, 4), places)
        close(working["positions"], P)
        Y = X + P
        close(
            working["output"],
            softmax(Y @ given["W_Q"] @ (Y @ given["W_K"]).T / np.sqrt(2)) @ Y @ given["W_V"],
        )

    def test_sinusoids_go_on_after_a_cache(self) -> None:
        given = {"X": drawn(1, 2), **{role: drawn(2, 2) for role in ("W_Q", "W_K", "W_V")}}
        given |= {"K_past": drawn(4, 2), "V_past": drawn(4, 2)}
        working = solved("single_head", given, 'positions = "sinusoidal"')
        close(working["positions"], np.array([[np.sin(4), np.cos(4)]]))

    def test_scores_depend_on_the_distance_alone(self) -> None:
        """The point of it, in closed form: two sheets that count positions from 0 and from 5 have equal scores."""
        given = {"Q": drawn(2, 2), "K": drawn(2, 2), "V": drawn(2, 2)}
        one, other = (
            solved("scaled_dot_product", given, f"rotary = {{ degrees = [15], first = {first} }}") for first in (0, 5)
        )
        assert one["scores"].value == other["scores"].value
        assert one["Q_rotated"].value != other["Q_rotated"].value

    def test_tables_as_given_and_queries_at_the_end_of_a_cache(self) -> None:
        cos, sin = drawn(3, 1), drawn(3, 1)
        given = {"Q": drawn(1, 2), "K_past": drawn(2, 2), "V_past": drawn(2, 1), "K_new": drawn(1, 2)}
        working = solved("dot_product", {**given, "V_new": drawn(1, 1), "cos": cos, "sin": sin})
        a, b = given["Q"][0]
        close(working["Q_rotated"], np.array([[a * cos[2, 0] - b * sin[2, 0], a * sin[2, 0] + b * cos[2, 0]]]))
        K = np.vstack([given["K_past"], given["K_new"]])
        turned_keys = np.hstack([K[:, :1] * cos - K[:, 1:] * sin, K[:, :1] * sin + K[:, 1:] * cos])
        close(working["K_rotated"], turned_keys)

    @pytest.mark.parametrize("pairs", ["neighbours", "halves"])
    def test_the_gradient_turns_back(self, pairs: str) -> None:
        Q, K, V = drawn(2, 4), drawn(2, 4), drawn(2, 2)
        keys = f'rotary = {{ degrees = [60, 90], pairs = "{pairs}" }}'
        part = 'kind = "gradient"\nloss = "sum"\nfind = ["Q"]'
        working = solved("scaled_dot_product", {"Q": Q, "K": K, "V": V}, keys, part)
        angles = np.outer([0, 1], [60, 90])
        P = softmax(turned(Q, angles, pairs) @ turned(K, angles, pairs).T / 2)
        dP = np.ones((2, 2)) @ V.T
        dS = P * (dP - (P * dP).sum(axis=1, keepdims=True)) / 2
        close(working["d_Q"], turned(dS @ turned(K, angles, pairs), -angles, pairs))

    def test_heads_are_turned_one_by_one(self) -> None:
        given = {"X": drawn(2, 4), **{role: drawn(4, 4) for role in ("W_Q", "W_K", "W_V", "W_O")}}
        working = solved("multi_head_blocks", given, "heads = 2\nrotary = { degrees = [90] }")
        for head in (0, 1):
            alone = (given["X"] @ given["W_Q"])[:, 2 * head : 2 * head + 2]
            close(working["Q_rotated", head + 1], turned(alone, np.array([[0], [90]]), "neighbours"))

    @pytest.mark.parametrize(
        ("keys", "given", "message"),
        [
            ("rotary = { degrees = [30, 90] }", {}, "rotary turns 2 pairs of columns, but d_k is 2 (Q has 2 columns"),
            ('rotary = "halves"', {}, "need their angles once"),
            ("rotary = { degrees = [30] }", {"cos": drawn(3, 1), "sin": drawn(3, 1)}, "need their angles once"),
            ("", {"cos": drawn(3, 1)}, "no matrix was given for sin; hand one over"),
            ("", {"cos": drawn(2, 1), "sin": drawn(2, 1)}, "cos has 2 rows, but keys is 3"),
            ("rotary = { degrees = [30], base = 3 }", {}, "key 'rotary': needs its angles once"),
            ("rotary = { base = 0 }", {}, "key 'rotary': key 'base': 0 is not greater than 0"),
            ('positions = "sinusoidal"', {}, "key 'positions': scaled_dot_product takes no X"),
            ('positions = "learned"', {}, "key 'positions': 'learned' was given; choose from sinusoidal"),
            ("rotary = { degrees = 30 }", {}, "key 'rotary': key 'degrees': needs an angle for every pair"),
            ('rotary = { degrees = ["sqrt(2)"] }', {}, "pair 1: √2 is no rational number"),
            ("rotary = 30", {}, "key 'rotary': must be a table such as"),
            ('rotary = { degrees = [30], pairs = "odd" }', {}, "key 'pairs': 'odd' was given; choose from neighbours"),
        ],
    )
    def test_what_does_not_fit_is_named(self, keys: str, given: dict[str, Any], message: str) -> None:
        with pytest.raises(HeadworkError) as error:
            solved("scaled_dot_product", {**QKV, **given}, keys)
        assert message in str(error.value)

    def test_pairs_need_an_even_width(self) -> None:
        given = {"Q": drawn(1, 3), "K": drawn(1, 3), "V": drawn(1, 1)}
        with pytest.raises(HeadworkError, match="turns 1 pairs of columns, but d_k is 3"):
            solved("scaled_dot_product", given, "rotary = { degrees = [30] }")


class TestSoftcap:
    CAPPED = 2 * np.tanh(Q @ K.T / np.sqrt(2) / 2)

    def test_scale_then_softcap_then_bias_then_mask(self) -> None:
        working = solved("scaled_dot_product", QKV, 'softcap = 2\nmask = "causal"\nbias = { alibi = [1] }')
        close(working["capped"], self.CAPPED)
        weights = softmax(self.CAPPED - DISTANCE + np.triu(np.full((3, 3), -np.inf), 1))
        close(working["output"], weights @ V)

    def test_the_capped_scores_have_a_closed_form_and_the_rest_certain_digits(self) -> None:
        """tanh is made of exponentials; what the softmax makes of it has no closed form, and no page pretends it."""
        given = {"Q": np.array([[1.0]]), "K": np.array([[1.0], [0]]), "V": np.array([[1.0], [0]])}
        page = rendered(solved("scaled_dot_product", given, "softcap = 1\nplaces = 40"), ".txt")
        mpmath.mp.dps = 60
        t = mpmath.tanh(1)
        first = mpmath.exp(t) / (mpmath.exp(t) + 1)
        assert mpmath.nstr(first, 40, strip_zeros=False) in page

    def test_in_steps_and_in_blocks(self) -> None:
        at_once = solved("scaled_dot_product", QKV, "softcap = 2")
        for formula, keys in (("scaled_dot_product", 'softmax = "safe-steps"'), ("blockwise", "blocks = 2")):
            close(solved(formula, QKV, f"softcap = 2\n{keys}")["output"], np.asarray(at_once["output"]))

    def test_the_gradient(self) -> None:
        part = 'kind = "gradient"\nloss = "sum"\nfind = ["Q"]'
        working = solved("scaled_dot_product", QKV, "softcap = 2", part)
        P, dP = softmax(self.CAPPED), np.ones((3, 2)) @ V.T
        d_capped = P * (dP - (P * dP).sum(axis=1, keepdims=True))
        close(working["d_Q"], d_capped * (1 - (self.CAPPED / 2) ** 2) @ K / np.sqrt(2))

    @pytest.mark.parametrize("cap", [0, -1])
    def test_a_cap_is_positive(self, cap: int) -> None:
        with pytest.raises(HeadworkError, match="key 'softcap': must be greater than 0"):
            solved("scaled_dot_product", QKV, f"softcap = {cap}")


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


class TestItems:
    ITEMS = np.stack([drawn(2, 3), drawn(2, 3)])
    KEYS = 'title = "Two"'
    PARTS = 'label = "a"\nkind = "shape"\nfind = ["Q", "W_Q"]\n[[part]]\nlabel = "b"\nfind = ["output"]'

    def test_each_is_worked(self) -> None:
        working = solved("single_head", {"X": self.ITEMS, **W}, self.KEYS, self.PARTS)
        assert [p.problem.title for p in working.problems] == ["Two, item 1", "Two, item 2"]
        for X, worked in zip(self.ITEMS, working.problems, strict=True):
            close(worked["output"], softmax(X @ W_Q @ (X @ W_K).T / np.sqrt(2)) @ X @ W_V @ W_O)
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
        ("given", "keys", "part", "message"),
        [
            ({}, "", 'kind = "gradient"\nloss = "sum"', "X holds 2 items, and gradients add up over them"),
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
