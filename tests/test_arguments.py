"""Proofs in names: few lines for any sizes, every one of them checked; entry by entry where that is asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sympy
from typer.testing import CliRunner

import headwork
from headwork import arguments
from headwork.cli import app
from headwork.errors import HeadworkError
from headwork.inline import inline
from headwork.maths import Letter, Maths, Prose, Statement
from headwork.notation import PLAIN, Notation
from headwork.proofs import Short
from headwork.sheets.load import parse_sheet
from headwork.sheets.save import sheet_toml
from headwork.web.tables import sheet_of, table_of
from headwork.working import Working

SHEET = """
title = "Proofs"
formula = "multi_head_blocks"
heads = 2
[sizes]
tokens = "n"
d_model = "d"
[[part]]
label = "a"
kind = "prove"
find = ["Q", "shift", "blockwise", "gradient", "scores[i,j]", "head_output[i]"]
"""


def solved(text: str) -> Working:
    return headwork.solve(parse_sheet(text, "proofs.toml"))


def lines(short: Short) -> list[str]:
    return [("" if line.left is None else inline(line.left)) + " = " + inline(line.right) for line in short.lines]


def test_the_block_split_is_two_lines_for_any_number_of_heads() -> None:
    assert lines(arguments.blocks_argument(["output"], PLAIN)) == [
        "X·[W_Q,1 | … | W_Q,h] = [X·W_Q,1 | … | X·W_Q,h]",
        " = [Q_1 | … | Q_h]",
    ]
    assert lines(arguments.blocks_argument(["V"], Notation({}, 0), 3)) == [
        "X·[W_V,0 | W_V,1 | W_V,2] = [X·W_V,0 | X·W_V,1 | X·W_V,2]",
        " = [V_0 | V_1 | V_2]",
    ]
    assert lines(arguments.blocks_argument(["V"], PLAIN, 16))[1] == " = [V_1 | … | V_16]"


def test_the_softmax_is_argued_in_names() -> None:
    assert lines(arguments.shift_argument()) == [
        "e^(s_j − c)/(Σ_k e^(s_k − c)) = e^(−c)·e^(s_j)/(e^(−c)·Σ_k e^(s_k))",
        " = e^(s_j)/(Σ_k e^(s_k))",
    ]
    assert lines(arguments.blockwise_argument()) == [
        "e^(m − M)·Σ_k≤a e^(s_k − m)·v_k + Σ_a<k≤b e^(s_k − M)·v_k = Σ_k≤b e^(s_k − M)·v_k",
        "Σ_k e^(s_k − m)·v_k/(Σ_k e^(s_k − m)) = Σ_k e^(s_k)·v_k/(Σ_k e^(s_k))",
    ]
    assert lines(arguments.gradient_argument()) == [
        "∂p_j/∂s_j = p_j·(1 − p_j)",
        "∂p_k/∂s_j = −p_j·p_k",
        "∂L/∂s_j = g_j·p_j − p_j·Σ_k g_k·p_k",
        " = p_j·(g_j − Σ_k g_k·p_k)",
    ]


def test_products_are_argued_in_the_names_of_the_page() -> None:
    names = Notation({"weights": "A"}, 0)
    assert lines(arguments.entry_argument(names)) == ["(Q·Kᵀ)_i,j = Σ_c q_i,c·k_j,c"]
    assert lines(arguments.row_argument(names)) == ["(A·V)_i,c = Σ_j a_i,j·v_j,c", "(A·V)_i = Σ_j a_i,j·v_j"]


def test_a_line_that_does_not_hold_is_not_printed() -> None:
    x, y = sympy.symbols("x y", real=True)
    arguments.line(Letter("x"), Letter("y"), (), [(sympy.exp(x + y), sympy.exp(x) * sympy.exp(y))])
    with pytest.raises(ArithmeticError, match="x = y does not hold"):
        arguments.line(Letter("x"), Letter("y"), (), [(x + x, 2 * x), (x, y)])


@pytest.mark.parametrize(
    "argue",
    [
        *(arguments.shift_argument, arguments.blockwise_argument, arguments.gradient_argument),
        *(lambda: arguments.entry_argument(PLAIN), lambda: arguments.row_argument(PLAIN)),
        lambda: arguments.blocks_argument(["Q"], PLAIN),
    ],
)
def test_every_line_is_compared_in_some_entries(argue: Callable[[], Short], monkeypatch: pytest.MonkeyPatch) -> None:
    compared: dict[Statement, int] = {}
    line = arguments.line

    def counting(left: Maths | None, right: Maths, because: Prose, pairs: arguments.Pairs) -> Statement:
        listed = list(pairs)
        said = line(left, right, because, listed)
        compared[said] = len(listed)
        return said

    monkeypatch.setattr(arguments, "line", counting)
    assert all(compared[said] for said in argue().lines)


def test_a_gradient_that_is_only_the_diagonal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule with the row term forgotten: no sum over the keys."""

    def forgotten(term: Any, *_: Any) -> Any:
        return sympy.Integer(0)

    monkeypatch.setattr(arguments, "_over_keys", forgotten)
    with pytest.raises(ArithmeticError, match="does not hold"):
        arguments.gradient_argument()


def test_a_page_shows_the_short_proof_and_the_long_one_on_request(tmp_path: Path) -> None:
    short = repr(solved(SHEET))
    assert "entry by entry" not in short
    assert short.count("∎") == 6
    written_out = SHEET + "entries = true\n"
    long = repr(solved(written_out))
    assert long.count("entry by entry") >= 6
    path = tmp_path / "proofs.toml"
    path.write_text(SHEET, "utf-8")
    run = CliRunner().invoke
    assert run(app, ["prove", str(path)]).output.count("entry by entry") == 0
    assert run(app, ["prove", str(path), "--entries"]).output.count("entry by entry") >= 6
    sheet = parse_sheet(written_out, "proofs.toml")
    assert parse_sheet(sheet_toml(sheet), "again.toml").problems == sheet.problems
    assert sheet_of(table_of(sheet)).problems == sheet.problems  # as the bench holds it


def test_many_heads_are_claimed_as_many_as_there_are() -> None:
    """Sixteen would be too many to write out; the argument names the first and the last."""
    page = repr(solved(SHEET.replace("heads = 2", "heads = 16")))
    assert "[Q_1 | … | Q_16]" in page
    assert "So both give the same Q, whatever" in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SHEET + 'entries = "yes"\n', "key 'entries': 'yes' is neither true nor false"),
        (SHEET.replace('kind = "prove"', 'kind = "shape"') + "entries = true", "belongs to a part of kind 'prove'"),
    ],
)
def test_the_key_is_checked(text: str, message: str) -> None:
    with pytest.raises(HeadworkError, match=message):
        parse_sheet(text, "proofs.toml")


@pytest.mark.parametrize("ending", ["md", "tex", "html", "ipynb", "txt", "typ"])
def test_every_format_sets_the_argument(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"page.{ending}"
    solved(SHEET).save(path)
    assert "block by block" in path.read_text("utf-8")
