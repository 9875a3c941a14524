"""Answers as people write them: numbers, matrices, names."""

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from headwork.marking.mark import mark
from headwork.marking.marks import AnswerMark
from headwork.marking.table import Malformed, numbers
from headwork.marking.tolerance import Tolerance, read_number
from headwork.numbers.digits import to_float
from headwork.numbers.parse import NumberError
from headwork.sheets.load import parse_sheet

SHEET = """
formula = "scaled_dot_product"
scale = "none"
places = 2
{marking}
[given]
Q = [[1, 0], [0, 1]]
K = [[1, 2], [0, 1]]
V = [[1, 0], [0, 1]]
[[part]]
label = "a"
find = ["weights"]
[[part]]
label = "b"
find = ["scores[1,2]"]
"""
WEIGHTS = [[0.7311, 0.2689], [0.7311, 0.2689]]


def judged(weights: Any, marking: str = "") -> AnswerMark:
    sheet = parse_sheet(SHEET.replace("{marking}", marking), "test")
    return mark(sheet, {"a": {"weights": weights}}).parts[0].answers[0]


@pytest.mark.parametrize(
    "written",
    [
        "73% 27%; 73% 27%",
        "73.1 % 26.9 %; 73.1 % 26.9 %",
        [["73%", "27 %"], ["73%", "27%"]],
        "0,73 0,27; 0,73 0,27",
        "0,73, 0,27\n0,73, 0,27",
        "0.73, 0.27,\n0.73, 0.27,",
        "[[0,73 0,27], [0,73 0,27]]",
        [["0,73", "0,27"], ["0,73", "0,27"]],
        "73% 27%; 0,73 0,27",
        "0,73; 0,27\n0,73; 0,27;",
        "np.array([[0.73, 0.27], [0.73, 0.27]])",
        "array([[0.73105858, 0.26894142],\n       [0.73105858, 0.26894142]])",
        "torch.tensor([[0.7311, 0.2689],\n        [0.7311, 0.2689]], dtype=torch.float64)",
        "tensor([[0.7311, 0.2689], [0.7311, 0.2689]], device='cuda:0', grad_fn=<SoftmaxBackward0>)",
        "[[0.73105858 0.26894142]\n [0.73105858 0.26894142]]",
        "[[7.31058579e-01 2.68941421e-01]\n [7.31058579e-01 2.68941421e-01]]",
        "[0.73 0.27; 0.73 0.27]",
        "[0.73, 0.27; 0.73, 0.27]",
        "[0.73, 0.27; 0.73, 0.27];",
        "weights = [0.73 0.27\n           0.73 0.27];",
        "[0.73, ...\n 0.27; 0.73, 0.27]",
        "weights =\n\n    0.7311    0.2689\n    0.7311    0.2689\n",
        "W_1 = np.array([[0.73, 0.27], [0.73, 0.27]])",
        "W_{1} = 0.73 0.27; 0.73 0.27",
        "Array([[0.7310586, 0.26894143],\n       [0.7310586, 0.26894143]], dtype=float32)",
        "Matrix([[0.73, 0.27], [0.73, 0.27]])",
        "tf.Tensor(\n[[0.7310586  0.26894143]\n [0.7310586  0.26894143]], shape=(2, 2), dtype=float32)",
        "<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\narray([[0.73, 0.27],\n       [0.73, 0.27]], dtype=float32)>",
        "[[np.float64(0.7311), np.float64(0.2689)], [np.float64(0.7311), np.float64(0.2689)]]",
        r"\begin{pmatrix} 0.73 & 0.27 \\ 0.73 & 0.27 \end{pmatrix}",
        r"$$W = \left[\begin{array}{cc} 0{,}73 & 0{,}27 \\[2pt] 73\,\% & \frac{27}{100} \\ \end{array}\right]$$",
        [["0.7310585786300049", "0.2689414213699951"], ["0.7310585786300049", "0.2689414213699951"]],
        "[0.73, 0.27]\n[0.73, 0.27]",
        "[0.73, 0.27], [0.73, 0.27]",
        "tensor([[[0.7311, 0.2689],\n         [0.7311, 0.2689]]])",
        [[["0.73", "0.27"], ["0.73", "0.27"]]],
        "((0.73, 0.27), (0.73, 0.27))",
        "{{0.73, 0.27}, {0.73, 0.27}}",
        "(0,73 0,27; 0,73 0,27)",
        "⎡0.73 0.27⎤\n⎣0.73 0.27⎦",
        "| 0.73 | 0.27 |\n| 0.73 | 0.27 |",
        "weights ≈ 0.73 0.27; 0.73 0.27",
        [["≈ 0.73", "= 27/100"], ["7.3×10⁻¹", "2.7 * 10^-1"]],
        "7,3·10^(-1) 2.7e−1; 7.3x10**-1 0.27",
        r"\begin{matrix} 7.3 \cdot 10^{-1} & 0.27 \\ 0.73 & 2.7\times10^{-1} \end{matrix}",
        "０．７３，０．２７；０．７３，０．２７",
        [["٠٫٧٣", "۰٫۲۷"], ["0.73", "0.27"]],
    ],
)
def test_a_right_matrix_is_right_however_it_is_written(written: Any) -> None:
    assert judged(written).verdict == "right"


