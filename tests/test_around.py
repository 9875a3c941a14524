"""What stands around attention: residuals, layer norms, a feed-forward layer; against torch, SymPy and by hand."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy

from headwork.around import block
from headwork.errors import HeadworkError
from headwork.formulas import Projection, given, scaled_dot_product
from headwork.graph import Step
from headwork.marking.mark import mark
from headwork.numbers.certain import Certain
from headwork.numbers.digits import decimal
from headwork.numbers.surd import Surd, root
from headwork.ops import Means, Relu, SquareRoot
from headwork.readings.exact import Hidden, exact
from headwork.readings.floats import floats, to_floats
from headwork.readings.gradients import gradients
from headwork.readings.moments import moments
from headwork.readings.symbols import symbols
from headwork.readings.values import values
from headwork.render.json import working_json
from headwork.render.save import rendered
from headwork.sheets.fields import read_problem
from headwork.sheets.load import parse_sheet
from headwork.sheets.ready import Ready
from headwork.sheets.save import sheet_toml
from headwork.solving import solve

GIVEN: dict[str, Any] = {
    "X": [[1, 0, 2, 1], [0, 1, 1, 2], [2, -1, 0, 1]],
    "W_Q": [[[1, 0], [0, 1], [1, 0], [0, 1]], [[0, 1], [1, 0], [0, 1], [1, 0]]],
    "W_K": [[[0, 1], [1, 0], [0, 1], [1, 0]], [[1, 0], [0, 1], [0, 0], [0, 1]]],
    "W_V": [[[1, 0], [0, 2], [1, 0], [0, 1]], [[1, 1], [0, 1], [1, 0], [0, -1]]],
    "W_O": [[1, 0, 1, 0], [0, 1, 0, -1], [1, 1, 0, 0], [0, 0, 1, 1]],
    "W_1": [[1, 0, -1], [0, 1, 0], [1, 1, 0], [-1, 0, 1]],
    "b_1": [0, 1, "0.5"],
    "W_2": [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, -1]],
    "b_2": [1, 0, -1, 0],
    "gamma_1": [1, 2, 1, "0.5"],
    "beta_1": [0, 0, 1, -1],
    "gamma_2": [2, 1, 1, 1],
}
LAST = {"post-norm": "normed_2", "pre-norm": "residual_2", "residual": "residual_2"}


def table(around: str, **more: Any) -> dict[str, Any]:
    last = LAST[around]
    norms = around != "residual"
    held = {role: value for role, value in GIVEN.items() if norms or not role.startswith(("gamma", "beta"))}
    target = [[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]]
    back = {"label": "b", "kind": "gradient", "loss": "half-squares", "target": target}
    parts = [{"label": "a", "find": [last]}, back]
    return {"formula": "multi_head", "heads": 2, "around": around, "given": held, "part": parts, **more}


def by_torch(around: str, eps: float) -> tuple[Any, dict[str, Any]]:
    """The block and its gradients by torch's own layer norm, attention and autograd."""
    torch = pytest.importorskip("torch")
    held: dict[str, Any] = {
        role: torch.tensor(np.array(value, dtype=float), requires_grad=True) for role, value in GIVEN.items()
    }

    def norm(x: Any, i: int) -> Any:
        return torch.nn.functional.layer_norm(x, (4,), held[f"gamma_{i}"], held.get(f"beta_{i}"), eps)

    def attention(x: Any) -> Any:
        heads = [
            torch.nn.functional.scaled_dot_product_attention(*(x @ held[f"W_{letter}"][h] for letter in "QKV"))
            for h in range(2)
        ]
        return torch.cat(heads, dim=1) @ held["W_O"]

    def feed(x: Any) -> Any:
        return torch.relu(x @ held["W_1"] + held["b_1"]) @ held["W_2"] + held["b_2"]

    x = held["X"]
    for i, layer in enumerate((attention, feed), 1):
        if around == "pre-norm":
            x = x + layer(norm(x, i))
        else:
            x = norm(x + layer(x), i) if around == "post-norm" else x + layer(x)
    target = torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]], dtype=torch.float64)
    (((x - target) ** 2).sum() / 2).backward()
    return x.detach().numpy(), {role: leaf.grad for role, leaf in held.items() if leaf.grad is not None}


