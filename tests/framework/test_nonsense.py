"""Calls that make no sense: an error that names what was given, or the right number; never a crash or a guess."""

from typing import Any

import numpy as np
import pytest
import torch
from nonsense_calls import ENTRIES, drawn, judged

import headwork
import headwork.torch as in_torch
from headwork.engine import BlockMask
from headwork.errors import HeadworkError

pytestmark = pytest.mark.filterwarnings("ignore")  # torch warns of half of these

X = np.ones((2, 3, 4), np.float32)
T = torch.ones(2, 3, 4)
BOTH: list[tuple[Any, Any]] = [(headwork.attention, X), (in_torch.attention, T)]


@pytest.mark.parametrize("first", range(0, 90, 9))
def test_drawn_nonsense(first: int) -> None:
    """One of every entry; `bench/nonsense_calls.py` draws a thousand."""
    assert {drawn(number, 1)[0] for number in range(first, first + 9)} == set(ENTRIES)
    assert [judged(number, 1) for number in range(first, first + 9)] == [""] * 9


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"causal": 1}, "causal is 1. Give False, True"),
        ({"causal": np.array([True, False])}, "causal is array"),
        ({"layout": np.array(["bhsd", "x"])}, "layout is array"),
        ({"scale": 10**400}, "scale is 1000"),
        ({"softcap": 10**400}, "softcap is 1000"),
        ({"dropout": np.array([0.5, 0.5])}, "dropout is array"),
        ({"window": {1, 2}}, "window is {1, 2}"),
    ],
)
def test_options_of_arrays_and_tensors_alike(options: dict[str, Any], said: str) -> None:
    for call, x in BOTH:
        with pytest.raises(HeadworkError) as caught:
            call(x, x, x, **options)
        assert str(caught.value).startswith(said)
        assert len(str(caught.value)) < 300


def test_true_of_numpy_is_true() -> None:
    """As many tokens as keys or not: neither is taken for the other."""
    for call, x in BOTH:
        assert (call(x, x, x, causal=np.True_) == call(x, x, x, causal=True)).all()
        with pytest.raises(HeadworkError, match="ambiguous"):
            call(x[:, :2], x, x, causal=np.True_)


def test_switches_and_tables_of_a_cache() -> None:
    both: list[tuple[Any, Any]] = [(headwork.attention_decode, X[None]), (in_torch.attention_decode, T[None])]
    for call, x in both:
        assert (call(x, x, x, causal=np.True_) == call(x, x, x)).all()
        with pytest.raises(HeadworkError, match="causal is 1"):
            call(x, x, x, causal=1)
    odd: Any = "a"
    with pytest.raises(HeadworkError, match="block_table is no tensor"):
        in_torch.attention_decode(T[None], T[None], T[None], block_table=odd, lengths=[1])
    with pytest.raises(HeadworkError, match="k_scales holds str"):
        in_torch.attention_decode(T[None], T[None].to(torch.int8), T[None], k_scales=odd)


@pytest.mark.parametrize("given", ["a", b"a", {}, None, [[1, 2], [3]], np.array([1], object)])
def test_numbers_of_tensors(given: Any) -> None:
    with pytest.raises(HeadworkError, match="offsets_q is no tensor"):
        in_torch.attention_varlen(T, T, T, given, torch.tensor([0, 2]))
    if given is not None:
        with pytest.raises(HeadworkError, match="lengths is no tensor"):
            in_torch.attention(T, T, T, lengths=given)


def test_tensors_without_rows() -> None:
    nested = torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(2, 4)])
    with pytest.raises(HeadworkError, match="mask holds nested tensors"):
        in_torch.attention(T, T, T, mask=nested)
    with pytest.raises(HeadworkError, match=r"key is laid out as torch.sparse_coo: give key.to_dense\(\)"):
        in_torch.attention(T, T.to_sparse(), T)
    with pytest.raises(HeadworkError, match="k is no array: "):
        headwork.attention(X, torch.empty(2, 3, 4, device="meta"), X)


def test_tensors_in_two_places() -> None:
    """torch's own words for it come from an operation inside, and name no argument."""
    table = torch.ones(1, 1, dtype=torch.bool)
    elsewhere: dict[str, Any] = {"mask": torch.ones(3, 3), "sinks": torch.ones(2), "blocks": BlockMask(table, 4, 4)}
    for name, given in elsewhere.items():
        meta: Any = BlockMask(table.to("meta"), 4, 4) if name == "blocks" else given.to("meta")
        with pytest.raises(HeadworkError, match=rf"{name}.* is on meta and query on cpu"):
            in_torch.attention(T, T, T, **{name: meta})
    with pytest.raises(HeadworkError, match="value is on cpu and query on meta"):
        in_torch.attention(T.to("meta"), T.to("meta"), T)
    for name in ("lengths", "starts", "offset", "seed"):
        numbers: dict[str, Any] = {name: torch.tensor(1, device="meta"), "causal": True, "dropout": 0.5}
        with pytest.raises(HeadworkError, match=f"{name} is on meta and query on cpu"):
            in_torch.attention(T, T, T, **numbers)
    ends = torch.tensor([0, 2])
    with pytest.raises(HeadworkError, match="offsets_k is on meta and query on cpu"):
        in_torch.attention_varlen(T, T, T, ends, ends.to("meta"))
    cached: dict[str, Any] = {"lengths": [3], "block_table": torch.tensor([[0]]), "k_scales": torch.ones(1, 2, 3)}
    kept = T[None].to(torch.int8)
    for name in ("block_table", "k_scales"):
        with pytest.raises(HeadworkError, match=f"{name} is on meta and query on cpu"):
            in_torch.attention_decode(T[None], kept, T[None], **cached | {name: cached[name].to("meta")})
    with pytest.raises(HeadworkError, match="key is laid out as"):
        in_torch.attention_decode(T[None], T[None].to_sparse(), T[None])
    with pytest.raises(HeadworkError, match=r"blocks.visible is laid out as torch.sparse_coo"):
        in_torch.attention(T, T, T, blocks=BlockMask(table.to_sparse(), 4, 4))


def test_torchs_switches_are_booleans_as_in_torch() -> None:
    x = T[None]
    for options in ({"is_causal": float("nan")}, {"enable_gqa": int}):
        with pytest.raises(TypeError, match="must be bool"):
            in_torch.scaled_dot_product_attention(x, x, x, **options)


def test_jax_takes_booleans_and_windows_in_order() -> None:
    from headwork.jax import dot_product_attention

    x = X[None]
    with pytest.raises(HeadworkError, match="is_causal is 'a'"):
        dot_product_attention(x, x, x, is_causal="a")  # type: ignore[arg-type]
    with pytest.raises(HeadworkError, match=r"window is \{1, 2\}"):
        dot_product_attention(x, x, x, local_window_size={1, 2})  # type: ignore[arg-type]
