"""Thirty and more right ones are never held to be wrong; thirty and more wrong ones are never held to be right."""

from typing import Any

import pytest

from headwork.inspecting.inspect import inspect
from tests.inspecting import right_numpy, wrong_numpy

torch = pytest.importorskip("torch")
from tests.inspecting import (  # noqa: E402  # they need torch
    courses,
    right_styles,
    right_torch,
    right_tutorials,
    undecided_torch,
    wrong_styles,
    wrong_torch,
)

RIGHT = [right_numpy, right_torch, right_tutorials, right_styles, undecided_torch, courses]
WRONG = [wrong_numpy, wrong_torch, wrong_styles, courses]


def each(modules: list[Any], names: str) -> list[Any]:
    return [pytest.param(getattr(m, name), id=name) for m in modules for name in getattr(m, names)]


def test_there_are_thirty_of_each_and_25_have_names() -> None:
    assert len(each(RIGHT, "AGREE")) + len(each(RIGHT, "UNDECIDED")) >= 30
    wrong = [tag for module in WRONG for tag in module.WRONG.values()]
    assert len(wrong) >= 30
    assert sum(tag != "" for tag in wrong) / len(wrong) >= 25 / 30


@pytest.mark.parametrize("target", each(RIGHT, "AGREE"))
def test_what_is_right_agrees(target: Any) -> None:
    assert inspect(target).agrees


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("HeadsOfAnyWidth", ""),
        ("KeysBeforeQueries", "holds keys, queries, values, numbered by part, head, column"),
        ("EveryHeadThColumn", "holds queries, keys, values, numbered by part, column, head"),
    ],
)
def test_what_is_right_for_one_order_of_weights_says_for_which(name: str, held: str) -> None:
    """Queries and keys confused in a wide projection look like this too, and other people's weights would not fit."""
    notes = inspect(getattr(right_styles, name)).notes
    assert [held in note for note in notes] == ([True] if held else [])


@pytest.mark.parametrize("target", each(RIGHT, "UNDECIDED"))
def test_what_cannot_be_fitted_is_not_called_wrong(target: Any) -> None:
    found = inspect(target)
    assert found.verdict == "uncallable"
    assert found.why


@pytest.mark.parametrize(
    ("target", "tag"),
    [pytest.param(getattr(m, name), tag, id=name) for m in WRONG for name, tag in m.WRONG.items()],
)
def test_what_is_wrong_never_agrees_and_is_named_where_it_has_a_name(target: Any, tag: str) -> None:
    found = inspect(target)
    assert not found.agrees
    assert found.tags == ((tag,) if tag else ())


@pytest.mark.parametrize("name", wrong_styles.STRANGE)
def test_what_is_wrong_in_no_known_way_is_neither_right_nor_named(name: str) -> None:
    found = inspect(getattr(wrong_styles, name), seconds=300)  # every two mistakes are tried, which takes a while
    assert (found.verdict, found.tags) == ("uncallable" if name == "axis_left_open" else "disagrees", ())


class _Mixed(wrong_torch.Layer):
    """The second half of each head changes places with the next head's on the way out: nobody's mistake."""

    def merge(self, x: Any) -> Any:
        return super().merge(torch.cat((x[..., :3], x.roll(1, dims=1)[..., 3:]), dim=-1))


@pytest.mark.parametrize(
    ("target", "step"),
    [
        (wrong_numpy.times_the_root, "scaled"),
        (wrong_torch.ValuesForKeys, "scores"),
        (wrong_torch.HeadsGroupedInTurn, "scores"),
        (wrong_torch.SoftmaxOverHeads, "weights"),
        (wrong_styles.softmax_twice, "weights"),
        (_Mixed, "joined"),
        (courses.KeysForValues, "V"),
        (courses.scaled_on_one_side, "scaled"),
        (courses.SoftmaxOverHeads, "weights"),
        (courses.root_as_a_whole_number, "scaled"),
        (courses.no_weight_below_nought, "weights"),
        (courses.AddsWhatCameIn, "output"),
    ],
)
def test_the_step_that_is_named_is_the_first_that_differs(target: Any, step: str) -> None:
    found = inspect(target)
    assert (found.verdict, found.first_difference) == ("disagrees", step)
    assert f"The first step that can be told apart is {step}." in str(found)


def test_the_smallest_input_is_shown_of_masks_that_must_be_given_and_keys_that_heads_share() -> None:
    for layer in (courses.SoftmaxDownTheColumns, courses.SoftmaxOverHeads):
        assert "The code returned" in inspect(layer).example


def test_layouts_and_packings_are_told() -> None:
    told = {name: inspect(getattr(right_numpy, name)).convention for name in right_numpy.AGREE[2:6]}
    assert [text.split("numpy, ")[1] for text in told.values()] == [
        "(batch, tokens, heads, d)",
        "(tokens, batch, d)",
        "(tokens, batch, heads, d)",
        "(batch, d, tokens)",
    ]
    assert "width×d_model" in inspect(right_numpy.linear_layers).convention
