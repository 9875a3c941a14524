"""`headwork.torch.attention` with a `BlockMask`: the mask that it stands for, at once, compiled and transformed."""

from typing import Any

import pytest
import torch
from torch.nn.attention import flex_attention as flex

from headwork.engine import BlockMask
from headwork.errors import HeadworkError
from headwork.torch import attention, flex_blocks, report

# torch's compiler uses what torch deprecates, and looks at gradients that nobody asked for.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "sinks and softcap": {"sinks": torch.linspace(-1, 1, 4, dtype=torch.float64), "softcap": 3.0},
    "tokens first": {"layout": "bshd"},
    "mask": {"mask": torch.linspace(-1, 1, 150 * 150, dtype=torch.float64).reshape(150, 150).requires_grad_()},
}


def drawn(name: str) -> tuple[list[torch.Tensor], BlockMask, dict[str, Any]]:
    made = torch.Generator().manual_seed(0)
    shapes = [(2, heads, 150, 8) for heads in (4, 2, 2)]
    arrays = [torch.randn(shape, generator=made, dtype=torch.float64) for shape in shapes]
    if name == "tokens first":
        arrays = [x.transpose(1, 2) for x in arrays]
    visible = torch.rand(4, 3, 5, generator=made) < 0.6
    return [x.requires_grad_() for x in arrays], BlockMask(visible, 64, 32), OPTIONS[name]


def written_out(blocks: BlockMask, mask: torch.Tensor | None) -> torch.Tensor:
    seen: torch.Tensor = blocks.visible.repeat_interleave(64, -2)[..., :150, :].repeat_interleave(32, -1)[..., :150]
    return seen if mask is None else mask.masked_fill(~seen, -torch.inf)


def results(arrays: list[torch.Tensor], leaves: list[torch.Tensor], call: Any, **options: Any) -> list[torch.Tensor]:
    out, lse = call(*arrays, **options, return_lse=True)
    total = out.square().sum() + lse.masked_fill(lse == -torch.inf, 0).sum()
    return [out, lse, *torch.autograd.grad(total, leaves)]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_the_mask_that_it_stands_for(name: str, compiled: bool) -> None:
    arrays, blocks, options = drawn(name)
    mask = options.get("mask")
    leaves = arrays if mask is None else [*arrays, mask]
    call = torch.compile(attention, backend="aot_eager") if compiled else attention
    with report() as ran:
        ours = results(arrays, leaves, call, blocks=blocks, **options)
    assert compiled or {one.way for one in ran.calls} == {"kernel"}
    wanted = results(arrays, leaves, attention, **{**options, "mask": written_out(blocks, mask)})
    torch.testing.assert_close(ours, wanted)


def test_without_gradients_and_under_vmap() -> None:
    arrays, blocks, _ = drawn("plain")
    q, k, v = (x.detach() for x in arrays)
    wanted = attention(q, k, v, mask=written_out(blocks, None))
    torch.testing.assert_close(attention(q, k, v, blocks=blocks), wanted)
    torch.testing.assert_close(torch.vmap(lambda a, b, c: attention(a, b, c, blocks=blocks))(q, k, v), wanted)


def test_gradients_from_above_that_are_no_plain_memory() -> None:
    arrays, blocks, _ = drawn("plain")
    out: Any = attention(*arrays, blocks=blocks)
    above = torch.ones_like(out)
    got = torch.autograd.grad(out, arrays, torch._neg_view(above), retain_graph=True)
    torch.testing.assert_close(got, torch.autograd.grad(out, arrays, -above, retain_graph=True))
    with pytest.raises(HeadworkError, match="no second derivatives"):
        torch.autograd.grad(out, arrays, above, create_graph=True)


def test_mistakes_are_named() -> None:
    x = torch.ones(2, 5, 4)
    with pytest.raises(HeadworkError, match="holds ndarray"):
        attention(x, x, x, blocks=BlockMask(torch.ones(2, 2, dtype=torch.bool).numpy(), 4, 4))
    with pytest.raises(HeadworkError, match="blocks is a Tensor"):
        attention(x, x, x, blocks=torch.ones(2, 2))  # that is the mistake
    with pytest.raises(HeadworkError, match=r"make \(2, 2, 2\)"):
        attention(x, x, x, blocks=BlockMask(torch.ones(2, 3, dtype=torch.bool), 4, 4))


def documents_in_order(batch: Any, head: Any, token: Any, key: Any) -> Any:
    return (token // 100 == key // 100) & (token >= key)


def by_head(batch: Any, head: Any, token: Any, key: Any) -> Any:
    return (token - key < 40 + 50 * head) & (token >= key - 64 * batch)


def whole_blocks(batch: Any, head: Any, token: Any, key: Any) -> Any:
    return token // 32 >= key // 16


FLEX = {
    "partly": (documents_in_order, None, None, 300, 300, 128),
    "every head its own": (by_head, 2, 4, 150, 210, (64, 32)),
    "whole": (whole_blocks, None, None, 96, 96, (32, 16)),
}


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("name", FLEX)
def test_flex_attention_reads_the_same(name: str) -> None:
    mod, batch, heads, tokens, keys, size = FLEX[name]
    given = flex.create_block_mask(mod, batch, heads, tokens, keys, device="cpu", BLOCK_SIZE=size)
    blocks, mask = flex_blocks(given)
    assert (mask is None) == (name == "whole")
    made = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(2, n, m, 16, generator=made, dtype=torch.float64) for n, m in ((4, tokens), (2, keys), (2, keys))
    )
    wanted = flex.flex_attention(q, k, v, block_mask=given, enable_gqa=True)
    torch.testing.assert_close(attention(q, k, v, mask=mask, blocks=blocks), wanted, rtol=1e-12, atol=1e-12)


def test_a_full_block_is_read_whatever_its_function_says() -> None:
    """FlexAttention asks no mask_mod there, and neither does what it became."""
    one, none = torch.ones(1, 1, 2, dtype=torch.int32), torch.zeros(1, 1, 2, dtype=torch.int32)
    places = torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32)
    given = flex.BlockMask.from_kv_blocks(one, places.flip(-1), one, places, BLOCK_SIZE=16, mask_mod=documents_in_order)
    _, mask = flex_blocks(given)
    assert mask is not None
    assert mask[0, 0, :16, :16].all()
    assert not mask[0, 0, :16, 16:].any()
    given = flex.BlockMask.from_kv_blocks(none, places, one, places, BLOCK_SIZE=16, mask_mod=documents_in_order)
    blocks, mask = flex_blocks(given)
    assert blocks.visible.tolist() == [[[[True, False], [False, True]]]]
    assert mask is None


def test_what_is_no_block_mask_of_flex_attention_is_refused() -> None:
    with pytest.raises(HeadworkError, match="flex_blocks was given a Tensor"):
        flex_blocks(torch.ones(2, 2))
