"""The softmax over blocks of keys: the same as over all of them, in closed form, for every cut."""

from collections.abc import Iterator
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwork
from headwork.claims import blockwise_claim, prove_softmax_gradient
from headwork.errors import HeadworkError
from headwork.formulas import blockwise, cut, scaled_dot_product
from headwork.formulas import given as given_step
from headwork.graph import KeyBlock, Step, in_order, rewrite
from headwork.marking.mark import mark
from headwork.ops import Exp
from headwork.proofs import prove
from headwork.readings.exact import HIDDEN, Entry, Matrix, exact
from headwork.sheets.load import parse_sheet
from headwork.sheets.ready import Ready
from headwork.sheets.save import sheet_toml
from headwork.working import Argument, Counts


def compositions(keys: int) -> Iterator[tuple[int, ...]]:
    """Every way of cutting so many keys into blocks."""
    if not keys:
        yield ()
    for first in range(1, keys + 1):
        yield from ((first, *rest) for rest in compositions(keys - first))


def drawn(rows: int, columns: int, generator: Random) -> Matrix:
    return tuple(tuple(Fraction(generator.randint(-2, 2)) for _ in range(columns)) for _ in range(rows))


@pytest.mark.parametrize("keys", range(1, 9))
def test_every_cut_gives_the_whole(keys: int) -> None:
    """Closed forms are compared, not digits; 255 cuts in all."""
    generator = Random(keys)
    shape = {"Q": (2, 2), "K": (keys, 2), "V": (keys, 1)}
    steps = {role: given_step(role, size) for role, size in shape.items()}
    handed = {steps[role]: drawn(*size, generator) for role, size in shape.items()}
    whole = scaled_dot_product(*steps.values())
    expected = exact(whole, handed)[whole]
    cuts = list(compositions(keys))
    assert len(cuts) == 2 ** (keys - 1)
    for blocks in cuts:
        last = blockwise(*steps.values(), blocks=blocks)
        assert exact(last, handed)[last] == expected, blocks


@given(st.integers(1, 5), st.data())
@settings(max_examples=30)
def test_masks_are_cut_with_the_keys(keys: int, data: st.DataObject) -> None:
    """A block, or a whole row, in which nothing may be read included."""
    blocks = data.draw(st.sampled_from(list(compositions(keys))))
    entries: list[Entry] = [Fraction(0), HIDDEN, Fraction(1, 2)]
    row = st.lists(st.sampled_from(entries), min_size=keys, max_size=keys)
    mask = data.draw(st.lists(row, min_size=2, max_size=2))
    text = f"""
formula = "{{}}"
mask = {[["-inf" if x is HIDDEN else str(x) for x in line] for line in mask]}
{{}}
[given]
Q = [[1, 2], [0, -1]]
K = {[[i, 1 - i] for i in range(keys)]}
V = {[[i * i] for i in range(keys)]}
[[part]]
find = ["head_output"]
"""
    in_blocks = headwork.solve(parse_sheet(text.format("blockwise", f"blocks = {list(blocks)}"), "blocks.toml"))
    at_once = headwork.solve(parse_sheet(text.format("scaled_dot_product", ""), "whole.toml"))
    assert in_blocks["head_output"].value == at_once["head_output"].value


@pytest.mark.parametrize("mask", ["none", "causal", '[[0, "-inf", 1], ["-inf", "-inf", 0]]'])
def test_gradients_of_every_cut_are_those_of_the_whole(mask: str) -> None:
    """Nothing goes back through the running maxima, and nothing is missing: closed forms are equal."""
    told = mask if mask.startswith("[") else f'"{mask}"'
    text = f"""
formula = "{{}}"
mask = {told}
{{}}
[given]
Q = [[1, 2], [0, -1]]
K = [[1, 0], [2, 1], [-1, 1]]
V = [[1, 0], [0, 2], [3, -1]]
[[part]]
kind = "gradient"
given = {{{{ d_output = [[1, -2], [0, 3]] }}}}
find = ["Q", "K", "V"]
"""
    sheets = [text.format("scaled_dot_product", key) for key in ("", 'softmax = "safe-steps"')]
    sheets += [text.format("blockwise", f"blocks = {list(blocks)}") for blocks in compositions(3)]
    workings = [headwork.solve(parse_sheet(sheet, "drawn.toml")) for sheet in sheets]
    for role in ("d_Q", "d_K", "d_V"):
        whole, *others = (working[role].value for working in workings)
        assert all(other == whole for other in others), role
    page = repr(workings[3])
    lines = ["head = running_2/sums_2", "drunning_2 = dhead/sums_2", "dV_1 = ", "dQ = dQ_scores,1 + dQ_scores,2"]
    places = [page.index(line) for line in lines]
    assert places == sorted(places), "there first, then back"


