"""What a sheet says beyond its numbers, and what a new user types: names, points, dollars, near misses."""

from fractions import Fraction

import pytest

from headwork.configure import counts
from headwork.errors import HeadworkError, did_you_mean
from headwork.inline import inline
from headwork.marking.mark import mark
from headwork.render.latex_maths import GREEK, SIGNS, latex, symbol
from headwork.render.prose import read_prose
from headwork.render.save import rendered
from headwork.render.tex import read_tex
from headwork.sheets.load import parse_sheet
from headwork.sheets.save import sheet_toml
from headwork.solving import solve
from headwork.web.tables import sheet_of, table_of

CAT = """
title = "The cat"
formula = "single_head"
mask = [[true, false, false], [false, false, false], [true, true, true]]
tokens = ["the", "cat", "sat"]
decimals = "always"
places = 3
text = 'Attention is $\\mathrm{softmax}(\\frac{QK^T}{\\sqrt{d_k}})V$ for \\$5.'
[notation]
head_output = "M"
"Q[i]" = "q"
"scores[i,j]" = "z"
[given]
W_V = [[1, 0], [0, 1]]
W_Q = [[1, 0], [0, "1/3"]]
W_K = [[1, 0], [0, 1]]
X = [[1, 2], [3, 4], [0, 1]]
[[part]]
label = "a"
text = "Find $Q$."
points = 3
find = ["Q"]
[[part]]
label = "b"
points = "1/2"
find = ["scores", "weights"]
"""
SHEET = parse_sheet(CAT, "cat")


def page(part: str | None = None, entry: str | None = None) -> str:
    return str(rendered(solve(SHEET, part=part, entry=entry), ".txt"))


def test_rows_and_columns_carry_the_names_of_the_tokens() -> None:
    text = page(part="b")
    assert "           the    cat    sat\n" in text
    assert "    cat  5.667  14.333  1.333\n" in text
    for ending in (".html", ".typ", ".ipynb"):
        assert rendered(solve(SHEET, part="b"), ending).count("cat") > 2, ending
    wrong = CAT.replace('tokens = ["the", "cat", "sat"]', 'tokens = ["the", "cat"]')
    with pytest.raises(HeadworkError, match="key 'tokens': 2 names for 3 of them; give as many"):
        solve(parse_sheet(wrong, "cat"))
    with pytest.raises(HeadworkError, match="must be a list of names"):
        parse_sheet(CAT.replace('"sat"]', "7]"), "cat")


def test_names_of_a_heat_map_are_those_of_the_tokens() -> None:
    assert "<tspan>sat</tspan>" in rendered(solve(SHEET, part="b"), ".html")


def test_a_part_has_its_points() -> None:
    assert "(a) Find Q. (3 points)" in page()
    assert "(b) (1/2 points)" in page()
    marks = mark(SHEET, {"a": {"Q": [["1", "0.667"], ["3", "1.333"], ["0", "0.333"]]}})
    assert (marks.score, marks.max_score) == (Fraction(3), Fraction(7, 2))
    both = CAT.replace("[[part]]", "[marking]\npoints = { a = 1 }\n[[part]]", 1)
    with pytest.raises(HeadworkError, match="part 'a' has points of its own and under"):
        mark(parse_sheet(both, "cat"), {})
    with pytest.raises(HeadworkError, match="key 'points'"):
        parse_sheet(CAT.replace("points = 3", "points = -3"), "cat")


def test_mathematics_stands_between_dollars() -> None:
    assert "Attention is softmax(QKᵀ/√d_k)V for $5." in page()
    assert r"\frac{QK^{\top}}{\sqrt{d_{k}}}" in rendered(solve(SHEET), ".tex").replace(" ", "")
    words = read_prose("costs $5, or 5$ there; $x^2")  # a dollar alone is a dollar
    assert "".join(piece if isinstance(piece, str) else inline(piece) for piece in words).startswith("costs ")


