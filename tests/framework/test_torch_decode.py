"""Decoding from a cache with tensors: what the arrays' function gives, compiled too; a gradient is refused."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import headwork.engine as arrays
from headwork.errors import HeadworkError
from headwork.torch import PagedCache, attention_decode, quantize, report
from headwork.torch.decode import in_one_piece
from headwork.torch.decode_operator import Given, How, operator

# torch's compiler uses what torch deprecates.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

MADE = torch.Generator().manual_seed(0)
EIGHT = {torch.int8: np.int8, torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn, torch.float8_e5m2: ml_dtypes.float8_e5m2}
STORED = [torch.float32, torch.float64, torch.float16, torch.bfloat16, *EIGHT]


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=MADE)


def as_array(x: torch.Tensor | None) -> Any:
    if x is None:
        return None
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return x.view(torch.int8).numpy().view(EIGHT[x.dtype]) if x.dtype in EIGHT else x.numpy()


def stored(dtype: torch.dtype) -> tuple[Any, dict[str, Any]]:
    """Queries and two pools of 7 blocks of 5, and what says where two sequences lie."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    q, k, v = drawn(2, 4, 2, 24).to(wide), drawn(7, 2, 5, 24).to(wide), drawn(7, 2, 5, 32).to(wide)
    said: dict[str, Any] = {"block_table": torch.tensor([[6, 1, 3], [0, 1, -9]], dtype=torch.int32)}
    said["lengths"] = torch.tensor([13, 8])
    if dtype in EIGHT:
        (k, said["k_scales"]), (v, said["v_scales"]) = quantize(k, dtype), quantize(v, dtype)
    return [q, k.to(dtype), v.to(dtype)], said


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_tensors_give_what_arrays_give(dtype: torch.dtype) -> None:
    tensors, said = stored(dtype)
    options: dict[str, Any] = {"window": (6, 0), "softcap": 5.0, "sinks": drawn(4), "alibi": drawn(4).abs()}
    q, k, v = tensors
    with report() as ran:
        out, lse = attention_decode(q, k, v, **said, **options, return_lse=True)
    assert ran.on_kernel() == 1
    given = {name: as_array(x) if isinstance(x, torch.Tensor) else x for name, x in {**said, **options}.items()}
    same, same_lse = arrays.attention_decode(*(as_array(x) for x in tensors), **given, return_lse=True)
    assert (out.numpy() == same).all()
    assert (lse.numpy() == same_lse).all()


@pytest.mark.parametrize("dtype", EIGHT, ids=str)
def test_quantized_tensors_are_quantized_arrays(dtype: Any) -> None:
    x = drawn(3, 5, 33)
    x[0, 0] = 0
    x[1, 1, 1] = torch.inf
    numbers, scales = quantize(x, dtype)
    same, same_scales = arrays.quantize(x.numpy(), EIGHT[dtype])
    assert (as_array(numbers).view(np.int8) == same.view(np.int8)).all()
    assert np.array_equal(scales.numpy(), same_scales, equal_nan=True)


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_what_the_kernel_cannot_read_is_gathered_and_agrees(dtype: torch.dtype) -> None:
    tensors, said = stored(dtype)
    out, lse = attention_decode(*tensors, **said, return_lse=True)
    lengths = said["lengths"]
    columns = [torch.zeros(2).long(), torch.full((2,), 2), torch.zeros(2).long(), lengths, lengths - 2]
    spans = torch.stack([*columns, torch.zeros(2).long()], -1)
    scales = said.get("k_scales"), said.get("v_scales")
    given = Given(tensors[1], tensors[2], *scales, said["block_table"].long(), spans, None, None, None)
    other, other_lse = in_one_piece(tensors[0], given, How(False, -1, 0, 24**-0.5, 0.0, True))
    assert torch.allclose(out, other, atol=1e-5)
    assert torch.allclose(lse, other_lse, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8, torch.float8_e4m3fn], ids=str)
def test_it_compiles_without_a_break(dtype: torch.dtype) -> None:
    tensors, said = stored(dtype)

    def step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lengths: torch.Tensor) -> Any:
        out: Any = attention_decode(q * 2, k, v, **{**said, "lengths": lengths}, window=(6, 0))
        return out + 1

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    given = (*tensors, said["lengths"])
    assert torch.equal(compiled(*given), step(*given))
    with pytest.raises(ValueError, match="block table leads out of the blocks"):
        compiled(*tensors, torch.tensor([13, 13]))  # the table's −9 would be read: the kernel's own bounds hold


