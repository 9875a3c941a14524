"""Formulas are read from text as people write them, and nothing is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwork.numbers.closed import softmax
from headwork.numbers.surd import root
from headwork.numbers.text import text
from headwork.render.drawing import runs
from headwork.render.latex_maths import NODES as LATEX
from headwork.render.latex_maths import latex
from headwork.render.mathml import NODES as MATHML
from headwork.render.mathml import mathml
from headwork.render.maths import NODES
from headwork.render.reading import read_maths, read_prose
from headwork.render.typst_maths import NODES as TYPST
from headwork.render.typst_maths import typst_maths


@pytest.mark.parametrize("table", [LATEX, MATHML, TYPST], ids=["latex", "mathml", "typst"])
def test_every_format_sets_every_node(table: dict[type, object]) -> None:
    assert set(table) == set(NODES)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("W_Q,1", "W_{Q,1}"),
        ("√2/2", r"\frac{\sqrt{2}}{2}"),
        ("-3/4", r"-\frac{3}{4}"),
        ("1/(1 + e^(-√2))", r"\frac{1}{1 + e^{-\sqrt{2}}}"),
        ("softmax(Q·Kᵀ/√d_k)·V", r"\mathrm{softmax}(\frac{Q\cdot K^{\top}}{\sqrt{d_{k}}})\cdot V"),
        ("n_q·n_k·(d_k − 1)", r"n_{q}\cdot n_{k}\cdot (d_{k} - 1)"),
        ("1.65·10⁻⁶²", r"1.65\cdot 10^{-62}"),
        ("E[q_i]²", "E{[q_{i}]}^{2}"),
        ("B×n×d/h", r"B\times n\times \frac{d}{h}"),
        ("4.371·10⁴⁷ / (2.648·10¹⁰⁹)", r"\frac{4.371\cdot 10^{47}}{2.648\cdot 10^{109}}"),
        ("Q′_1", "Q'_{1}"),
        ("α_1,3", r"\alpha_{1,3}"),
        ("1,024", "1{,}024"),
        ("columns 0–1 of Q", r"\mathrm{columns}\text{ }0\text{--}1\text{ }\mathrm{of}\text{ }Q"),
    ],
)
def test_text_and_its_formula(words: str, expected: str) -> None:
    assert latex(read_maths(words)) == expected


def test_sentences_keep_their_words() -> None:
    assert read_prose("See file_with_long_name (or not).") == ("See file_with_long_name (or not).",)
    found = read_prose("Find Q_1, please.")
    assert found[0] == "Find "
    assert found[2] == ", please."


@settings(deadline=None)  # a shared machine may stall for longer than any formula takes
@given(st.text(max_size=60))
def test_nothing_is_refused(words: str) -> None:
    """Any text at all, balanced or not, becomes a formula in every format."""
    maths = read_maths(words)
    for write in (latex, mathml, typst_maths):
        assert isinstance(write(maths), str)
    assert isinstance(list(runs(maths)), list)


@settings(deadline=None)  # a shared machine may stall for longer than any formula takes
@given(st.fractions(max_denominator=50), st.integers(2, 30), st.fractions(-5, 5, max_denominator=9))
def test_closed_forms_keep_every_digit(a: Fraction, radicand: int, exponent: Fraction) -> None:
    """All digits of a closed form stand in the formula, in order."""
    number = softmax([a * root(radicand), exponent])[0]
    written = text(number)
    shown = "".join(run.text for run in runs(read_maths(written)))
    assert [c for c in shown if c.isdigit()] == [c for c in written if c.isdigit()]
