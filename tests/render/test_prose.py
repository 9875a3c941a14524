"""Formulas in a sheet's sentences are read as people write them, nothing is refused, and nothing else is ever read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwork.inline import inline, sentence
from headwork.maths import Maths
from headwork.render import prose
from headwork.render.drawing import runs
from headwork.render.html import mathml
from headwork.render.latex_maths import latex
from headwork.render.prose import read_maths, read_prose
from headwork.render.save import DATA, PAGES, rendered
from headwork.render.tex import read_tex
from headwork.render.typst import typst_maths
from headwork.sheets.load import load
from headwork.sheets.shelf import built_in
from headwork.solving import solve
from headwork.web.page import view
from headwork.web.tables import table_of
from tests.render.conftest import require


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
        ("Q′_1", "Q'_{1}"),
        ("α_1,3", r"\alpha_{1,3}"),
        ("1,024", "1{,}024"),
        ("scores_1[1,100]", r"\mathrm{scores}_{1}[1,100]"),
    ],
)
def test_text_and_its_formula(words: str, expected: str) -> None:
    assert latex(read_maths(words)) == expected


@pytest.mark.parametrize("words", ["f(x", "[0,1)", "(a]", "((a)", "softmax(Q·[K)"])
def test_no_bracket_is_added_that_nobody_wrote(words: str) -> None:
    assert inline(read_maths(words)) == words


def test_sentences_keep_their_words() -> None:
    for words in ("See file_with_long_name (or not).", "Its file_name, or no_output at all."):
        assert read_prose(words) == (words,)
    found = read_prose("Find Q_1, please.")
    assert found[0] == "Find "
    assert found[2] == ", please."


@pytest.mark.parametrize(
    ("words", "formulas"),
    [
        ("Join the heads and find M.", ["M"]),
        ("A head of width d = 2 reads all of X.", ["d", "X"]),
        ("Q·Kᵀ with K of n×d, where n is large.", ["Q·Kᵀ", "K", "n×d", "n"]),
        ("I take a look at B, an I and an A.", []),
    ],
)
def test_a_letter_is_in_one_font_on_a_page(words: str, formulas: list[str]) -> None:
    """Names of the page, letters of its formulas and letters that are set equal to something; never an article."""
    read = read_prose(words, {"M", "X", "A"})
    assert [inline(piece) for piece in read if not isinstance(piece, str)] == formulas
    assert sentence(read) == words


@settings(deadline=None)  # a shared machine may stall for longer than any formula takes
@given(st.text(max_size=60))
def test_nothing_is_refused(words: str) -> None:
    """Any text at all, balanced or not, becomes a formula in every format."""
    for maths in (read_maths(words), read_tex(words)):
        for write in (latex, mathml, typst_maths, inline):
            assert isinstance(write(maths), str)
        assert isinstance(list(runs(maths)), list)


@pytest.mark.parametrize("piece", ["{", r"\frac{", r"\sqrt", "^{", "_", "_a^b^{x", r"\begin{pmatrix}", r"\hat"])
def test_what_has_no_end_stands_as_it_was_typed(piece: str) -> None:
    """However deep it goes: it ended in a traceback."""
    deep = read_tex("x" + 4000 * piece)
    assert all(isinstance(write(deep), str) for write in (latex, mathml, typst_maths, inline))


@pytest.mark.parametrize("name", built_in())
def test_only_a_sheets_prose_is_read_as_mathematics(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In no format does headwork read back what it has printed."""
    for extra in ("typst", "nbformat"):
        require(extra)
    read: list[str] = []

    def counted(words: str) -> Maths:
        read.append(words)
        return read_maths(words)

    monkeypatch.setattr(prose, "read_maths", counted)
    working = solve(name)
    for ending in (*PAGES, *DATA):
        if not (ending in (".svg", ".png") and not any(p.picture for p in working.problems)):
            rendered(working, ending)
    sheet = load(name)
    view(table_of(sheet))
    told = [t for p in sheet.problems for t in (p.text, *(x for part in p.parts for x in (part.text, part.answer)))]
    assert read or name != "two-heads", "whose own formulas go through the reader"
    assert not [words for words in read if not any(words in text for text in told)]


def test_the_reader_is_used_by_pages_alone() -> None:
    """Nobody else imports it: the count above cannot be gone around."""
    source = Path(prose.__file__).parent.parent
    importing = re.compile(r"import .*read_(maths|prose)|render\.prose")
    users = {p.relative_to(source).as_posix() for p in source.rglob("*.py") if importing.search(p.read_text("utf-8"))}
    assert users == {"render/page.py", "web/page.py", "web/practice.py"}
