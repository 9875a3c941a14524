"""Proofs hold where they should and fail where they should."""

import pytest

from headwork.claims import entry_claim, row_claim
from headwork.errors import HeadworkError
from headwork.formulas import given, scaled_dot_product
from headwork.graph import rewrite
from headwork.ops import Divide
from headwork.proofs import prove


@pytest.mark.parametrize(("heads", "tokens", "d_model"), [(2, 2, 4), (1, 3, 2), (3, 1, 6), (4, 2, 8)])
def test_the_block_split_is_the_separate_heads(heads: int, tokens: int, d_model: int) -> None:
    proof = prove("multi_head", "multi_head_blocks", heads=heads, tokens=tokens, d_model=d_model)
    assert proof.holds
    assert str(proof.lemmas[-1].name) == "output"
    assert len(proof.lemmas[-1].entries) == tokens * d_model


def test_two_heads_by_default() -> None:
    proof = prove("multi_head", "multi_head_blocks")
    assert {str(lemma.name) for lemma in proof.lemmas} >= {"Q_1", "Q_2", "K_1", "V_2", "output"}


def test_an_entry_of_the_scores_is_a_dot_product() -> None:
    proof = prove(*entry_claim(2, 3, 2))
    assert proof.holds
    assert len(proof.lemmas[-1].entries) == 6
    assert "scores[1,3] = q_1,1·k_3,1 + q_1,2·k_3,2" in repr(proof)


def test_a_row_of_the_output_is_a_weighted_sum() -> None:
    proof = prove(*row_claim(2, 3, 2))
    assert proof.holds
    assert "head[2,1] = weights_2,1·v_1,1 + weights_2,2·v_2,1 + weights_2,3·v_3,1" in repr(proof)


def test_the_first_difference_is_named() -> None:
    proof = prove("dot_product", "scaled_dot_product")
    assert not proof
    difference = proof.first_difference
    assert difference is not None
    assert str(difference.name) == "head[1,1]"
    left, right = difference.example
    assert float(left) != float(right)
    assert "They differ, first in head[1,1]" in repr(proof)


def test_a_graph_edited_by_hand_is_told_apart() -> None:
    Q, K, V = given("Q", (2, 2)), given("K", (2, 2)), given("V", (2, 2))
    right = scaled_dot_product(Q, K, V)
    wrong = rewrite(right, lambda step: step.inputs[0] if isinstance(step.op, Divide) else None)
    assert prove(right, right).holds
    assert not prove(right, wrong).holds


def test_one_head_is_a_single_head() -> None:
    assert prove("single_head", "multi_head", heads=1).holds
    assert not prove("single_head", "multi_head", heads=2).holds


@pytest.mark.parametrize(
    ("left", "right", "sizes", "message"),
    [
        ("multi_head", "nonsense", {}, "there is no formula 'nonsense'"),
        ("multi_head", "dot_product", {}, "start from different inputs"),
        ("multi_head", "multi_head_blocks", {"d_model": 5}, "do not divide d_model = 5"),
    ],
)
def test_what_cannot_be_compared_is_refused(left: str, right: str, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(HeadworkError, match=message):
        prove(left, right, **sizes)  # type: ignore[arg-type]  # one of several arguments of several types
