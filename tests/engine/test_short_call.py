"""The short way of a call gives what the long way gives, bit for bit, and leaves to it what it cannot tell."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headwork.engine import attention
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
    {"threads": 1},
    {"mask": RANDOM.random((6, 1)) < 0.7},
    {"mask": RANDOM.random((2, 1, 6, 6)) < 0.7, "scale": 2.0},
    {"mask": RANDOM.standard_normal((4, 6, 6)).astype(np.float32), "return_lse": True},
    {"mask": np.array(True)},
]


def shaped(rank: int, layout: str, dtype: str) -> tuple[np.ndarray[Any, Any], ...]:
    shape = (2, 4, 6, 16)[-rank:]
    arrays = [RANDOM.standard_normal(shape).astype(dtype) for _ in range(3)]
    return tuple(np.swapaxes(a, -2, -3).copy() if layout == "bshd" and rank > 2 else a for a in arrays)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(options) or "nothing")
@pytest.mark.parametrize(("rank", "layout"), [(2, "bhsd"), (3, "bhsd"), (4, "bhsd"), (3, "bshd"), (4, "bshd")])
def test_both_ways_agree(options: dict[str, Any], rank: int, layout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if np.ndim(options.get("mask", 0)) > rank:
        return
    q, k, v = shaped(rank, layout, "float32")
    taken = []
    native = kernel
    assert native is not None

    def seen(*given: Any) -> Any:
        taken.append(native.short_call(*given))
        return taken[-1]

    monkeypatch.setattr(HERE, "kernel", SimpleNamespace(short_call=seen, forward=native.forward))
    short = attention(q, k, v, layout=layout, **options)
    assert taken[0] is not None, "the long way was taken"
    monkeypatch.setattr(HERE, "kernel", SimpleNamespace(short_call=lambda *_: None, forward=native.forward))
    long = attention(q, k, v, layout=layout, **options)
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