SHEET = """
title = "Two blocks"
formula = "blockwise"
blocks = 2
scale = "none"
places = 3
[given]
Q = [[1, 0], [0, 2]]
K = [[1, 1], [0, 1], [2, 0], [1, 0]]
V = [[1, 0], [0, 1], [2, 2], [1, 1]]
[[part]]
label = "a"
text = "Work the first block."
find = ["maxima_1", "sums_1", "running_1"]
[[part]]
label = "b"
text = "Work the second, and correct the first."
find = ["correction_2", "sums_2", "running_2"]
[[part]]
label = "c"
text = "Find the output."
find = ["head_output"]
[[part]]
label = "d"
text = "What does it cost?"
kind = "count"
[[part]]
label = "e"
text = "Prove it."
kind = "prove"
find = ["blockwise", "gradient"]
[[part]]
label = "f"
text = "Draw it."
kind = "diagram"
"""


def test_a_sheet_is_worked_block_after_block() -> None:
    working = headwork.solve(parse_sheet(SHEET, "blocks.toml"))
    page = repr(working)
    lines = ["K_1 = rows 1–2 of K", "sums_1 = row sums of exponentials_1", "K_2 = rows 3–4 of K"]
    lines += ["correction_2 = exp(drop_2)", "sums_2 = keptsums_2 + blocksums_2", "head = running_2/sums_2"]
    places = [page.index(line) for line in lines]
    assert places == sorted(places)
    assert "block 1\n" in page
    assert working["maxima", 2].value == ((Fraction(2),), (Fraction(2),))
    assert isinstance(working["maxima", 2].head, KeyBlock)
    counts = [line for line in working.problems[0].parts[3].lines if isinstance(line, Counts)]
    assert [line.name for line in counts] == ["total", "total at once"]
    assert (counts[0].total.exponentials, counts[1].total.exponentials) == (10, 8)
    assert "never more than 4 at a time, here 8" in page
    proofs = [line.proof.holds for line in working.problems[0].parts[4].lines if isinstance(line, Argument)]
    assert proofs == [True, True]


def test_it_is_saved_marked_and_followed_through() -> None:
    sheet = parse_sheet(SHEET, "blocks.toml")
    assert parse_sheet(sheet_toml(sheet), "again.toml").problems == sheet.problems
    answers = {"a": {"sums_1": [["1.5"], ["2"]]}, "b": {"sums_2": [["1.920"], ["2.271"]]}}
    marks = mark(sheet, answers)
    by_name = {answer.name: answer.verdict for part in marks.parts[:2] for answer in part.answers}
    assert (by_name["sums_1"], by_name["sums_2"]) == ("wrong", "follows")


def test_the_proof_fails_where_the_correction_is_forgotten() -> None:
    whole, blocks = blockwise_claim(1, 3)
    assert prove(whole, blocks)

    def uncorrected(step: Step) -> Step | None:
        return Step(Exp(), (step.inputs[0].inputs[1],), step.role, step.head) if step.role == "correction" else None

    assert not prove(whole, rewrite(blocks, uncorrected))
    assert prove_softmax_gradient(1, 3)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("blocks = 2", "blocks = 5", "4 keys cannot be cut into 5 blocks"),
        ("blocks = 2", "blocks = [1, 2]", "do not make 4"),
        ('formula = "blockwise"', 'formula = "scaled_dot_product"', "takes all keys at once"),
    ],
)
def test_what_cannot_be_cut_is_said(old: str, new: str, message: str) -> None:
    with pytest.raises(HeadworkError, match=message):
        Ready(parse_sheet(SHEET.replace(old, new), "blocks.toml").problems[0])


def test_cuts_are_as_equal_as_they_can_be() -> None:
    assert [cut(7, n) for n in (1, 2, 3)] == [(7,), (4, 3), (3, 2, 2)]
    with pytest.raises(HeadworkError, match="at least one block"):
        blockwise(*(given_step(role, (1, 1)) for role in "QKV"), blocks=())
    last = blockwise(*(given_step(role, (2, 1)) for role in "QKV"), blocks=(1, 1))
    assert {step.head for step in in_order(last) if step.role == "scores"} == {0, 1}