@pytest.mark.parametrize("around", LAST)
def test_a_block_and_its_gradients_are_those_of_torch(around: str) -> None:
    eps = {"eps": "0.00001"} if around != "residual" else {}
    ready = Ready(read_problem(table(around, **eps), "Block"))
    output, expected = by_torch(around, 1e-5)
    first, second = (ready.truth(part) for part in ready.problem.parts)
    np.testing.assert_allclose(to_floats(first[ready.steps[LAST[around], None]]), output, rtol=1e-12, atol=1e-12)
    assert {"X", "W_1", "b_1", "W_2", "W_O"} <= expected.keys()
    for role, gradient in expected.items():
        each = list(gradient) if gradient.ndim == 3 else [gradient]
        for head, one in enumerate(each):
            step = ready.steps[f"d_{role}", head if gradient.ndim == 3 else None]
            np.testing.assert_allclose(
                np.array(to_floats(second[step])).reshape(one.shape), one, rtol=1e-9, atol=1e-9, err_msg=role
            )


def test_d_output_as_given_is_that_of_the_whole_block() -> None:
    """Not of the attention inside it, whose output has a gradient of that name as well."""
    ways: tuple[dict[str, Any], ...] = ({"loss": "sum"}, {"given": {"d_output": [[1] * 4] * 3}})
    for_the_sum, given = (
        Ready(read_problem(table("residual", part=[{"label": "b", "kind": "gradient", **way}]), "Block"))
        for way in ways
    )
    for role in ("W_O", "X"):
        sums, found = (
            ready.truth(ready.problem.parts[0])[ready.steps[f"d_{role}", None]] for ready in (for_the_sum, given)
        )
        assert sums == found, role


def test_a_row_of_equal_entries_has_a_norm_there_and_none_on_the_way_back() -> None:
    held = {"X": [[1, 1], [0, 1]], **{name: [[1, 0], [0, 1]] for name in ("W_Q", "W_K", "W_V")}}
    parts = [{"label": "a", "find": ["normed_1"]}, {"label": "b", "kind": "gradient", "loss": "sum"}]
    table = {"formula": "single_head", "around": "pre-norm", "given": held, "part": parts}
    ready = Ready(read_problem(table, "Equal"))
    first, second = ready.problem.parts
    assert [[*row] for row in ready.truth(first)[ready.steps["normed_1", None]]] == [[0, 0], [-1, 1]]
    with pytest.raises(
        HeadworkError, match=r'σ_1 holds a 0, .* a row of equal entries has no norm: give it an eps, such as "0.0'
    ):
        ready.truth(second)
    ready = Ready(read_problem({**table, "eps": "1/4"}, "Equal"))
    assert ready.truth(ready.problem.parts[1])


def test_a_norm_is_exact_as_far_as_roots_go() -> None:
    """Rows 1 2 3 and 1 1 4: standard deviations √(2/3) and √2."""
    sheet = """
title = "Norm"
formula = "single_head"
around = "pre-norm"
given = { X = [[1, 2, 3], [1, 1, 4]] }
part = [{ label = "a", find = ["deviation_1", "normed_1"] }]
"""
    working = solve(parse_sheet(sheet, "norm"))
    assert working["deviation_1"].value == ((root(Fraction(2, 3)),), (root(2),))
    half = root(6) / 2
    assert working["normed_1"].value == ((-half, Fraction(0), half), (-root(2) / 2, -root(2) / 2, root(2)))


def test_beyond_roots_digits_are_certain_and_pages_say_so() -> None:
    ready = Ready(read_problem(table("post-norm"), "Block"))
    truth = ready.truth(ready.problem.parts[0])
    assert not isinstance(truth[ready.steps["head_output", 0]][0][0], Certain)
    assert isinstance(truth[ready.steps["normed_1", None]][0][0], Certain)
    page = rendered(solve(parse_sheet(sheet_toml_of("post-norm"), "block"), part="a"), ".txt", exact=True)
    assert "5√2/2" in page  # what has a closed form
    assert "N_2 = S_2∘γ_2" in page
    assert page.count("≈") > 10  # what has none