def test_the_operator_is_what_torch_expects_of_one() -> None:
    tensors, said = stored(torch.float32)
    spans = torch.tensor([[0, 2, 0, 13, 11, 0], [0, 2, 0, 8, 6, 0]])
    given = (tensors[1], tensors[2], None, None, said["block_table"].long(), spans, None, None, None)
    torch.library.opcheck(operator, (tensors[0], *given, False, -1, 0, 0.2, 0.0, True))


def test_under_vmap() -> None:
    tensors, said = stored(torch.float32)
    many = drawn(3, 2, 4, 2, 24)
    found = torch.vmap(lambda q: attention_decode(q, *tensors[1:], **said))(many)
    for one, q in zip(found, many, strict=True):
        assert torch.equal(one, attention_decode(q, *tensors[1:], **said))


def test_a_gradient_is_refused_by_name() -> None:
    tensors, said = stored(torch.float32)
    tensors[0].requires_grad_()
    with pytest.raises(HeadworkError, match=r"attention_decode has no gradient.*torch\.no_grad\(\).*headwork\.torch\."):
        attention_decode(*tensors, **said)
    with torch.no_grad():
        attention_decode(*tensors, **said)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_table": torch.tensor([[0, 1, 7], [1, 2, 3]])}, "block_table[0, 2] is 7, but there are 7 blocks"),
        ({"block_table": torch.tensor([[0.0, 1, 2], [1, 2, 3]])}, "block_table holds torch.float32"),
        ({"block_table": torch.tensor([[0, 1, 2]])}, "block_table is (1, 3), but q has a batch of 2"),
        ({"lengths": torch.tensor([13, 16])}, "lengths runs from 13 to 16: give numbers from 0 to 15"),
        ({"lengths": None}, "block_table needs lengths"),
        ({"k_scales": None}, "k holds int8: give k_scales"),
        ({"v_scales": torch.ones(7, 2, 4)}, "v_scales are (7, 2, 4), but v has (7, 2, 5) rows"),
        ({"v_scales": torch.ones(7, 2, 5, dtype=torch.int32)}, "v_scales holds torch.int32"),
        ({"query": torch.ones(2, 4, 2, 24, dtype=torch.float64)}, "query, key, value hold torch.float64, torch.int8"),
        ({"query": torch.ones(2, 4, 24)}, "Decoding takes four axes"),
        ({"query": np.ones((2, 4, 2, 24))}, "NumPy arrays go to headwork.attention"),
        ({"causal": "bottom_right"}, "causal is 'bottom_right'"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_every_mistake_is_named(change: dict[str, Any], message: str) -> None:
    (query, key, value), said = stored(torch.int8)
    given: dict[str, Any] = {"query": query, "key": key, "value": value, **said}
    attention_decode(**given)
    with pytest.raises(HeadworkError) as error:
        attention_decode(**{**given, **change})
    assert message in str(error.value)


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_a_paged_cache_of_tensors(dtype: torch.dtype) -> None:
    cache = PagedCache(2, 16, dtype=dtype, block_size=3, blocks=1)
    mine = arrays.PagedCache(2, 16, dtype=as_array(torch.zeros(1, dtype=dtype)).dtype, block_size=3, blocks=1)
    a, b = cache.begin(), cache.begin()
    assert (a, b) == (mine.begin(), mine.begin())
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    for count in (4, 1, 1):
        k, v = drawn(2, 2, count, 16).to(wide), drawn(2, 2, count, 16).to(wide).requires_grad_()
        cache.append([a, b], k, v)
        mine.append([a, b], k.numpy(), v.detach().numpy())
    assert cache.fork(a) == mine.fork(a)
    q = drawn(2, 4, 2, 16).to(wide)
    assert (cache.attention([b, 2], q).numpy() == mine.attention([b, 2], q.numpy())).all()
    with pytest.raises(HeadworkError, match=r"dtype is torch\.int32"):
        PagedCache(2, 16, dtype=torch.int32)
    with pytest.raises(HeadworkError, match="k holds ndarray"):
        cache.append([a], np.ones((1, 2, 1, 16)), np.ones((1, 2, 1, 16)))
