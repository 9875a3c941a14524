"""Sheets: what is read, and what is refused with one clear message."""

from __future__ import annotations

import contextlib
import copy
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwork
from headwork.errors import HeadworkError, SheetError
from headwork.sheets.fields import read_problem
from headwork.sheets.load import LARGEST_FILE, load, parse_sheet
from headwork.sheets.ready import Ready
from headwork.sheets.shelf import built_in, summaries
from headwork.working import Equation

GOOD = """
title = "Two heads"
formula = "multi_head"
heads = 2
[given]
X = [[1, 2], [3, 4]]
W_Q = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
W_K = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
W_V = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
W_O = [[1, 0], [0, 1], [1, 0], [0, 1]]
[[part]]
label = "a"
find = ["Q", "output"]
"""


def rows(equation: Equation) -> list[list[Any]]:
    assert equation.value is not None
    return [list(row) for row in equation.value]


def test_the_example_solves() -> None:
    working = headwork.solve(parse_sheet(GOOD, "good.toml"))
    assert rows(working["Q", 2]) == [[2, 1], [4, 3]]


def test_decimals_are_exact() -> None:
    sheet = parse_sheet(GOOD.replace("[[1, 2], [3, 4]]", '[[0.1, "1/3"], ["sqrt(2)", -2e-1]]'), "good.toml")
    X = sheet.problems[0].given["X", None]
    assert X[0] == (Fraction(1, 10), Fraction(1, 3))
    assert X[1][1] == Fraction(-1, 5)


@pytest.mark.parametrize("name", built_in())
def test_every_built_in_sheet_is_complete(name: str) -> None:
    """Every part has a question in words, and every problem solves."""
    sheet = load(name)
    assert dict(summaries())[name]
    for problem in sheet.problems:
        assert problem.text
        for part in problem.parts:
            assert part.text
            assert part.find or part.answer or part.kind == "diagram"
    headwork.solve(sheet)


def test_the_sheets_of_the_courses_and_of_later_models_are_there() -> None:
    courses = {"block-matrices", "dot-product", "query-key-value", "thinking-machine", "two-heads"}
    assert courses | {"growing-cache", "rotary", "grouped-heads"} <= set(built_in())