@pytest.mark.parametrize(
    ("written", "verdict"),
    [
        ("tensor([[0.7300, 0.2700],\n        [0.7300, 0.2700]])", "right"),  # rounded to two places, printed with four
        ("weights =\n\n    0.7300    0.2700\n    0.7300    0.2700\n", "right"),
        ("[[7.311e-01 2.689e-01]\n [7.310e-01 2.690e-01]]", "right"),
        ("[[7.300e-01 2.700e-01]\n [7.300e-01 2.700e-01]]", "right"),
        ("tensor([[0.7300, 0.2689],\n        [0.7311, 0.2689]])", "wrong"),  # the others need four: so many are claimed
        ("tensor([[0.7000, 0.3000],\n        [0.7000, 0.3000]])", "wrong"),
    ],
)
def test_zeros_that_a_program_prints_claim_nothing(written: str, verdict: str) -> None:
    assert judged(written).verdict == verdict


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[[0.73 ... 0.27]\n ...\n [0.73 ... 0.27]]", "leaves numbers out with '...'; print or type all of them"),
        (r"\begin{pmatrix} 0.73 & \cdots \\ 0.73 & 0.27 \end{pmatrix}", "leaves numbers out"),
        ("[0.73 0.73; 0.27 0.27]'", "is to be transposed, by what stands at its end"),
        ("np.array([[0.73, 0.73], [0.27, 0.27]]).T", "is to be transposed"),
        (r"$\begin{pmatrix} 0.73 & 0.73 \\ 0.27 & 0.27 \end{pmatrix}^T$", "is to be transposed"),
        (
            r"W = \frac{1}{100} \begin{pmatrix} 73 & 27 \\ 73 & 27 \end{pmatrix}",
            r"has '\frac{1}{100}' beside its matrix",
        ),
        (r"\begin{pmatrix} 73 & 27 \\ 73 & 27 \end{pmatrix} / 100", "has '/ 100' beside its matrix"),
    ],
)
def test_what_would_change_a_matrix_from_outside_is_asked_back(written: str, said: str) -> None:
    answer = judged(written)
    assert (answer.verdict, said in answer.message) == ("malformed", True), answer.message


def test_an_entry_that_nobody_knows_costs_itself_alone() -> None:
    for nothing in ("?", "-", "—", "_"):
        one = judged(f"0.73 {nothing}; 0.73 0.27")
        assert one.right == 3
        assert one.entries_wrong == ((1, 2),)
        assert judged(nothing).verdict == "blank"


def test_a_number_may_be_written_by_hand() -> None:
    texts = ("1 3/4", "-1 3/4", "–2", "1,5×10²", "2·10³", "2·3", "-10^9")
    assert [read_number(text).near for text in texts] == [1.75, -1.75, -2, 150, 2000, 6, -1e9]
    assert (
        read_number("3/np.sqrt(2)") == read_number("3/math.sqrt(2)") == replace(read_number("3/√2"), text="3/sqrt(2)")
    )
    assert read_number("6.65×10⁻³").places == 5
    with pytest.raises(NumberError):
        read_number("1 3")


