"""The only traversal and the only editor."""

import pytest

from headwork.errors import HeadworkError, ShapeError
from headwork.formulas import (
    Projection,
    dot_product,
    given,
    multi_head,
    multi_head_blocks,
    scaled_dot_product,
    single_head,
)
from headwork.graph import Step, in_order, needed, read, rewrite
from headwork.ops import Add, Divide, Given, Join, MatMul, Op, Softmax, Transpose
from headwork.readings.shapes import shapes


def small() -> Step:
    return scaled_dot_product(given("Q", (2, 3)), given("K", (4, 3)), given("V", (4, 5)))


def test_inputs_come_before_what_is_made_of_them_and_each_once() -> None:
    steps = list(in_order(small()))
    assert len(steps) == len(set(steps))
    for i, step in enumerate(steps):
        assert all(source in steps[:i] for source in step.inputs)


def test_a_shared_step_is_read_once() -> None:
    X = given("X", (2, 2))
    both = Step(Add(), (X, X), "twice")
    visits: list[str] = []

    def visit(step: Step, *inputs: None) -> None:
        visits.append(step.role)

    read(both, {Given: visit, Add: visit})
    assert visits == ["X", "twice"]


def test_what_only_a_handed_step_rests_on_is_not_read() -> None:
    last = small()
    weights = next(s for s in in_order(last) if s.role == "weights")
    assert {s.role for s in needed(last, {weights: None})} == {"weights", "V", "head_output"}
    meaning = read(last, {MatMul: lambda step, left, right: left + right, Given: lambda step: 1}, {weights: 10})
    assert meaning[last] == 11


def test_rewrite_replaces_and_keeps_what_it_does_not_touch() -> None:
    last = small()
    plain = rewrite(last, lambda step: step.inputs[0] if isinstance(step.op, Divide) else None)
    assert [s.role for s in in_order(plain)] == ["Q", "K", "K_transposed", "scores", "weights", "V", "head_output"]
    assert rewrite(last, lambda step: None) is last


def test_a_step_counts_its_inputs() -> None:
    X = given("X", (2, 2))
    with pytest.raises(HeadworkError, match=r"step scores: MatMul takes 2 input\(s\), not 1"):
        Step(MatMul(), (X,), "scores")
    with pytest.raises(HeadworkError, match="Join takes 1"):
        Step(Join(), (), "joined")


def test_a_mismatch_names_the_step_both_shapes_and_the_remedy() -> None:
    with pytest.raises(ShapeError) as error:
        dot_product(given("Q", (3, 4)), given("K", (3, 6)), given("V", (3, 2)))
    assert str(error.value) == ("step scores = Q·Kᵀ cannot be multiplied: Q is 3×4 but Kᵀ is 6×3. Q needs 6 columns.")


def test_heads_that_do_not_divide_are_refused() -> None:
    X, wide, W_O = given("X", (2, 5)), Projection(given("W_Q", (5, 5))), Projection(given("W_O", (5, 5)))
    with pytest.raises(ShapeError, match="5 columns of Q cannot be split into 2 equal heads"):
        multi_head_blocks(X, wide, wide, wide, W_O, heads=2)


def test_key_heads_must_divide_query_heads() -> None:
    X, W_O = given("X", (2, 2)), Projection(given("W_O", (3, 2)))
    W = [Projection(given("W_Q", (2, 1), h)) for h in range(3)]
    with pytest.raises(ShapeError, match="3 query heads cannot share 2 key and 2 value heads"):
        multi_head(X, W, W[:2], W[:2], W_O)


def test_a_mask_of_another_size_is_refused() -> None:
    Q, mask = given("Q", (2, 2)), given("mask", (2, 3))
    with pytest.raises(ShapeError, match=r"scaled is 2×2 but mask is 2×3\. Make mask 2×2"):
        scaled_dot_product(Q, Q, Q, mask=mask)


def test_batches_must_agree() -> None:
    with pytest.raises(ShapeError, match="batches 2 and 3 differ"):
        dot_product(given("Q", (2, 4, 4)), given("K", (3, 4, 4)), given("V", (3, 4, 4)))


def test_cross_attention_reads_keys_and_values_from_the_context() -> None:
    last = single_head(
        given("X", (2, 3)),
        Projection(given("W_Q", (3, 4))),
        Projection(given("W_K", (5, 4))),
        Projection(given("W_V", (5, 6))),
        Projection(given("W_O", (6, 3))),
        context=given("context", (7, 5)),
    )
    shape = {s.role: size for s, size in shapes(last).items()}
    assert (shape["scores"], shape["head_output"], shape["output"]) == ((2, 7), (2, 6), (2, 3))


def test_grouped_heads_share_keys_in_order() -> None:
    """Four query heads on two key heads: heads 0, 1 read key head 0 and heads 2, 3 read key head 1."""
    X, W_O = given("X", (2, 2)), Projection(given("W_O", (4, 2)))
    W_Q = [Projection(given("W_Q", (2, 1), h)) for h in range(4)]
    W_K = [Projection(given("W_K", (2, 1), h)) for h in range(2)]
    W_V = [Projection(given("W_V", (2, 1), h)) for h in range(2)]
    last = multi_head(X, W_Q, W_K, W_V, W_O)
    scores = [s for s in in_order(last) if s.role == "scores"]
    assert [s.inputs[1].head for s in scores] == [0, 0, 1, 1]


def test_operations_are_plain_data() -> None:
    ops: list[Op] = [Softmax(), Transpose(), Given((2, 2))]
    assert ops == [Softmax(-1), Transpose(), Given((2, 2))]
    for op in ops:
        with pytest.raises(AttributeError):
            op.axis = 0  # the mistake