BAD: dict[str, tuple[str, str, str]] = {
    # name: what is replaced, by what, and what the message must say
    "unknown key": ("heads = 2", "heds = 2", "unknown key 'heds'; did you mean 'heads'?"),
    "unknown key in a part": ('label = "a"', 'label = "a"\nlable = 1', "part 'a': unknown key 'lable'"),
    "ragged": ("X = [[1, 2], [3, 4]]", "X = [[1, 2], [3]]", "key 'X': is ragged: row 1 has 2 entries but row 2 has 1"),
    "shapes": (
        "X = [[1, 2], [3, 4]]",
        "X = [[1, 2, 3]]",
        "problem 'Two heads': W_Q,1 has 2 rows, but d_model is 3",
    ),
    "no such role": (
        '"output"',
        '"masked"',
        "part 'a': 'masked' is asked for, but multi_head has only",
    ),
    "unknown role": ('"output"', '"outptu"', "there is no 'outptu'; did you mean 'output'?"),
    "no role at all": ('"output"', '"rubbish"', "unknown role 'rubbish'; choose from X, W_Q"),
    "no such head": ('"output"', '"Q_3"', "'Q_3' is asked for, but multi_head has only"),
    "head 0 when counted from 1": ('"output"', '"Q_0"', "heads are counted from 1"),
    "outside": ('"output"', '"Q_1[3]"', "'Q_1[3]' lies outside: rows go from 1 to 2"),
    "outside, column": ('"output"', '"Q_1[1,9]"', "columns go from 1 to 2"),
    "not a name": ('"output"', '"Q_1["', "is not a name; write Q, Q_2, Q[2] or scores_1[3,1]"),
    "NaN": ("X = [[1, 2]", "X = [[nan, 2]", "key 'X': row 1, column 1: 'nan' is not a number"),
    "infinity": ("X = [[1, 2]", "X = [[-inf, 2]", "'-inf' is not a number"),
    "10,000 digits": ("X = [[1, 2]", f"X = [[{'9' * 10_000}, 2]", "too long to read"),
    "100 digits": ("X = [[1, 2]", f"X = [[{'9' * 100}, 2]", "a number of more than 80 digits"),
    "text of 10,000 digits": ("X = [[1, 2]", f'X = [["{"9" * 10_000}", 2]', "a number of 10000 characters"),
    "code": ("X = [[1, 2]", "X = [[\"__import__('os')\", 2]", "is not a number"),
    "40 heads": ("heads = 2", "heads = 40", "heads = 40, but W_Q holds 2 matrices"),
    "no heads": ("heads = 2", "heads = 0", "key 'heads': 0 is not a whole number from 1 to 128"),
    "heads as text": ("heads = 2", 'heads = "two"', "key 'heads': 'two' is not a whole number"),
    "a Boolean number": ("X = [[1, 2]", "X = [[true, 2]", "bool where a number belongs"),
    "unknown formula": (
        '"multi_head"',
        '"multihead"',
        "key 'formula': 'multihead' was given; did you mean 'multi_head'?",
    ),
    "no formula": ('formula = "multi_head"\n', "", "key 'formula': nothing was given"),
    "no parts": ('[[part]]\nlabel = "a"\nfind = ["Q", "output"]\n', "", "at least one [[part]] is needed"),
    "nothing to find": ('find = ["Q", "output"]', "", "key 'find' is missing"),
    "unknown kind": ('label = "a"', 'label = "a"\nkind = "guess"', "key 'kind': 'guess' was given; choose from value"),
    "mask of the wrong size": ("heads = 2", "heads = 2\nmask = [[true]]", "mask has 1 rows, but tokens is 2"),
    "mask of text": (
        "heads = 2",
        'heads = 2\nmask = "cuasal"',
        "key 'mask': 'cuasal' was given; did you mean 'causal'?",
    ),
    "ragged mask": ("heads = 2", "heads = 2\nmask = [[true, true], [true]]", "key 'mask': is ragged"),
    "scale 0": ("heads = 2", "heads = 2\nscale = 0", "key 'scale': is 0"),
    "places": ("heads = 2", "heads = 2\nplaces = 99", "key 'places': 99 is not a whole number from 0 to 50"),
    "first index": (
        "heads = 2",
        "heads = 2\nfirst_index = 7",
        "7 is not a whole number from 0 to 1",
    ),
    "name": ("[given]", '[notation]\nweights = "<b>"\n[given]', "key 'notation': 'weights' needs a name"),
    "named role": ("[given]", '[notation]\nwieghts = "A"\n[given]', "key 'notation': unknown role 'wieghts'"),
    "not a matrix": ("X = [[1, 2], [3, 4]]", "X = 3", "key 'X': must be a matrix"),
    "empty matrix": ("X = [[1, 2], [3, 4]]", "X = []", "key 'X': must be a matrix"),
    "empty row": ("X = [[1, 2], [3, 4]]", "X = [[], []]", "must be a matrix"),
    "too deep": ("X = [[1, 2], [3, 4]]", "X = [[[[1]]]]", "must be a matrix"),
    "a missing matrix": ("W_O = [[1, 0], [0, 1], [1, 0], [0, 1]]\n", "", "no matrix was given for W_O"),
    "W_O too short": ("W_O = [[1, 0], [0, 1], [1, 0], [0, 1]]", "W_O = [[1, 0], [0, 1]]", "W_O has 1 rows a head"),
    "uneven W_O": ("W_O = [[1, 0], [0, 1], [1, 0], [0, 1]]", "W_O = [[1, 0]]", "W_O has 1 rows, which 2 heads cannot"),
    "what cannot be given": ("X = [[1, 2], [3, 4]]", "K_transposed = [[1]]", "'K_transposed' cannot be given"),
    "one head as many": ("X = [[1, 2], [3, 4]]", "Q_1 = [[[1]]]", "'Q_1' is one head's matrix"),
    "not TOML": ('title = "Two heads"', "title = = 3", "is not a TOML file"),
    "labels": ("[[part]]", '[[part]]\nlabel = "a"\nfind = ["Q"]\n[[part]]', "label 'a' stands on two parts"),
    "title": ('title = "Two heads"', "title = 3", "key 'title': 3 is not text"),
    "problem beside keys": ("heads = 2", "heads = 2\nproblem = 3", "beside [[problem]]"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_sheet_gets_one_clear_message(name: str) -> None:
    old, new, message = BAD[name]
    assert old in GOOD
    with pytest.raises(HeadworkError) as error:
        headwork.solve(parse_sheet(GOOD.replace(old, new, 1), "bad.toml"))
    assert message in str(error.value)
    assert str(error.value).startswith("bad.toml")
    assert "\n" not in str(error.value) or "TOML" in str(error.value)
    assert len(str(error.value)) < 600


def test_files_that_are_no_sheets(tmp_path: Path) -> None:
    cases = {
        "empty.toml": (b"", "is empty; a sheet needs"),
        "junk.toml": (bytes(range(256)) * 4, "is not text in UTF-8"),
        "nul.toml": (b"\x00\x00\x00", "is not a TOML file"),
        "large.toml": (b"#" * (LARGEST_FILE + 1), "a sheet has at most"),
        "deep.toml": (b"x = " + b"[" * 5000, ""),
    }
    for name, (content, message) in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(SheetError, match=r"\w") as error:
            load(path)
        assert message in str(error.value)
        assert name in str(error.value)
    (tmp_path / "windows.toml").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())  # as its editors save UTF-8
    assert load(tmp_path / "windows.toml").problems == parse_sheet(GOOD, "good.toml").problems
    with pytest.raises(SheetError, match="is a directory"):
        load(tmp_path)
    if Path("/dev/zero").exists():
        with pytest.raises(SheetError, match="too many bytes"):
            load("/dev/zero")
    with pytest.raises(SheetError, match="there is no sheet 'nowhere'; give a path or one of: block-matrices"):
        load("nowhere")


TABLE: dict[str, Any] = {
    "formula": "multi_head_blocks",
    "heads": 2,
    "given": {
        "X": [[1, 2]],
        "W_Q": [[1, 2], [3, 4]],
        "W_K": [[1, 2], [3, 4]],
        "W_V": [[1, 0], [0, 1]],
        "W_O": [[1], [2]],
    },
    "part": [{"find": ["output"]}],
}

junk: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["-inf", "Q", "sqrt(2)", "causal"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


KEYS = [
    *("formula", "heads", "kv_heads", "scale", "mask", "places", "first_index"),
    *("notation", "given", "sizes", "part", "title", "vectors"),
]


@given(st.sampled_from(KEYS), junk)
@settings(max_examples=300)
def test_any_value_for_any_key_solves_or_is_refused(key: str, value: Any) -> None:
    """Whatever stands at a key, the outcome is a working or a HeadworkError: never another exception."""
    table = {**copy.deepcopy(TABLE), key: value}
    with contextlib.suppress(HeadworkError):
        headwork.solve(headwork_sheet(table))


@given(st.sampled_from(["X", "W_Q", "b_Q", "context", "weights", "weights_1", "Q", "W_O", "mask"]), junk)
@settings(max_examples=200)
def test_any_value_for_any_matrix_solves_or_is_refused(key: str, value: Any) -> None:
    table = copy.deepcopy(TABLE)
    table["given"][key] = value
    with contextlib.suppress(HeadworkError):
        headwork.solve(headwork_sheet(table))


def headwork_sheet(table: dict[str, Any]) -> Any:
    from headwork.sheets.sheet import Sheet

    return Sheet("Drawn", (read_problem(table, "Drawn"),))


def test_a_causal_mask_needs_a_key_for_every_token() -> None:
    text = """
    formula = "dot_product"
    mask = "causal"
    [given]
    Q = [[1], [2]]
    K = [[1]]
    V = [[1]]
    [[part]]
    find = ["weights"]
    """
    with pytest.raises(HeadworkError, match="at least as many keys as tokens, not 1 and 2"):
        headwork.solve(parse_sheet(text, "bad.toml"))


def test_a_fully_hidden_row_gives_zeros() -> None:
    text = """
    formula = "dot_product"
    mask = [[false, false], [true, false]]
    [given]
    Q = [[1], [1]]
    K = [[1], [2]]
    V = [[1], [2]]
    [[part]]
    find = ["output"]
    """
    working = headwork.solve(parse_sheet(text, "masked.toml"))
    assert rows(working["weights"]) == [[0, 0], [1, 0]]
    assert rows(working["output"]) == [[0], [1]]


def test_names_find_rows_and_entries() -> None:
    ready = Ready(parse_sheet(GOOD, "good.toml").problems[0])
    (entry,) = ready.find("scores_2[2,1]")
    assert (entry.step.role, entry.step.head, entry.row, entry.column) == ("scores", 1, 1, 0)
    assert [found.step.head for found in ready.find("Q[1]")] == [0, 1]
    assert ready.find(" output ")[0].step is ready.last


def test_grouped_heads_need_fewer_matrices() -> None:
    grouped = GOOD.replace("heads = 2", "heads = 2\nkv_heads = 1")
    for letter in "KV":
        grouped = grouped.replace(
            f"W_{letter} = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]", f"W_{letter} = [[[1, 0], [0, 1]]]"
        )
    working = headwork.solve(parse_sheet(grouped, "grouped.toml"))
    assert rows(working["K", 1]) == [[1, 2], [3, 4]]
    with pytest.raises(KeyError, match="is not worked out here"):
        working["K", 2]


def test_a_step_that_needs_an_untold_size_is_refused() -> None:
    text = """
    formula = "multi_head"
    heads = 1
    [given]
    scores = [[[1, 2], [3, 4]]]
    [[part]]
    find = ["scaled"]
    """
    with pytest.raises(HeadworkError, match="d_k is not known, so nothing can be divided by √d_k; add it under"):
        headwork.solve(parse_sheet(text, "untold.toml"))
    told = text.replace("[given]", "[sizes]\n    d_k = 4\n    [given]")
    working = headwork.solve(parse_sheet(told, "told.toml"))
    assert rows(working["scaled", 1]) == [[Fraction(1, 2), 1], [Fraction(3, 2), 2]]


def test_a_row_that_is_asked_for_brings_the_rows_and_matrices_it_rests_on() -> None:
    """weights[2] rests on row 2 of the scores, row 2 of Q and all of K; V is not needed."""
    text = """
    formula = "single_head"
    [given]
    X = [[1, 2], [3, 4]]
    W_Q = [[1, 0], [0, 1]]
    W_K = [[0, 1], [1, 0]]
    W_V = [[1, 0], [0, 1]]
    [[part]]
    label = "a"
    find = ["weights[2]"]
    [[part]]
    label = "b"
    find = ["weights"]
    """
    first, second = headwork.solve(parse_sheet(text, "rows.toml")).problems[0].parts
    assert [str(line.name) for line in first.lines if isinstance(line, Equation)] == [
        "Q[2]",
        "K",
        "scores[2]",
        "scaled[2]",
        "weights[2]",
    ]
    assert [str(line.name) for line in second.lines if isinstance(line, Equation)] == [
        "Q",
        "scores",
        "scaled",
        "weights",
    ]


@pytest.mark.parametrize(
    ("asked", "message"),
    [({"places": 10**6}, "50"), ({"places": -1}, "50"), ({"places": True}, "places"), ({"softmax": "x"}, "softmax")],
)
def test_what_replaces_a_sheets_key_is_checked_as_the_key_is(asked: dict[str, Any], message: str) -> None:
    """A million places were worked at for hours, and a softmax of another name was the whole one."""
    with pytest.raises(HeadworkError, match=message):
        headwork.solve("two-heads", **asked)
