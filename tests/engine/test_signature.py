"""What may be asked stands in several places, the signature, the types and the short way: none may forget an option."""

import inspect
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headwork.engine import BlockMask, MultiHead, attention, attention_decode, attention_varlen
from headwork.engine.arguments import Options
from headwork.engine.decode import DecodeOptions
from headwork.engine.layer import CallOptions
from headwork.engine.varlen import PackedOptions

X = np.ones((2, 4, 8), np.float32)
# For every option a value that asks for something.
ASKED: dict[str, Any] = {
    "mask": np.ones((4, 4), bool),
    "blocks": BlockMask(np.ones((2, 1), bool), 2, 4),
    "causal": "top_left",
    "offset": 1,
    "window": (1, 1),
    "scale": 2.0,
    "softcap": 3.0,
    "lengths": 2,
    "starts": 1,
    "sinks": np.ones(2),
    "alibi": np.ones(2),
    "relative": np.ones((2, 3)),
    "dropout": 0.5,
    "seed": 1,
    "layout": "bshd",
    "return_lse": True,
    "return_weights": True,
    "threads": 1,
    "out": np.empty_like(X),
}


def options_of(function: Any) -> dict[str, inspect.Parameter]:
    found = inspect.signature(function).parameters
    return {name: p for name, p in found.items() if p.kind is p.KEYWORD_ONLY}


@pytest.mark.parametrize("name", options_of(attention))
def test_no_option_is_dropped_on_the_short_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way is told of an option, or is not taken: the kernel's other entry follows."""
    asked = {name: ASKED[name]}
    more: dict[str, dict[str, Any]] = {"offset": {"window": (1, 1)}, "dropout": {"seed": 1}}
    asked |= more.get(name, {})
    taken: list[tuple[Any, ...]] = []
    fake = SimpleNamespace(short_call=lambda *told: taken.append(told), forward=lambda *_, **__: taken.append(()))
    monkeypatch.setattr(sys.modules["headwork.engine.attention"], "kernel", fake)
    attention(X, X, X)
    usual = taken[0]
    assert taken == [usual, ()]  # it says None here, and the long way follows
    taken.clear()
    attention(X, X, X, **asked)
    *short, long = taken
    assert long == ()
    for told in short:
        changed = [here for here, before in zip(told, usual, strict=True) if here is not before]
        assert any(here is ASKED[name] for here in changed)


@pytest.mark.parametrize(
    ("function", "options", "returned"),
    [
        (attention, Options, {"return_lse", "return_weights"}),
        (attention_varlen, PackedOptions, {"return_lse"}),
        (attention_decode, DecodeOptions, {"return_lse"}),
        (MultiHead.__call__, CallOptions, {"return_weights"}),
    ],
)
def test_the_types_know_every_option(function: Any, options: Any, returned: set[str]) -> None:
    assert set(options.__annotations__) | returned == set(options_of(function))
