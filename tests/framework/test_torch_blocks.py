"""Attention a block of keys at a time: the parts make the whole, forward and backward."""

from typing import Any

import pytest
import torch
from torch import Tensor

from headwork.engine import backend
from headwork.errors import ShapeError
from headwork.torch import attention, blocks
from headwork.torch.blocks import backward_block, forward_block


def test_blocks_make_the_whole_with_its_gradients() -> None:
    """Grouped heads, d_v ≠ d_k, causal with an offset, a softcap, two blocks of keys."""
    torch.manual_seed(0)
    shapes = (2, 4, 9, 8), (2, 2, 13, 8), (2, 2, 13, 6)
    q, k, v = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    whole = attention(q, k, v, causal=True, offset=4, softcap=3.0, scale=0.3, return_lse=True)
    dout = torch.randn_like(whole[0])
    whole[0].backward(dout)
    out, lse = torch.zeros_like(whole[0]), torch.full_like(whole[1], -torch.inf)
    blocks = slice(0, 5), slice(5, 13)
    dq, dk, dv = (torch.zeros_like(x) for x in (q, k, v))
    with torch.no_grad():
        for b in blocks:
            forward_block(
                q, k[:, :, b], v[:, :, b], out, lse, offset=4 - b.start, window=(-1, 0), scale=0.3, softcap=3.0
            )
        delta = (dout * out).sum(-1)
        for b in blocks:
            into = dq, dk[:, :, b], dv[:, :, b]
            mine = q, k[:, :, b], v[:, :, b], dout, lse, delta
            backward_block(*mine, *into, offset=4 - b.start, window=(-1, 0), scale=0.3, softcap=3.0)
    torch.testing.assert_close((out, lse), whole, rtol=0, atol=1e-14)
    torch.testing.assert_close((dq, dk, dv), (q.grad, k.grad, v.grad), rtol=0, atol=1e-14)


@pytest.fixture(params=["kernel", "written out"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "kernel" and not backend().native:
        pytest.skip(f"no kernel here: {backend().reason}")
    if request.param == "written out":
        monkeypatch.setattr(blocks, "kernel", None)


def draws(dtype: torch.dtype) -> list[Tensor]:
    """q, k, v, dout: a batch of two, grouped heads, d_v ≠ d_k; every second row of larger tensors."""
    torch.manual_seed(1)
    shapes = (2, 4, 24, 8), (2, 2, 40, 8), (2, 2, 40, 6), (2, 4, 24, 6)
    return [torch.randn(shape, dtype=torch.float64).to(dtype)[:, :, ::2] for shape in shapes]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_spans_of_tokens_that_share_keys(dtype: torch.dtype) -> None:
    """Each span is as if it were alone; the gradients of the keys they share are summed; other rows are left alone."""
    q, k, v, dout = draws(dtype)
    spans = [(0, 4, 2, 12, 6), (4, 1, 0, 20, 3), (6, 6, 0, 10, -2)]
    sort = torch.float64 if dtype == torch.float64 else torch.float32
    out, lse = torch.zeros(dout.shape, dtype=sort), torch.full(dout.shape[:-1], -torch.inf, dtype=torch.float64)
    told: dict[str, Any] = {"window": (5, 1), "scale": 0.3, "softcap": 4.0}
    forward_block(q, k, v, out, lse, spans=torch.tensor(spans), **told)
    delta = (out * dout).sum(-1).to(sort)
    found = [torch.ones(x.shape, dtype=sort) for x in (q, k, v)]
    backward_block(q, k, v, dout, lse, delta, found[0], found[1], found[2], spans=torch.tensor(spans), **told)
    wide = [x.double().requires_grad_() for x in (q, k, v)]
    bound = 1e-13 if dtype == torch.float64 else 2e-5
    for token, tokens, key, keys, offset in spans:
        mine = wide[0][:, :, token : token + tokens]
        read = (x[:, :, key : key + keys] for x in wide[1:])
        want, sums = attention(mine, *read, offset=offset, return_lse=True, **told)
        want.backward(dout[:, :, token : token + tokens].double())
        torch.testing.assert_close(out[:, :, token : token + tokens].double(), want, rtol=0, atol=bound)
        torch.testing.assert_close(lse[:, :, token : token + tokens], sums.double(), rtol=0, atol=bound)
    for got, of in zip(found, wide, strict=True):
        assert of.grad is not None
        torch.testing.assert_close(got.double() - 1, of.grad, rtol=0, atol=bound)
    assert (lse[:, :, 5] == -torch.inf).all()
    assert (out[:, :, 5] == 0).all()


@pytest.mark.usefixtures("way")
def test_a_block_that_nobody_reads_changes_nothing() -> None:
    q, k, v, dout = draws(torch.float32)
    out, lse = torch.zeros(dout.shape), torch.full(dout.shape[:-1], -torch.inf)
    forward_block(q, k, v, out, lse, window=(-1, 0), scale=1.0)
    before = out.clone(), lse.clone()
    forward_block(q, k, v, out, lse, window=(-1, 0), offset=-30, scale=1.0)
    forward_block(q, k[:, :, :0], v[:, :, :0], out, lse, scale=1.0)
    assert torch.equal(out, before[0])
    assert torch.equal(lse, before[1])
    into = [torch.zeros(x.shape) for x in (q, k, v)]
    delta = (out * dout).sum(-1)
    backward_block(q, k, v, dout, lse, delta, into[0], into[1], into[2], window=(-1, 0), offset=-30, scale=1.0)
    assert not any(x.any() for x in into)


def test_what_does_not_fit_is_refused() -> None:
    """Before anything is read or written: the kernel trusts sizes."""
    q, k, v, dout = draws(torch.bfloat16)
    lse = torch.zeros(dout.shape[:-1])
    with pytest.raises(ShapeError, match=r"out is torch\.bfloat16 .*, but here it is torch\.float32 \(2, 4, 12, 6\)"):
        forward_block(q, k, v, dout.clone(), lse, scale=1.0)
    with pytest.raises(ShapeError, match="one batch for all"):
        forward_block(q, k[:1], v[:1], dout.float(), lse, scale=1.0)
    with pytest.raises(ShapeError, match=r"d_k is torch\.float32"):
        backward_block(q, k, v, dout, lse, lse, q.float(), k.float()[:, :, 1:], v.float(), scale=1.0)
