"""Our kernel below torch's own function: only while asked for, forward and backward both."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.nn.attention import current_flash_attention_impl
from torch.nn.functional import scaled_dot_product_attention as sdpa

from headwork.errors import HeadworkError
from headwork.torch import replace, restore, use


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of ours that torch calls."""
    calls: list[str] = []
    for name in ("forward", "backward"):
        original = getattr(replace, name)

        def counted(*args: Any, name: str = name, original: Any = original, **options: Any) -> Any:
            calls.append(name)
            return original(*args, **options)

        monkeypatch.setattr(replace, name, counted)
    yield calls
    assert not replace.in_use
    assert current_flash_attention_impl() is None


def train(*shape: int, **options: Any) -> list[torch.Tensor]:
    made = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(shape, generator=made).requires_grad_() for _ in range(3))
    out = sdpa(q, k, v, **options)
    return [out.detach(), *torch.autograd.grad(out.square().sum(), (q, k, v))]


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.4}, {"attn_mask": torch.eye(50) > 0}])
def test_forward_and_backward_are_ours_within_the_block(called: list[str], options: dict[str, Any]) -> None:
    before = train(2, 3, 50, 16, **options)
    assert called == []
    with use():
        assert current_flash_attention_impl() == "headwork"
        within = train(2, 3, 50, 16, **options)
    assert called == ["forward", "backward"]
    torch.testing.assert_close(within, before, rtol=1e-5, atol=1e-5)
    assert all((a == b).all() for a, b in zip(train(2, 3, 50, 16, **options), before, strict=True))
    assert called == ["forward", "backward"]


def test_uses_nest_and_restore_undoes_the_last(called: list[str]) -> None:
    use()
    with use():
        train(1, 1, 3, 4)
    train(1, 1, 3, 4)
    assert len(called) == 4
    restore()
    train(1, 1, 3, 4)
    assert len(called) == 4
    with use():
        restore()
    with pytest.raises(HeadworkError, match="nothing to restore"):
        restore()


def test_an_error_in_the_block_restores_too(called: list[str]) -> None:
    with pytest.raises(ZeroDivisionError), use():
        raise ZeroDivisionError


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler uses what torch deprecates
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_under_the_compiler(called: list[str], backend: str) -> None:
    q, k, v = (torch.randn(2, 3, 20, 16, requires_grad=True) for _ in range(3))
    compiled = torch.compile(lambda q, k, v: sdpa(q, k, v).sin(), fullgraph=True, backend=backend)
    with use():
        out = compiled(q, k, v)
        got = torch.autograd.grad(out.sum(), (q, k, v))
    assert called == ["forward", "backward"]
    torch.testing.assert_close(got, torch.autograd.grad(sdpa(q, k, v).sin().sum(), (q, k, v)))


def test_importing_replaces_nothing() -> None:
    program = (
        "import headwork.torch, torch; from torch.nn.attention import current_flash_attention_impl as c; print(c())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None"


def test_one_openmp_pool_is_shared_with_torch() -> None:
    """Two pools would fight over the cores: whoever loads libgomp first, the other gets the same copy."""
    for order in ("import torch, headwork.torch", "import headwork.engine as e; e.backend(); import torch"):
        program = (
            f"{order}\nimport numpy as np; from headwork.engine import attention\nx = np.ones((64, 64), np.float32)\n"
            "attention(x, x, x, threads=2)\ntorch.ones(300, 300) @ torch.ones(300, 300)\n"
            "print({l.split()[-1] for l in open('/proc/self/maps') if 'libgomp' in l}.__len__())"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "1"