def sheet_toml_of(around: str) -> str:
    from headwork.sheets.sheet import Sheet

    return sheet_toml(Sheet("Block", (read_problem(table(around, eps="0.00001"), "Block"),)))


def test_a_block_is_saved_and_read_again() -> None:
    text = sheet_toml_of("post-norm")
    assert 'around = "post-norm"' in text
    assert 'eps = "0.00001"' in text
    assert sheet_toml(parse_sheet(text, "again")) == text


@pytest.mark.parametrize("ending", [".txt", ".md", ".tex", ".typ", ".html", ".ipynb"])
def test_every_format_sets_a_block(ending: str) -> None:
    page = rendered(solve(parse_sheet(sheet_toml_of("pre-norm"), "block")), ending)
    spaced = re.sub(r"<[^>]*>", "", page).replace("\u00a0", " ").replace("~", " ")
    for word in ("row means of", "√" if ending == ".html" else "square roots of", "ReLU"):
        assert word in spaced, word


def test_json_has_no_closed_form_where_there_is_none() -> None:
    text = working_json(solve(parse_sheet(sheet_toml_of("post-norm"), "block"), part="a"))
    assert '"role": "normed_2"' in text
    assert "null" in text.split('"role": "normed_2"')[1]


def test_an_entry_of_each_is_worked() -> None:
    sheet = parse_sheet(sheet_toml_of("post-norm"), "block")
    for entry, words in (("mean_1[1,1]", " / 4"), ("deviation_1[1,1]", "√"), ("active[1,1]", "max(0,")):
        page = rendered(solve(sheet, entry=entry), ".txt")
        assert words in page, page


def test_answers_are_marked_and_followed_through() -> None:
    sheet = parse_sheet(
        """
title = "Norm"
formula = "single_head"
around = "post-norm"
places = 3
[given]
X = [[1, 2], [3, 5]]
W_Q = [[1, 0], [0, 1]]
W_K = [[1, 0], [0, 1]]
W_V = [[1, 0], [0, 1]]
W_1 = [[1, 0], [0, 1]]
W_2 = [[1, 1], [0, 1]]
[[part]]
label = "a"
find = ["residual_1"]
[[part]]
label = "b"
find = ["normed_1", "residual_2"]
""",
        "norm",
    )
    fourths = {equation.role: equation for part in solve(sheet).problems[0].parts for equation in part.steps}

    def rounded(role: str) -> list[list[str]]:
        return [[decimal(x, 4) for x in row if not isinstance(x, Hidden)] for row in fourths[role].value or ()]

    right = {"a": {"residual_1": rounded("residual_1")}, "b": {"normed_1": rounded("normed_1")}}
    right["b"]["residual_2"] = rounded("residual_2")
    assert mark(sheet, right).score == 2
    slip = [["5", "6.9896"], right["a"]["residual_1"][1]]  # the first entry is 3.9930
    marked = mark(sheet, {**right, "a": {"residual_1": slip}})
    assert [part.score for part in marked.parts] == [Fraction(3, 4), 1]  # (b) follows: the signs alone count there


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"around": "sandwich"}, "choose from none, residual, post-norm, pre-norm"),
        ({"around": "residual", "eps": "0.1"}, "belongs to a layer norm"),
        ({"eps": "-1"}, "is negative"),
        ({"formula": "scaled_dot_product"}, "has no X to add to"),
    ],
)
def test_what_does_not_fit_is_said(change: dict[str, Any], message: str) -> None:
    with pytest.raises(HeadworkError, match=message):
        read_problem({**table("post-norm"), **change}, "Block")


