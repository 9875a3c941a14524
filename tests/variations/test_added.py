"""What is added to the scores: biases by distance, masks for every head, windows, padding; against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from headwork.errors import HeadworkError
from headwork.numbers.digits import to_float
from headwork.sheets.added import paper_slopes
from headwork.working import Working
from tests.variations.worked import DISTANCE, QKV, X_PAST, Array, K, Q, V, W, X, close, drawn, softmax, solved, text


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

        for heads in (1, 2, 3, 4, 5, 6, 8, 12, 16, 17, 24, 32, 40):
            assert [to_float(slope) for slope in paper_slopes(heads)] == pytest.approx(in_floats(heads), rel=1e-15)

    def test_thirty_two_heads_that_share_eight_keys(self) -> None:
        """Slopes that are no square roots: their biases are given, and every digit of them is certain."""
        X, W_Q, W_K, W_V = drawn(3, 2), drawn(32, 2, 1), drawn(8, 2, 1), drawn(8, 2, 1)
        given = {"X": X, "W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": drawn(32, 2)}
        working = solved("multi_head", given, 'kv_heads = 8\nbias = "alibi"\nmask = "causal"', 'find = ["weights"]')
        hidden = np.triu(np.full((3, 3), -np.inf), 1)
        for head in (0, 3, 18, 31):
            scores = X @ W_Q[head] @ (X @ W_K[head // 4]).T
            close(working["bias", head + 1], -(2 ** (-(head + 1) / 4)) * DISTANCE)
            close(working["weights", head + 1], softmax(scores - 2 ** (-(head + 1) / 4) * DISTANCE + hidden))

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