@pytest.mark.parametrize(
    ("tex", "in_text", "in_latex"),
    [
        (r"x_{i,j}^2 \le \alpha \cdot W_Q^{-1}", "x_i,j²≤α·W_Q⁻¹", r"{x_{i,j}}^{2}\le \alpha \cdot {W_{Q}}^{-1}"),
        (r"\sum_{i=1}^n x_i y_i", "Σ_(i = 1)^n x_i y_i", r"{\sum_{i = 1}}^{n}x_{i}y_{i}"),
        (r"\alpha_{ij}", "α_ij", r"\alpha_{ij}"),
        (r"\text{head}_i(s_{i+1})", "head_i(s_(i + 1))", r"\mathrm{head}_{i}(s_{i + 1})"),
        ("softmax(d_{model})", "softmax(d_model)", r"\mathrm{softmax}(d_{\mathrm{model}})"),
        (r"\frac12\bar{x}'", "1/2x̄′", r"\frac{1}{2}\overline{x}'"),
        (
            r"W \leftarrow W - \eta\,\frac{\partial L}{\partial W}",
            "W ← W − η∂L/∂W",
            r"W\leftarrow W - \eta \frac{\partial L}{\partial W}",
        ),
        (r"X \in \mathbb{R}^{n\times d}", "X ∈ ℝ^(n×d)", r"X\in \mathbb{R}^{n\times d}"),
        (r"\mathcal{L}=\|\hat y-t\|_2^2", "ℒ = ‖ŷ − t‖_2²", r"\mathcal{L} = \Vert \hat{y} - t{\Vert_{2}}^{2}"),
        (r"\nabla_{W_Q} \widetilde{X} \dfrac ab", "∇_W_Q X̃a/b", r"\nabla_{W_{Q}}\tilde{X}\frac{a}{b}"),
        (r"W_Q^{(h)} \mapsto \overline{Q}", "W_Q^(h) ↦ Q̄", r"{W_{Q}}^{(h)}\mapsto \overline{Q}"),
        (r"\bigl\langle q, k\bigr\rangle \propto K^\mathsf{T}", "⟨q,k⟩ ∝ Kᵀ", r"\langle q,k\rangle \propto K^{\top}"),
        (
            r"\begin{pmatrix} 1 & x_1 \\ 0 \\ \end{pmatrix}^T",
            "[1  x_1; 0  ]ᵀ",
            r"{\left[\begin{array}{rr} 1 & x_{1} \\ 0 &  \end{array}\right]}^{\top}",
        ),
        (r"\text{for all } k", "for all k", r"\text{for all }k"),
        ("a_", "a_", r"a\_"),
        (r"{\frac", "/", r"\frac{}{}"),
        ("}^", "}^", r"\}\hat{}"),
    ],
)
def test_what_stands_between_dollars_means_what_tex_means(tex: str, in_text: str, in_latex: str) -> None:
    maths = read_tex(tex)
    assert inline(maths) == in_text
    assert latex(maths) == in_latex


@pytest.mark.parametrize("character", [*GREEK.values(), *SIGNS.values()])
def test_what_latex_writes_for_a_character_is_read_as_it(character: str) -> None:
    assert inline(read_tex(symbol(character))) == character


def test_decimals_may_be_had_always() -> None:
    assert "0.333" in page()
    assert "1/3" not in page(part="a")
    assert "1/3" in rendered(solve(parse_sheet(CAT.replace('"always"', '"short"'), "cat")), ".txt")


def test_what_is_given_is_not_said_to_be_what_it_is_rounded_to() -> None:
    """A third is 0.333 where decimals are always wanted, but it does not equal it."""
    for shown in ("W_Q ≈ ⎡1  0    ⎤", "W_K = ⎡1  0⎤"):
        assert shown in page()
    assert "W_Q ≈ ⎡1  0    ⎤   as given" in page(entry="W_Q")
    assert "W_Q[2] ≈ [0  0.333]   as given" in page(entry="W_Q[2]")
    assert "W_Q[2,2] ≈ 0.333   as given" in page(entry="W_Q[2,2]")


def test_what_is_given_stands_in_the_order_of_the_sheet() -> None:
    text = page()
    places = [text.replace("≈", "=").index(f"{name} = ") for name in ("W_V", "W_Q", "W_K", "X", "mask")]
    assert places == sorted(places)


def test_the_words_of_a_sheet_are_saved() -> None:
    text = sheet_toml(SHEET)
    for line in ('tokens = ["the", "cat", "sat"]', 'decimals = "always"', "points = 3", 'points = "0.5"'):
        assert line in text
    assert sheet_toml(parse_sheet(text, "again")) == text
    assert sheet_of(table_of(SHEET)).problems == SHEET.problems  # as the bench holds it


def test_powers_of_e_that_are_whole_are_no_approximations() -> None:
    text = 'title = "Even"\nformula = "dot_product"\n[given]\nQ = [[0]]\nK = [[1], [2]]\nV = [[1], [2]]\n'
    shown = rendered(solve(parse_sheet(f'{text}[[part]]\nfind = ["weights"]', "even"), entry="weights[1,1]"), ".txt")
    lines = [line.strip() for line in str(shown).splitlines()[3:]]
    assert lines == ["weights[1,1] = e^0 / (e^0 + e^0)", "= 1 / (1 + 1)", "= 1 / 2", "= 0.5"]


def test_an_entry_goes_by_the_name_that_the_page_prints() -> None:
    assert "M[1,1] = 1·1 + 0·3 + 0·0" in page(entry="M[1,1]")
    assert page(entry="head_output[1,1]") == page(entry="M[1,1]")
    assert "z_3,1 ≈ 0·1 + 0.333·2" in page(entry="z_3,1")
    assert "head_2[1,1]" in rendered(solve("two-heads", entry="head[1,1]"), ".txt")
    assert "as given" not in rendered(solve("two-heads", entry="head[1,1]"), ".txt")
    assert "M[1,1] ≈ 2.97·1" in rendered(solve("two-heads", entry="M[1,1]"), ".txt")
    assert "W_Q,2[1,1] = 0   as given" in rendered(solve("two-heads", entry="W_Q,2[1,1]"), ".txt")