@pytest.mark.parametrize(
    ("around", "left_out", "message"),
    [
        ("none", "", "W_1 is given, but nothing stands around attention; add around"),
        ("residual", "W_1 W_2", "gamma_1 is given, but there is no layer norm"),
    ],
)
def test_what_stands_around_attention_says_which_key_it_needs(around: str, left_out: str, message: str) -> None:
    wrong = {**table("post-norm"), "around": around}
    given = {role: matrix for role, matrix in wrong["given"].items() if role not in (*left_out.split(), "b_1", "b_2")}
    wrong["given"] = given | ({"gamma_1": [1] * len(given["X"][0])} if left_out else {})
    wrong.pop("eps", None)
    with pytest.raises(HeadworkError, match=message):
        Ready(read_problem(wrong, "Block"))


def test_an_output_that_is_not_as_wide_as_x_is_said() -> None:
    wrong = table("post-norm")
    wrong["given"] = {**wrong["given"], "W_O": [[1], [1], [1], [1]]}
    with pytest.raises(HeadworkError, match="W_O has 1 columns, but d_model is 4"):
        Ready(read_problem(wrong, "Block"))


def small_block(arrangement: str) -> tuple[Step, dict[str, Step]]:
    held = {"X": given("X", (1, 2)), "W_1": given("W_1", (2, 1)), "W_2": given("W_2", (1, 2))}
    feed = Projection(held["W_1"]), Projection(held["W_2"])
    return block(held["X"], lambda x: scaled_dot_product(x, x, x), arrangement, feed=feed), held


@pytest.mark.parametrize("arrangement", ["residual", "pre-norm"])
def test_gradients_are_the_derivatives_of_the_symbols(arrangement: str) -> None:
    """One token of two numbers; the ReLU's derivative is the one on the side where it lets through."""
    last, held = small_block(arrangement)
    seed = given("d_last", (1, 2))
    table = gradients(last, of=list(held.values()), seed=seed)
    ends = tuple(table[step] for step in held.values())
    meaning = symbols((last, *ends))
    loss = sum(a * b for a, b in zip(meaning[last][0], meaning[seed][0], strict=True))
    numbers = {symbol: sympy.Rational(number, 7) for number, symbol in enumerate(sorted(loss.free_symbols, key=str), 2)}
    for step in held.values():
        for row, found in zip(meaning[step], meaning[table[step]], strict=True):
            for symbol, expression in zip(row, found, strict=True):
                difference = (loss.diff(symbol) - expression).subs(numbers)
                assert abs(sympy.N(difference, 40)) < 1e-30


def test_the_new_operations_read_alike() -> None:
    X = given("X", (2, 3))
    numbers = ((Fraction(1), Fraction(-2), Fraction(7)), (Fraction(0), Fraction(3), Fraction(5)))
    means = Step(Means(), (X,), "mean_1")
    positive = Step(Relu(), (X,), "active")
    roots = Step(SquareRoot(), (positive,), "deviation_1")
    ends = (means, roots)
    told = exact(ends, {X: numbers})
    assert told[means] == ((Fraction(2),), (Fraction(8, 3),))
    assert isinstance(told[roots][0][2], Surd)
    for step in ends:
        np.testing.assert_allclose(to_floats(told[step]), floats(ends, {X: to_floats(numbers)})[step])
        np.testing.assert_allclose(to_floats(told[step]), values(ends, {X: to_floats(numbers)})[step])
    assert (moments(means, 3, 12)[means].mean, moments(means, 3, 12)[means].variance) == (3, 4)
    assert "a maximum with 0" in str(moments(positive, 0, 1)[positive].why_not)
    assert "a square root" in str(moments(Step(SquareRoot(), (X,), "r"), 0, 1))
    with pytest.raises(HeadworkError, match="negative"):
        exact(Step(SquareRoot(), (X,), "deviation_1"), {X: numbers})


def test_a_picture_of_a_block_has_every_layer() -> None:
    text = sheet_toml_of("post-norm").split("[[part]]")[0] + '[[part]]\nlabel = "a"\nkind = "diagram"\n'
    page = rendered(solve(parse_sheet(text, "block")), ".html")
    for label in ("ReLU", "layer norm"):
        assert page.count(label) > 1