@pytest.mark.parametrize(
    "hidden", ["-Inf", "-np.inf", "-math.inf", "-torch.inf", "float('-inf')", "-Infinity", "-oo", "-∞", "−∞"]
)
def test_what_is_hidden_as_programs_have_it(hidden: str) -> None:
    for text in (
        f"[[0.88, {hidden}], [0.73, 0.27]]",
        f"0.88 {hidden}; 0.73 0.27",
        [["0.88", hidden], ["0.73", "0.27"]],
    ):
        assert numbers(text)[0][1].near == float("-inf")


@pytest.mark.parametrize("text", ["inf", "np.inf", "-info", "-a.b.inf", "float('inf')", "-inf.0"])
def test_what_is_not_hidden(text: str) -> None:
    with pytest.raises(NumberError):
        read_number(text)


@pytest.mark.parametrize("hidden", ["-inf", "-1e9", "-1000000000", "-10^9", "-10000", "-3.4028234663852886e+38"])
def test_what_code_hides_with_is_as_good_as_the_masks_own(hidden: str) -> None:
    sheet = parse_sheet(
        SHEET.replace("{marking}", 'mask = "causal"').replace('"weights"', '"masked", "weights"'), "test"
    )
    part = mark(sheet, {"a": {"masked": f"1 {hidden}; 2 1", "weights": "1 0; 0.73 0.27"}}).parts[0]
    assert [answer.verdict for answer in part.answers] == ["right", "right"]
    weak = mark(sheet, {"a": {"masked": "1 -9; 2 1", "weights": "1 0; 0.73 0.27"}}).parts[0]
    assert [answer.entries_wrong for answer in weak.answers] == [((1, 2),), ()]


def test_latex_keeps_its_fractions_and_roots() -> None:
    rows = numbers(r"\begin{bmatrix} -\tfrac{\sqrt{2}}{2} & 2 \sqrt{3} \\ \frac12 & -\infty \end{bmatrix}")
    assert [round(x.near, 4) for row in rows for x in row] == [-0.7071, 3.4641, 0.5, float("-inf")]


def test_a_comma_that_may_be_either_is_asked_back() -> None:
    with pytest.raises(Malformed, match=r"holds '1,234', which may be 1.234 or 1234"):
        numbers([["1,234", "2"]])
    assert numbers([["1,234", "0,5"]])[0][0].value == Fraction(1234, 1000)
    assert [x.near for x in numbers("1,2", (1, 2))[0]] == [1, 2]
    assert [x.near for x in numbers("1,2", (1, 1))[0]] == [1.2]


@pytest.mark.parametrize(
    "hostile",
    [
        "\\begin{matrix}" * 1400,
        "array([" + "]" * 19_000,
        "\\frac{" * 3_000,
        "np.array(__import__('os').getcwd())",
        "%" * 19_000,
        "5%%",
        "-inf%",
        r"\begin{pmatrix} 1 & \\ & 4 \end{pmatrix}",
        r"\input{/etc/passwd}",
        "1,2,3,4" * 2_000,
        "w = " * 4_000,
        "np.float64(" * 1_500,
        "a" * 19_000 + "=",
        "[" + "[1]  " * 3_800 + "x",  # where each space could belong to two parts of a pattern this took for ever
        "{" + "{1}, " * 3_800 + "x}",
        "(" + "(1, 2) , " * 2_000,
        "[[[" + "]] " * 6_000 + "]",
        "1" + " " * 19_000 + "x",
        "array([" + "] " * 9_000,
    ],
)
def test_what_only_looks_like_a_matrix_is_malformed_at_once(hostile: str) -> None:
    start = time.process_time()
    assert judged(hostile).verdict == "malformed"
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("text", "right", "verdict"),
    [
        ("0.8276622470953353", "0.82766224709533519", True),
        ("0.8276622470953353", "0.8276622470950", True),
        ("0.8276622470953353", "0.8276", False),
        ("123.45678901234567", "123.45678901234561", True),
        ("0.8807970881462097", "0.8807970779778823", True),  # single precision, as tensor.tolist() has it
        ("0.0045870906", "0.004587090536", True),
        ("0.880797", "0.880799", False),
        ("12345678", "12345679", False),  # at least the places asked for
    ],
)
def test_digits_beyond_single_precision_claim_nothing(text: str, right: str, verdict: bool) -> None:
    exact = Fraction(right)
    assert Tolerance().accepts(read_number(text), to_float(exact), lambda: exact, 2) is verdict


