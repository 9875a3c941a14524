"""The softcap: where it stands among scale, bias and mask, and how it is worked; against NumPy written out."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from headwork.errors import HeadworkError
from headwork.render.save import rendered
from tests.variations.worked import DISTANCE, QKV, K, Q, V, close, softmax, solved


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
