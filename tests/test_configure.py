"""Configurations: the sizes are named and typed, and one that a formula does not have is refused."""

from __future__ import annotations

import pydoc
import re
from inspect import signature
from typing import Any, get_type_hints

import pytest

import headwork
from headwork.configure import GivenSizes, configuration


@pytest.mark.parametrize("function", [headwork.shapes, headwork.counts, headwork.moments, headwork.diagram])
def test_help_names_every_size(function: Any) -> None:
    shown = pydoc.plain(pydoc.render_doc(function))
    for name in GivenSizes.__annotations__:
        assert f"{name}: " in shown
    assert "sizes:" not in shown
    assert re.search(r"tokens: '?int \| str'? = 'n'", shown)


def test_the_typed_names_are_those_that_are_taken() -> None:
    taken = {name: hint for name, hint in get_type_hints(configuration).items() if name not in ("formula", "return")}
    assert get_type_hints(GivenSizes) == taken
    assert list(signature(configuration).parameters)[1:] == list(taken)


def test_a_size_that_is_not_there_is_an_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'token'"):
        headwork.shapes(token=3)  # type: ignore[call-arg]  # the mistake is the test


@pytest.mark.parametrize(
    ("formula", "sizes"),
    [
        ("dot_product", {"d_model": 8}),
        ("scaled_dot_product", {"biases": True}),
        ("dot_product", {"kv_heads": 2}),
        ("single_head", {"kv_heads": 2}),
    ],
)
def test_a_size_that_a_formula_does_not_have_is_refused(formula: str, sizes: GivenSizes) -> None:
    (name,) = sizes
    with pytest.raises(headwork.HeadworkError, match=f"{formula} has no {name}; leave {name} = "):
        headwork.shapes(formula, **sizes)


def test_shared_key_heads_need_the_number_of_heads() -> None:
    """One key head for all is a shape in symbols; two are shared out among so many; a drawing shows each."""
    assert "K" in str(headwork.shapes(heads="h", kv_heads=1))
    with pytest.raises(headwork.HeadworkError, match="kv_heads = 2 needs the number of heads"):
        headwork.shapes(heads="h", kv_heads=2)
    with pytest.raises(headwork.HeadworkError, match="are drawn one by one; give the number of heads"):
        headwork.diagram(heads="h", kv_heads=1)


def test_a_thousand_heads_are_refused() -> None:
    for sizes in (GivenSizes(heads=1000, d_model=8000), GivenSizes(heads=8, kv_heads=10**9)):
        with pytest.raises(headwork.HeadworkError, match="up to 256 are gone through one by one"):
            headwork.counts(**sizes)
