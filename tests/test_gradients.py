"""Gradients: the graph of them against torch's autograd, SymPy's derivatives and our own fused backward."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import headwork
from headwork.errors import HeadworkError
from headwork.formulas import Projection, scaled_dot_product, single_head, unfolded
from headwork.formulas import given as given_step
from headwork.graph import Step, in_order
from headwork.ops import Add, Constant, Given, Multiply, Rows, Stack, Subtract, Sums
from headwork.readings.exact import EXACT
from headwork.readings.floats import floats, to_floats
from headwork.readings.gradients import gradients
from headwork.readings.shapes import shapes
from headwork.readings.symbols import symbols
from headwork.readings.values import values
from headwork.sheets.fields import read_problem
from headwork.sheets.load import parse_sheet
from headwork.sheets.ready import Ready
from headwork.sheets.save import sheet_toml
from tests.strategies import Drawn, problems


def near(matrix: Any) -> Any:
    return np.array(to_floats(matrix))


def agrees_with_autograd(drawn: Drawn, unfold: bool = False, loss: str = "sum") -> None:
    """Every gradient of a drawn layer in closed form, to 1e-9 of the largest entry. `loss` may be "given": d_output."""
    torch = pytest.importorskip("torch")
    from tests import by_torch

    part: dict[str, Any] = {"label": "a", "kind": "gradient", "loss": loss}
    leaves = by_torch.leaves(drawn.table)
    output = by_torch.output(drawn.table, leaves)
    other = [[(3 * i - 2 * j) % 5 - 2 for j in range(output.shape[1])] for i in range(output.shape[0])]
    if loss == "half-squares":
        part["target"] = other
        ((output - torch.tensor(other)) ** 2 / 2).sum().backward()
    elif loss == "given":
        part = {"label": "a", "kind": "gradient", "given": {"d_output": other}}
        (output * torch.tensor(other)).sum().backward()
    else:
        output.sum().backward()
    table = {**drawn.table, "part": [part]}
    ready = Ready(read_problem({**table, "softmax": "steps"} if unfold else table, "Drawn"))
    truth = ready.truth(ready.problem.parts[0])
    for (role, head), leaf in leaves.items():
        expected = (torch.zeros_like(leaf) if leaf.grad is None else leaf.grad).numpy()
        found = near(truth[ready.steps[f"d_{role}", head]])
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * max(1.0, abs(expected).max()))


@given(problems(), st.sampled_from(["sum", "half-squares", "given"]))
@settings(max_examples=10)
def test_closed_forms_agree_with_autograd(drawn: Drawn, loss: str) -> None:
    """1–4 heads, grouped ones, masks, biases, cross-attention. bench/gradient_graphs.py draws 300."""
    agrees_with_autograd(drawn, loss=loss)


@given(problems())
@settings(max_examples=5)
def test_so_do_those_of_a_softmax_in_steps(drawn: Drawn) -> None:
    """A row in which nothing may be read too: its weights, 0/0, are 0 whatever is nudged, and pass nothing back."""
    agrees_with_autograd(drawn, unfold=True)


@pytest.mark.parametrize("softmax", ["steps", "safe-steps"])
def test_a_row_in_which_nothing_may_be_read_passes_nothing_back(softmax: str) -> None:
    """In steps as whole, in every reading of numbers; the same of blocks of keys."""
    mask = [[True, False, True], [False, False, False]]
    Q, K, V = [[1, 0], [2, 1]], [[0, 1], [1, 1], [2, 0]], [[1], [2], [4]]
    part = {"label": "a", "kind": "gradient", "loss": "sum"}
    table = {"given": {"Q": Q, "K": K, "V": V}, "mask": mask, "part": [part]}
    whole, steps, blocks = (
        Ready(read_problem({**table, **more}, "Blind"))
        for more in (
            {"formula": "scaled_dot_product"},
            {"formula": "scaled_dot_product", "softmax": softmax},
            {"formula": "blockwise", "blocks": 2},
        )
    )
    truth = whole.truth(whole.problem.parts[0])
    for ready in (steps, blocks):
        found = ready.truth(ready.problem.parts[0])
        arrays = values(ready.ends, {step: near(matrix) for step, matrix in ready.handed.items()})
        for role in ("d_Q", "d_K", "d_V"):
            step = ready.steps[role, None]
            assert found[step] == truth[whole.steps[role, None]]
            np.testing.assert_allclose(arrays[step], near(found[step]), rtol=1e-12, atol=1e-12)
            numbers = floats(step, {s: to_floats(m) for s, m in ready.handed.items()})[step]
            np.testing.assert_allclose(numbers, near(found[step]), rtol=1e-12, atol=1e-12)


def test_they_are_sympys_derivatives() -> None:
    """L = Σ g∘output for named entries: ∂L/∂x of every input, entry by entry, simplified to 0."""
    Q, K, V = given_step("Q", (2, 1)), given_step("K", (2, 1)), given_step("V", (2, 1))
    last = scaled_dot_product(Q, K, V, scale=Fraction(2))
    seed = given_step("d_head_output", (2, 1))
    table = gradients(last, of=(Q, K, V), seed=seed)
    named = symbols((last, *(table[step] for step in (Q, K, V))))
    loss = sum(g * y for rows in zip(named[seed], named[last], strict=True) for g, y in zip(*rows, strict=True))
    for step in (Q, K, V):
        for entries, derivatives in zip(named[step], named[table[step]], strict=True):
            for entry, derivative in zip(entries, derivatives, strict=True):
                assert sympy.simplify(sympy.diff(loss, entry) - derivative) == 0


def test_they_are_what_the_fused_kernel_passes_back() -> None:
    from headwork.engine import attention_backward

    rng = np.random.default_rng(2)
    shape = {"Q": (5, 4), "K": (7, 4), "V": (7, 3), "d_head_output": (5, 3)}
    arrays = {role: rng.normal(size=size) for role, size in shape.items()}
    steps = {role: given_step(role, size) for role, size in shape.items()}
    last = scaled_dot_product(steps["Q"], steps["K"], steps["V"])
    table = gradients(last, of=[steps[r] for r in "QKV"], seed=steps["d_head_output"])
    found = values(tuple(table[steps[r]] for r in "QKV"), {steps[r]: a for r, a in arrays.items()})
    q, k, v, d = (arrays[r][None] for r in ("Q", "K", "V", "d_head_output"))
    out, lse = headwork.attention(q, k, v, return_lse=True)
    passed_back = attention_backward(q, k, v, out, lse, d)
    for role, expected in zip("QKV", passed_back[:3], strict=True):
        np.testing.assert_allclose(found[table[steps[role]]], expected[0], rtol=1e-6, atol=1e-9)


@given(st.data())
@settings(max_examples=25)
def test_every_operation_passes_its_own_back(data: st.DataObject) -> None:
    """A chain of operations that attention does not have, against central differences."""
    A, B = given_step("A", (3, 2)), given_step("B", (3, 2))
    column = Step(Sums(), (B,), "column")
    row = Step(Sums(-2), (A,), "row")
    product = Step(Multiply(), (A, column), "product")
    square = Step(Multiply(), (product, product), "square")
    less = Step(Subtract(), (square, row), "less")
    stacked = Step(Stack(), (less, B), "stacked")
    start = data.draw(st.integers(0, 4))
    stop = data.draw(st.integers(start + 1, 6))
    cut, other = Step(Rows(start, stop), (stacked,), "cut"), Step(Rows(0, 2), (stacked,), "other")
    sums = [Step(Sums(-2), (part,), f"sum_{i}") for i, part in enumerate((cut, other))]
    last = Step(Add(), (*sums, row), "last")
    seed = given_step("d_last", (1, 2))
    table = gradients(last, of=(A, B), seed=seed)
    numbers = st.floats(-2, 2, width=16)
    sizes = ((A, 6), (B, 6), (seed, 2))
    drawn = {s: data.draw(st.lists(numbers, min_size=n, max_size=n)) for s, n in sizes}
    handed = {s: np.array(flat).reshape(-1, 2) for s, flat in drawn.items()}
    found = values((table[A], table[B]), handed)

    def loss(step: Step, matrix: Any) -> Any:
        return float((values(last, {**handed, step: matrix})[last] * handed[seed]).sum())

    for step in (A, B):
        for place in np.ndindex(3, 2):
            nudge = np.zeros((3, 2))
            nudge[place] = 1e-4
            slope = (loss(step, handed[step] + nudge) - loss(step, handed[step] - nudge)) / 2e-4
            assert found[table[step]][place] == pytest.approx(slope, rel=1e-4, abs=1e-3)


def test_a_graph_has_one_name_for_every_gradient() -> None:
    X = given_step("X", (2, 2))
    W = [Projection(given_step(f"W_{letter}", (2, 2)), given_step(f"b_{letter}", (1, 2))) for letter in "QKVO"]
    last = single_head(X, *W)
    table = gradients(
        last, of=[s for s in in_order(last) if isinstance(s.op, Given)], seed=given_step("d_output", (2, 2))
    )
    steps = list(in_order(tuple(table.values())))
    assert len({(s.role, s.head) for s in steps}) == len(steps)
    assert [step.role for step in table[X].inputs] == [f"d_X_from_{letter}_before_bias" for letter in "QKV"]
    assert all(shapes(tuple(table.values()))[d] == shapes(last)[s] for s, d in table.items())


def test_what_has_no_gradient_says_so() -> None:
    Q, K, V = (given_step(role, (2, 2)) for role in "QKV")
    last = unfolded(scaled_dot_product(Q, K, V), maximum=True)
    seed = given_step("d_head_output", (2, 2))
    with pytest.raises(HeadworkError, match="a maximum, is not worked"):
        gradients(last, of=(Q,), seed=seed)
    with pytest.raises(HeadworkError, match="rests on none"):
        gradients(last, of=(given_step("X", (1, 1)),), seed=seed)


SHEET = """
title = "Back"
formula = "multi_head"
heads = 2
places = 3
[given]
X = [[1, 0], [0, 1]]
W_Q = [[[1], [1]], [[0], [1]]]
W_K = [[[0], [1]], [[1], [1]]]
W_V = [[[1], [2]], [[0], [1]]]
W_O = [[1, 0], [1, 1]]
b_O = [1, 0]
[[part]]
label = "a"
text = "Find the output."
find = ["output"]
[[part]]
label = "b"
text = "Find the gradients, and take a step."
kind = "gradient"
loss = "half-squares"
target = [[1, 0], [0, 1]]
rate = "0.1"
find = ["W_Q", "W_O", "b_O", "X"]
"""


def test_a_sheet_asks_for_gradients() -> None:
    working = headwork.solve(parse_sheet(SHEET, "back.toml"))
    output, target = np.array(working["output"]), np.array([[1, 0], [0, 1]])
    np.testing.assert_allclose(np.array(working["d_output"]), output - target)
    np.testing.assert_allclose(np.array(working["d_b_O"]), (output - target).sum(0, keepdims=True))
    np.testing.assert_allclose(np.array(working["d_W_O"]), np.array(working["joined"]).T @ (output - target))
    np.testing.assert_allclose(np.array(working["next_W_O"]), [[1, 0], [1, 1]] - np.array(working["d_W_O"]) / 10)
    page = repr(working)
    for line in (
        "doutput = output − target",
        "dW_Q,2 = Xᵀ·dQ_2",
        "D_1 = row sums of weighted_1",
        "db_O = column sums of doutput",
    ):
        assert line in page
    assert "ΔW_O = 0.1·dW_O" in page
    assert "dX = dX_Q,1 + dX_K,1 + dX_V,1 + dX_Q,2 + dX_K,2 + dX_V,2" in page
    answers = [line.name for line in working.problems[0].parts[1].answers]  # type: ignore[union-attr]  # equations
    assert [str(name) for name in answers][:3] == ["db_O", "dW_O", "dW_Q,1"]


@pytest.mark.parametrize(("style", "name"), [("∂L/∂Q", "∂L/∂W_Q,1"), ("Q̄", "W̄_Q,1"), ("dQ", "dW_Q,1")])
def test_the_sheet_chooses_how_gradients_are_written(style: str, name: str, tmp_path: Any) -> None:
    working = headwork.solve(
        parse_sheet(SHEET.replace("[given]", f'[notation]\ngradient = "{style}"\n[given]'), "back.toml")
    )
    assert f"{name} = Xᵀ·" in repr(working)
    for ending in (".tex", ".html", ".md", ".json"):
        working.save(tmp_path / f"page{ending}")
    latex = (tmp_path / "page.tex").read_text("utf-8")
    assert {"∂L/∂Q": r"\frac", "Q̄": r"\overline{W}", "dQ": "dW"}[style] in latex.replace(" ", "")


def test_an_entry_of_a_gradient_knows_the_target() -> None:
    """Though another part stands last."""
    later = parse_sheet(f'{SHEET}[[part]]\nlabel = "c"\nfind = ["joined"]\n', "back.toml")
    worked = headwork.solve(later, entry="d_output[1,2]")
    assert "doutput[1,2] = 0.5 − 0" in repr(worked)


def test_in_text_what_leads_to_the_heads_stands_before_them() -> None:
    drawn = repr(
        headwork.solve(parse_sheet(f'{SHEET}[[part]]\nlabel = "c"\nkind = "diagram"\n', "back.toml"), part="c")
    )
    there, _, back = drawn.partition("→ output   (2×2)")
    assert "╰─ [head_1 | head_2] → joined" in there
    places = [back.index(text) for text in ("→ djoined", "head 1", "→ dhead_1", "head 2", "╰─", "→ dX ")]
    assert places == sorted(places)


def test_it_is_saved_as_it_is_read() -> None:
    sheet = parse_sheet(SHEET, "back.toml")
    assert parse_sheet(sheet_toml(sheet), "again.toml").problems == sheet.problems


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('loss = "half-squares"\ntarget = [[1, 0], [0, 1]]\n', "", "nothing says what L is"),
        ("target = [[1, 0], [0, 1]]\n", "", "belong together"),
        ('loss = "half-squares"', 'loss = "cross-entropy"', "choose from sum, half-squares"),
        ('kind = "gradient"', 'kind = "value"', "key 'loss' belongs to a part of kind 'gradient'"),
        ("target = [[1, 0], [0, 1]]", "target = [[1, 0, 1], [0, 1, 1]]", "target has 3 columns"),
        ('find = ["W_Q", "W_O", "b_O", "X"]', 'find = ["b_Q"]', "'b_Q' is asked for"),
        ('find = ["W_Q", "W_O", "b_O", "X"]', 'find = ["X"]', "a rate is what projections and biases learn by"),
        (
            'loss = "half-squares"\ntarget = [[1, 0], [0, 1]]\n',
            "given = { d_output = [[1, 0]] }\n",
            "d_output has 1 rows, but tokens is 2",
        ),
    ],
)
def test_a_sheet_that_cannot_be_worked_is_told_why(old: str, new: str, message: str) -> None:
    with pytest.raises(HeadworkError, match=message):
        headwork.solve(parse_sheet(SHEET.replace(old, new), "back.toml"))


def test_d_output_may_be_given() -> None:
    text = SHEET.replace(
        'loss = "half-squares"\ntarget = [[1, 0], [0, 1]]\n', "given = { d_output = [[1, 2], [3, 4]] }\n"
    )
    working = headwork.solve(parse_sheet(text, "back.toml"))
    assert near(working["d_b_O"].value).tolist() == [[4, 6]]
    alone = headwork.solve(parse_sheet(text, "back.toml"), part="b")
    assert alone["d_W_Q", 1].value == working["d_W_Q", 1].value


def test_every_rule_reads_what_a_sum_leaves() -> None:
    """With loss = "sum" every entry of d_output is 1, a constant and not given."""
    text = SHEET.replace('loss = "half-squares"\ntarget = [[1, 0], [0, 1]]\n', 'loss = "sum"\n')
    working = headwork.solve(parse_sheet(text, "back.toml"))
    assert near(working["d_output"].value).tolist() == [[1, 1], [1, 1]]
    assert isinstance(working["d_output"].step.op, Constant)
    assert "for the sum of all entries" in repr(working)
    assert Constant in EXACT
