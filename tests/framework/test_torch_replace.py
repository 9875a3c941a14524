"""Our kernel below torch's own function: only while asked for, forward and backward both."""

import subprocess
import sys
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
import torch
from torch.nn.attention import current_flash_attention_impl
from torch.nn.functional import scaled_dot_product_attention as sdpa

from headwork.errors import HeadworkError
from headwork.torch import explain, replace, restore, scaled_dot_product_attention, use


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


def test_blocks_of_several_threads_end_in_any_order(called: list[str]) -> None:
    """What the first of them put in place stays until the last has ended, and no longer."""
    first, second = use(), use()
    first.__exit__()
    train(1, 1, 3, 4)
    assert called == ["forward", "backward"]
    third = use()
    second.__exit__()
    second.__exit__()
    train(1, 1, 3, 4)
    assert len(called) == 4
    third.__exit__()
    assert current_flash_attention_impl() is None

    def block() -> None:
        for _ in range(20):
            with use():
                train(1, 1, 3, 4)

    threads = [Thread(target=block) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


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


@pytest.mark.parametrize("added", [False, True])
def test_a_backward_pass_outside_the_block(called: list[str], added: bool) -> None:
    """torch's own follows on our forward pass, with a row that reads nothing; and ours on torch's."""
    mask: Any = torch.ones(6, 6, dtype=torch.bool)
    mask[2] = False
    if added:
        mask = torch.zeros(6, 6).masked_fill(~mask, -torch.inf)
    x = [torch.randn(1, 2, 6, 8, requires_grad=True) for _ in range(3)]
    expected = torch.autograd.grad(sdpa(x[0], x[1], x[2], mask).square().sum(), x)
    with use():
        out = sdpa(x[0], x[1], x[2], mask)
    torch.testing.assert_close(torch.autograd.grad(out.square().sum(), x), expected)
    out = sdpa(x[0], x[1], x[2], mask)
    with use():
        torch.testing.assert_close(torch.autograd.grad(out.square().sum(), x), expected)
    assert called == ["forward", "backward"]


def test_the_lowest_number_below_torch_is_what_it_is_to_torch(called: list[str]) -> None:
    """transformers hides keys by finfo.min: a row of nothing else is the mean of the values."""
    x = [torch.randn(1, 2, 6, 8) for _ in range(3)]
    mask = torch.zeros(6, 6)
    mask[1] = torch.finfo(torch.float32).min
    mask[3, 2:] = torch.finfo(torch.float32).min
    with use():
        ours = sdpa(x[0], x[1], x[2], mask)
    torch.testing.assert_close(ours, sdpa(x[0], x[1], x[2], mask))
    assert called == ["forward"]


def test_a_torch_without_the_registry() -> None:
    """2.10 has not all of it: everything but `use` is there."""
    program = (
        "import torch.nn.attention as a; del a.restore_flash_attention_impl, a.current_flash_attention_impl\n"
        "import torch, headwork.torch as h; x = torch.eye(2); h.scaled_dot_product_attention(x, x, x)\n"
        "try: h.use()\nexcept h.replace.HeadworkError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("use() needs the registry")


THREADS = """
import os, threading, torch
from headwork.torch import calls
torch.set_num_threads(2)
torch.mm(*[torch.ones(500, 500)] * 2)
torch.set_num_threads(1)
found = [calls.threads()]
fresh = threading.Thread(target=lambda: found.append(calls.threads()))
fresh.start()
fresh.join()
child = os.fork()
if not child:
    torch.set_num_threads(1)
    print(*found, calls.threads(), calls.kernel.threads(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_torchs_number_of_threads_counts_in_fresh_threads_and_forked_workers() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"] * 4


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


def test_dropout_runs_on_the_kernel_and_the_rest_is_counted_with_its_reason() -> None:
    x = torch.randn(2, 4, 16, 8, requires_grad=True)
    with use() as ran:
        torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.2).sum().backward()
        torch.nn.functional.scaled_dot_product_attention(x[0, 0], x[0, 0], x[0, 0])
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.2)
    assert x.grad is not None
    assert ran.on_kernel() == 1
    assert ran.elsewhere() == 2
    torch.manual_seed(0)
    with use():
        below = torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.2)
    torch.manual_seed(0)
    assert torch.equal(below, scaled_dot_product_attention(x, x, x, dropout_p=0.2))
    torch.manual_seed(0)
    assert not torch.equal(below, torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.2))


def test_explain_answers_for_torchs_function_under_use() -> None:
    """Call by call what is counted, for all that torch's function takes."""
    x = torch.randn(2, 4, 5, 8)
    shapes = [(x, x, x), (x[0], x[0], x[0]), (x, x, x[..., :4]), (x[:1], x, x), (x.half(),) * 3, (x[:0],) * 3]
    shapes.append((x.clone().requires_grad_(), x, x))
    bias = torch.zeros(5, 5)
    options: list[dict[str, Any]] = [{}, {"dropout_p": 0.3}, {"is_causal": True}, {"attn_mask": bias > 1}]
    options += [{"attn_mask": bias.clone().requires_grad_()}, {"attn_mask": bias, "dropout_p": 0.5}]
    found = set()
    for tensors in shapes:
        for given in options:
            if "attn_mask" in given and given["attn_mask"].dtype != torch.bool and tensors[0].dtype == torch.half:
                continue  # torch refuses it
            with use() as ran:
                sdpa(*tensors, **given)
            told = explain(*tensors, **given, under_use=True)
            assert [(one.way, one.reason) for one in ran.calls] in ([(told.way, told.reason)], [])
            assert ran.calls or told.reason == "nothing to work out"
            found.add(str(told))
    assert "kernel: below torch's function" in found
    assert "kernel: with gradients" in found
    assert "torch: torch has a fused kernel for tensors of 4 axes alone" in found
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert str(explain(x, x, x, under_use=True)) == "torch: fused kernels are switched off"
    assert str(explain(*(x.to("meta"),) * 3, under_use=True)) == "torch: a tensor is on meta"
    with torch.autocast("cpu"):
        assert explain(x, x, x.double(), under_use=True).way == "torch"
        assert explain(x, x.half(), x, under_use=True).way == "kernel"


def test_a_bias_with_gradients_runs_on_the_kernel() -> None:
    """torch has no fused kernel for it; Swin and others learn one."""
    q, k, v = (torch.randn(2, 4, 9, 8, requires_grad=True) for _ in range(3))
    bias = torch.randn(1, 4, 9, 9, requires_grad=True)
    leaves = (q, k, v, bias)
    expected = torch.autograd.grad(sdpa(q, k, v, bias).square().sum(), leaves)
    with use() as ran:
        found = torch.autograd.grad(sdpa(q, k, v, bias).square().sum(), leaves)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert (ran.on_kernel(), ran.elsewhere()) == (1, 0)
