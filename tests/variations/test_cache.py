"""A cache of keys and values, and tokens that read it; against NumPy written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwork.errors import HeadworkError
from headwork.sheets.ready import Ready
from tests.variations.worked import CAUSAL, W_K, W_O, W_Q, W_V, X_PAST, W, X, close, drawn, softmax, solved


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

    def test_earlier_tokens_go_through_the_same_norm_once(self) -> None:
        """Pre-norm: K_past is of norm(X_past), which keys and values share; every step has a name of its own."""
        sequence = np.array([[1.0, 3, 0], [2, -1, 0], [0, 1, 5]])
        W = {"W_Q": [drawn(3, 2)] * 2, "W_K": [drawn(3, 2)], "W_V": [drawn(3, 2)], "W_O": drawn(4, 3)}
        given = {role: np.array(value) for role, value in W.items()}
        keys = 'around = "pre-norm"\nmask = "causal"'
        part = 'find = ["residual_1"]'
        cached = solved("multi_head", {"X": sequence[2:], "X_past": sequence[:2], **given}, keys, part)
        whole = solved("multi_head", {"X": sequence, **given}, keys, part)
        close(cached["residual_1"], np.asarray(whole["residual_1"])[2:])
        assert repr(cached).count("N_past,1 = C_past,1/σ_past,1") == 1
        steps = Ready(cached.problems[0].problem).computed()
        assert len({(step.role, step.head) for step in steps}) == len(steps)

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
            (
                {"X_past": drawn(3, 3), "positions": drawn(2, 3)},
                "",
                "keys is 2 (P has 2 rows), but 3 earlier and 2 new tokens have 5",
            ),
        ],
    )
    def test_what_does_not_fit_is_named(self, given: dict[str, Any], keys: str, message: str) -> None:
        with pytest.raises(HeadworkError) as error:
            solved("single_head", {"X": X, **W, **given}, keys)
        assert message in str(error.value)

    def test_without_projections_it_says_what_new_keys_are_called(self) -> None:
        given = {"Q": [[1, 1]], "K": [[2, 0]], "V": [[3]], "K_past": [[1, 0], [0, 2]], "V_past": [[2], [1]]}
        with pytest.raises(HeadworkError, match="give it 3, or give those of the new tokens as K_new"):
            solved("scaled_dot_product", given, "")

    def test_a_formula_without_X_takes_no_X_past(self) -> None:
        with pytest.raises(HeadworkError, match="takes no X; give K_past and V_past"):
            solved("dot_product", {"Q": drawn(1, 2), "K_new": drawn(1, 2), "V_new": drawn(1, 2), "X_past": X_PAST})
