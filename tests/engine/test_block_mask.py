"""`BlockMask`: a table of blocks means the mask that it stands for, and what it hides is never read."""

import sys
from typing import Any

import numpy as np
import pytest

from headwork.engine import BlockMask, attention, attention_backward
from headwork.errors import HeadworkError, ShapeError

CASES: dict[str, tuple[tuple[int, int], tuple[int, ...], dict[str, Any]]] = {
    "one table": ((64, 64), (), {}),
    "for every head": ((64, 64), (4,), {}),
    "for every item": ((64, 32), (2, 1), {}),
    "odd blocks": ((7, 13), (4,), {}),
    "one key": ((1, 1), (), {}),
    "causal": ((64, 64), (2, 4), {"causal": True}),
    "window and softcap": ((32, 64), (), {"window": (40, 3), "softcap": 5.0}),
    "lengths": ((64, 64), (), {"lengths": [150, 0]}),
    "mask": ((64, 64), (), {"mask": np.arange(200) % 3 > 0}),
    "added": ((64, 64), (4,), {"mask": np.where(np.arange(200) % 3 > 0, np.float32(0.5), -np.inf)}),
    "dropout": ((64, 64), (), {"dropout": 0.3, "seed": 5}),
}


def written_out(blocks: BlockMask, tokens: int, keys: int) -> Any:
    return blocks.visible.repeat(blocks.tokens, -2)[..., :tokens, :].repeat(blocks.keys, -1)[..., :keys]


def drawn(name: str, dtype: Any) -> tuple[list[Any], BlockMask, dict[str, Any]]:
    rng = np.random.default_rng(3)
    sizes, lead, options = CASES[name]
    arrays = [rng.standard_normal((2, heads, 200, 16)).astype(dtype) for heads in (4, 2, 2, 4)]
    visible = rng.random((*lead, *(-(-200 // size) for size in sizes))) < 0.5
    visible[..., 0, :] = False  # tokens that read nothing
    return arrays, BlockMask(visible, *sizes), options


def both(name: str, dtype: Any) -> list[list[Any]]:
    """Results and gradients, with the blocks and with the mask that they stand for."""
    (q, k, v, dout), blocks, options = drawn(name, dtype)
    seen = written_out(blocks, 200, 200)
    mask = options.get("mask")
    if mask is not None:
        seen = seen & mask if mask.dtype == bool else np.where(seen, mask, -np.inf).astype(mask.dtype)
    found = []
    for asked in ({**options, "blocks": blocks}, {**options, "mask": seen}):
        out, lse = attention(q, k, v, **asked, return_lse=True)
        weights = attention(q, k, v, **asked, return_weights=True)[1]
        found.append([out, lse, weights, *attention_backward(q, k, v, out, lse, dout, **asked)[:3]])
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("name", CASES)
def test_the_mask_that_it_stands_for(name: str, dtype: Any) -> None:
    close = {np.float32: 2e-5, np.float64: 1e-12, np.float16: 4e-3}[dtype]
    for ours, wanted in zip(*both(name, dtype), strict=True):
        np.testing.assert_allclose(ours.astype(np.float64), wanted.astype(np.float64), close, close)


@pytest.mark.parametrize("name", ["for every head", "odd blocks", "causal", "added"])
def test_without_the_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_kernel = both(name, np.float64)[0]
    for module in ("attention", "backward"):
        monkeypatch.setattr(sys.modules[f"headwork.engine.{module}"], "kernel", None)
    for ours, wanted in zip(both(name, np.float64)[0], with_kernel, strict=True):
        np.testing.assert_allclose(ours, wanted, 1e-10, 1e-10)


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_hidden_is_never_read(odd: float) -> None:
    """Keys and values that are not finite reach nobody, forward and backward; scores that overflow are still right."""
    (q, k, v, dout), _, _ = drawn("one table", np.float32)
    k[..., 64:128, :] = v[..., 64:128, :] = odd
    blocks = BlockMask(np.array([[True, False, True, True]] * 4), 64, 64)
    out, lse = attention(q, k, v, blocks=blocks, return_lse=True)
    gradients = attention_backward(q, k, v, out, lse, dout, blocks=blocks)
    assert all(np.isfinite(x).all() for x in (out, lse, *gradients[:3]))
    assert not gradients.k[..., 64:128, :].any()
    large, values = np.full((2, 2), 1e25, np.float32), np.array([[1, 1], [3, 3]], np.float32)
    assert attention(large, large, values, blocks=BlockMask(np.array([[False, True]]), 2, 1))[0, 0] == 3


def test_the_threads_do_not_matter() -> None:
    (q, k, v, _), blocks, _ = drawn("for every head", np.float32)
    one, two = (attention(q, k, v, blocks=blocks, threads=n) for n in (1, 2))
    assert (one == two).all()


def test_mistakes_are_named() -> None:
    x = np.ones((2, 5, 4), np.float32)
    with pytest.raises(HeadworkError, match="size of a block"):
        BlockMask(np.ones((1, 1), bool), 0, 4)
    with pytest.raises(HeadworkError, match="blocks is a ndarray"):
        attention(x, x, x, blocks=np.ones((1, 1), bool))  # type: ignore[call-overload]  # that is the mistake
    with pytest.raises(HeadworkError, match="holds int64"):
        attention(x, x, x, blocks=BlockMask(np.ones((2, 2), np.int64), 4, 4))
    with pytest.raises(ShapeError, match=r"make \(2, 2, 3\)"):
        attention(x, x, x, blocks=BlockMask(np.ones((2, 2), bool), 4, 2))
    with pytest.raises(ShapeError, match=r"make \(2, 2, 2\)"):
        attention(x, x, x, blocks=BlockMask(np.ones((3, 2, 2), bool), 4, 4))
