"""The short way of a call gives what the long way gives, bit for bit, and leaves to it what it cannot tell."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headwork.engine import BlockMask, attention
from headwork.engine.backend import kernel
from headwork.errors import HeadworkError

HERE = sys.modules["headwork.engine.attention"]
pytestmark = pytest.mark.skipif(kernel is None, reason="there is no kernel here: see CONTRIBUTING.md to build one")

RANDOM = np.random.default_rng(18)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"scale": 0.3},
    {"softcap": 2.0},
    {"causal": True},
    {"causal": "top_left"},
    {"causal": "bottom_right"},
    {"causal": True, "offset": 2},
    {"window": (2, 1)},
    {"window": (-1, 3), "offset": -1},
    {"window": (2, 4), "causal": "bottom_right"},
    {"return_lse": True},
    {"return_weights": True},
    {"return_weights": True, "return_lse": True, "causal": "bottom_right", "scale": 0.3},
    {"threads": 1},
    {"mask": RANDOM.random((6, 1)) < 0.7},
    {"mask": RANDOM.random((2, 1, 6, 6)) < 0.7, "scale": 2.0},
    {"mask": RANDOM.standard_normal((4, 6, 6)).astype(np.float32), "return_lse": True},
    {"mask": np.array(True)},
    {"lengths": 4},
    {"starts": 2},
    {"lengths": 5, "starts": 1, "causal": "bottom_right"},
    {"sinks": RANDOM.standard_normal(1).astype(np.float32)},
    {"sinks": np.array(0.5)},
    {"alibi": np.array([0.25])},
    {"alibi": np.array([0.5], np.float32), "offset": 2},
    {"relative": RANDOM.standard_normal((1, 5)).astype(np.float32), "causal": True},
    {"relative": RANDOM.standard_normal(7).astype(np.float16), "offset": -1},
    {"dropout": 0.5, "seed": 7},
    {"dropout": 0.25, "seed": -(2**70) + 3},
    {"seed": 7},
    {"blocks": BlockMask(RANDOM.random((3, 2)) < 0.6, 2, 3)},
]
BATCHED: list[dict[str, Any]] = [
    {"lengths": [3, 6]},
    {"lengths": np.array([0, 5])},
    {"lengths": np.array([2, 4], np.uint8), "causal": "bottom_right"},
    {"starts": np.array([6, 1], np.int32), "window": (2, 2)},
    {"offset": np.array([-1, 3]), "causal": True},
    {"offset": [1, 2], "window": (1, 0), "lengths": [4, 5]},
    {"sinks": RANDOM.standard_normal((2, 4)).astype(np.float32)},
    {"alibi": RANDOM.random((2, 1)), "starts": [0, 3]},
    {"relative": RANDOM.standard_normal((2, 4, 3)).astype(np.float32), "return_lse": True},
    {"lengths": [3, 0], "return_weights": True},
    {"blocks": BlockMask(RANDOM.random((2, 1, 2, 3)) < 0.6, 3, 2), "mask": RANDOM.random((6, 6)) < 0.9},
]


Array = np.ndarray[Any, Any]


def shaped(rank: int, layout: str, dtype: str) -> tuple[Array, Array, Array]:
    shape = (2, 4, 6, 16)[-rank:]
    arrays = [RANDOM.standard_normal(shape).astype(dtype) for _ in range(3)]
    q, k, v = (np.swapaxes(a, -2, -3).copy() if layout == "bshd" and rank > 2 else a for a in arrays)
    return q, k, v


def named(options: dict[str, Any]) -> str:
    return ",".join(options) or "nothing"


@pytest.mark.parametrize("options", OPTIONS, ids=named)
@pytest.mark.parametrize(("rank", "layout"), [(2, "bhsd"), (3, "bhsd"), (4, "bhsd"), (3, "bshd"), (4, "bshd")])
def test_both_ways_agree(options: dict[str, Any], rank: int, layout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if np.ndim(options.get("mask", 0)) <= rank:
        compare(*shaped(rank, layout, "float32"), monkeypatch, layout=layout, **options)


@pytest.mark.parametrize("options", BATCHED, ids=named)
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_both_ways_agree_item_by_item(
    options: dict[str, Any], layout: Any, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(*shaped(4, layout, dtype), monkeypatch, layout=layout, **options)


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_both_ways_agree_where_values_are_wider(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = shaped(rank, "bhsd", "float32")
    compare(q, k, np.concatenate([v, v[..., :3]], -1), monkeypatch, return_lse=True)


def compare(q: Any, k: Any, v: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    taken = []
    native = kernel
    assert native is not None

    def seen(*given: Any) -> Any:
        taken.append(native.short_call(*given))
        return taken[-1]

    monkeypatch.setattr(HERE, "kernel", SimpleNamespace(short_call=seen, forward=native.forward))
    short = attention(q, k, v, **options)
    assert taken[0] is not None, "the long way was taken"
    monkeypatch.setattr(HERE, "kernel", SimpleNamespace(short_call=lambda *_: None, forward=native.forward))
    long = attention(q, k, v, **options)
    for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (short, long)), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)


def test_the_result_goes_where_it_is_asked_for() -> None:
    q, k, v = shaped(4, "bhsd", "float64")
    out = np.full(q.shape, np.nan)
    assert attention(q, k, v, out=out) is out
    np.testing.assert_array_equal(out, attention(q, k, v))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scale": float("nan")}, "scale is nan"),
        ({"scale": "1"}, "scale is '1'"),
        ({"softcap": 0.0}, "softcap is 0.0"),
        ({"window": (-2, 0)}, "window is"),
        ({"window": (1, 2, 3)}, "window is"),
        ({"offset": 1}, "offset places the tokens"),
        ({"causal": "top_left", "offset": 1}, "both place the tokens"),
        ({"causal": "up"}, "causal is 'up'"),
        ({"threads": 0}, "threads is 0"),
        ({"layout": "bsdh"}, "layout is 'bsdh'"),
        ({"mask": np.ones((5, 6), bool)}, "does not broadcast"),
        ({"mask": np.ones((6, 6), int)}, "mask holds int64"),
        ({"lengths": [3, 7]}, "lengths runs from 3 to 7"),
        ({"lengths": np.array([3, 2**64 - 1], np.uint64)}, "farther than any key"),
        ({"lengths": 10**30}, "farther than any key"),
        ({"lengths": [1.5, 2.0]}, "lengths holds float64"),
        ({"offset": 10**30, "causal": True}, "farther than any key"),
        ({"starts": -1}, "starts runs from -1"),
        ({"starts": [1, 2, 3]}, "starts is"),
        ({"sinks": np.ones(3)}, "sinks is"),
        ({"sinks": np.ones(4, int)}, "sinks holds int64"),
        ({"alibi": np.ones((1, 1, 4))}, "alibi is"),
        ({"relative": np.ones((4, 4))}, "relative is"),
        ({"dropout": 0.5}, "dropout needs a seed"),
        ({"dropout": 1.5, "seed": 1}, "dropout is 1.5"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"blocks": np.ones((2, 2), bool)}, "blocks is a ndarray"),
        ({"blocks": BlockMask(np.ones((2, 2), bool), 2, 3)}, "blocks.visible is"),
        ({"blocks": BlockMask(np.ones((3, 2)), 2, 3)}, "blocks.visible holds float64"),
        ({"out": np.empty((2, 4, 6, 15), np.float32)}, "out is float32"),
    ],
    ids=lambda given: ",".join(given) if isinstance(given, dict) else "",
)
def test_a_mistake_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(HeadworkError, match=said):
        attention(*shaped(4, "bhsd", "float32"), **options)


@pytest.mark.parametrize("name", ["q", "k", "v", "mask"])
def test_an_output_within_an_input_is_refused(name: str) -> None:
    """Also one that runs backwards through it, or through every second row."""
    room = np.zeros((2, 4, 12, 16), np.float32)
    given: dict[str, Any] = dict(zip("qkv", shaped(4, "bhsd", "float32"), strict=True))
    given[name] = room[:, :, :6] if name != "mask" else room[:, :, :6, :6]
    with pytest.raises(HeadworkError, match=f"out shares memory with {name}"):
        attention(**given, out=room[:, :, 5::-1])
    half = attention(**given, out=room[:, :, 6:])  # beside it, and nothing shared
    np.testing.assert_array_equal(half, attention(**given))


def test_whole_numbers_of_other_kinds_take_the_long_way() -> None:
    q, k, v = shaped(4, "bhsd", "float32")
    expected = attention(q, k, v, window=(2, 1), scale=1.0, threads=1)
    given = attention(q, k, v, window=(np.int64(2), np.int64(1)), scale=np.float32(1), threads=np.int64(1))  # type: ignore[call-overload]  # what NumPy's users hand in
    np.testing.assert_array_equal(given, expected)