def test_a_row_shows_the_row() -> None:
    for name in ("Q[2]", "q_2"):
        assert "q_2 = X[2]·W_Q" in page(entry=name)
    assert "X[2] = [3  4]   as given" in page(entry="X[2]")


def test_what_is_handed_over_comes_from_nowhere() -> None:
    """Though all that it would be made of is known too."""
    handed = parse_sheet(CAT.replace("[given]", "[given]\nQ = [[5, 6], [7, 8], [9, 10]]", 1), "cat")
    for name, shown in (("Q[2]", "q_2 = [7  8]   as given"), ("Q[2,1]", "Q[2,1] = 7   as given")):
        assert shown in rendered(solve(handed, entry=name), ".txt")
    row = rendered(solve("two-heads", part="1.a", entry="head[1]"), ".txt")  # and what it is made of is not known
    assert "head_1[1] = [1  2]   as given" in row
    assert "head_1[1] = weights_1[1]·V_1" in rendered(solve("two-heads", entry="head[1]"), ".txt")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("Q[9]", "'Q[9]' lies outside: rows go from 1 to 3"),
        ("Q[0,1]", "'Q[0,1]' lies outside: rows go from 1 to 3"),
        ("M[1,-2]", "'M[1,-2]' lies outside: columns go from 1 to 2"),
        ("wieghts[1,1]", "there is no 'wieghts'; did you mean 'weights'?"),
        ("W_q", "there is no 'W_q'; did you mean 'W_Q'?"),
        ("banana", "unknown role 'banana'; choose from X,"),
    ],
)
def test_what_cannot_be_found_is_said(entry: str, message: str) -> None:
    with pytest.raises(HeadworkError) as error:
        solve(SHEET, entry=entry)
    assert message in str(error.value)


@pytest.mark.parametrize(("entry", "meant"), [("wieghts[1,1]", "weights"), ("W_q", "W_Q"), ("scors_2", "scores_2")])
def test_of_heads_that_are_alike_none_is_meant(entry: str, meant: str) -> None:
    with pytest.raises(HeadworkError, match=f"did you mean '{meant}'"):
        solve("two-heads", entry=entry)


def test_a_part_goes_by_the_name_that_marks_have() -> None:
    assert rendered(solve("two-heads", part="2.c"), ".txt").count("(c)") == 1
    assert [p.problem.title for p in solve("block-matrices", part="3.a").problems] == ["One head, by hand"]
    with pytest.raises(HeadworkError, match="there is no problem 9; they go from 1 to 5"):
        solve("block-matrices", part="9.a")
    with pytest.raises(HeadworkError, match="there is no part 'z'; there is a, b"):
        solve("block-matrices", part="3.z")


@pytest.mark.parametrize(
    ("change", "meant"),
    [
        (('formula = "single_head"', 'formula = "singel_head"'), "did you mean 'single_head'?"),
        (("places = 3", "palces = 3"), "unknown key 'palces'; did you mean 'places'?"),
        (("W_K = [", "W_k = ["), "unknown role 'W_k'; did you mean 'W_K'?"),
        (('find = ["Q"]', 'finds = ["Q"]'), "unknown key 'finds'; did you mean 'find'?"),
    ],
)
def test_near_misses_are_asked_back(change: tuple[str, str], meant: str) -> None:
    with pytest.raises(HeadworkError) as error:
        parse_sheet(CAT.replace(*change), "cat")
    assert meant in str(error.value)
    assert did_you_mean("zebra", ["weights"]) == ""


def test_a_row_without_a_key_says_why_it_is_zeros() -> None:
    assert "Row 2 of weights is all zeros: the mask hides every key from it" in " ".join(page().split())
    assert "Row 1 of" not in page()
    for softmax in ("steps", "safe-steps"):
        text = " ".join(str(rendered(solve(SHEET, softmax=softmax), ".txt")).split())
        assert "Row 2 of weights is all zeros: the mask hides every key from it" in text
        assert "Row 1 of" not in text


def test_closed_forms_need_no_notes_about_decimals() -> None:
    working = solve("thinking-machine")
    assert "is not" in rendered(working, ".txt")
    assert "is not" not in rendered(solve("query-key-value"), ".txt", exact=True)


def test_counts_say_that_a_row_is_one_head() -> None:
    table = str(counts("multi_head", heads="h"))
    assert "A row that says “each of” is one of h heads; the total counts them all." in table
    assert "each of" not in str(solve("two-heads"))