@pytest.mark.parametrize(("text", "verdict"), [("0", True), ("0.00", True), ("0.001", False)])
def test_nought_has_no_figures(text: str, verdict: bool) -> None:
    assert Tolerance.read("3 figures").accepts(read_number(text), 0.0, lambda: Fraction(0), 2) is verdict


def test_too_few_places_are_told_as_that() -> None:
    one = judged("0.7 0.3; 0.73 0.27")
    assert (one.verdict, one.entries_wrong, one.tags) == ("wrong", ((1, 1), (1, 2)), ())
    assert one.message == "has 1 decimal place where 2 are asked for"
    assert judged("1 0; 1 0").message == "has no decimal places where 2 are asked for"
    assert judged("0.73 0.27; 0.73 0.27", "marking = { tolerance = '3 places' }").message == (
        "has 2 decimal places where 3 are asked for"
    )
    assert judged("0.6 0.3; 0.73 0.27").message == ""


def test_more_places_than_are_known_are_told_as_that() -> None:
    said = "is right in the 2 decimal places asked for, and not in those it gives beyond"
    one = judged("0.7316 0.2684; 0.73 0.27")
    assert (one.verdict, one.entries_wrong, one.message) == ("wrong", ((1, 1), (1, 2)), said)
    assert judged("0.7316 0.2684; 0.83 0.27").message == ""


def test_a_percentage_of_nothing() -> None:
    with pytest.raises(NumberError):
        read_number("%")


def named(**given: Any) -> tuple[dict[str, AnswerMark], tuple[str, ...]]:
    part = mark("two-heads", {"2.a": given}).parts[1]
    return {answer.name: answer for answer in part.answers}, part.notes


@pytest.mark.parametrize("name", ["Q1", "q_1", "q1", "Q_{1}", "Q-1", "Q₁"])
def test_a_name_may_be_put_together_otherwise(name: str) -> None:
    marks, notes = named(**{name: "1 2; 3 4"})
    assert marks["Q_1"].verdict == "right"
    assert not notes


def test_long_names_and_entries_too() -> None:
    sheet = parse_sheet(SHEET.replace("{marking}", ""), "test")
    entries = {f"Weights[{i},{j}]": WEIGHTS[i - 1][j - 1] for i in (1, 2) for j in (1, 2)}
    marks = mark(sheet, {"a": {k: str(v) for k, v in entries.items()}, "b": {"SCORES_1_2": "0"}})
    assert [part.answers[0].verdict for part in marks.parts] == ["right", "right"]


def test_a_near_miss_is_asked_back_and_is_no_attempt() -> None:
    sheet = parse_sheet(SHEET.replace("{marking}", ""), "test")
    answer = mark(sheet, {"a": {"wieghts": "1 0; 0 1"}}).parts[0].answers[0]
    assert answer.verdict == "malformed"
    assert answer.message == "is not there, but 'wieghts' is: write weights if that is meant"
    far = mark(sheet, {"a": {"xyz": "1 0; 0 1"}}).parts[0]
    assert far.answers[0].verdict == "blank"
    assert far.notes == ("'xyz' is not asked for; asked are weights",)


def test_an_answer_under_the_wrong_part_is_told_where_it_belongs() -> None:
    parts = mark("two-heads", {"2.b": {"Q1": "1 2; 3 4", "xyz": "1"}}).parts
    assert {answer.verdict for answer in parts[1].answers} == {"blank"}
    asked = "is not asked for; asked are head_output_1, head_output_2"
    assert parts[2].notes == (f"'Q1' {asked}; it belongs to part 2.a", f"'xyz' {asked}")
