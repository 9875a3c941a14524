"""torch's own sample inputs for its function, handed to ours, and to torch's with our kernel below it."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as torchs_own
from torch.testing._internal.common_methods_invocations import op_db

from headwork.torch import scaled_dot_product_attention, use

NAME = "nn.functional.scaled_dot_product_attention"
(INFO,) = (info for info in op_db if info.name == NAME)
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


def samples(dtype: torch.dtype) -> Iterator[Any]:
    yield from INFO.sample_inputs("cpu", dtype, requires_grad=True)


def run(function: Any, sample: Any, dtype: torch.dtype) -> list[torch.Tensor]:
    """The result and every gradient, with the sample's numbers in another type."""

    def fresh(given: Any) -> Any:
        if not isinstance(given, torch.Tensor):
            return given
        moved = given.detach().to(dtype) if given.is_floating_point() else given
        return moved.clone().requires_grad_(given.requires_grad)

    arrays = [fresh(given) for given in (sample.input, *sample.args)]
    named = {name: fresh(given) for name, given in sample.kwargs.items()}
    torch.manual_seed(0)  # for dropout, which is torch's
    out = function(*arrays, **named)
    upward = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(sample.input.dtype)
    out.backward(upward.to(dtype))
    wanted = [t for t in (*arrays, *named.values()) if isinstance(t, torch.Tensor) and t.requires_grad]
    return [out.detach(), *(t.grad for t in wanted)]


def fused(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: Any = None, **options: Any) -> Any:
    """torch's fused kernel, whatever torch itself would choose: it takes four axes and no gradient of a mask."""
    lead = torch.broadcast_shapes(*(t.shape[:-2] for t in (query, key, value)))
    four = [t.expand(*lead, *t.shape[-2:]).reshape(-1, lead[-1], *t.shape[-2:]) for t in (query, key, value)]
    mask = None if attn_mask is None else (attn_mask + query.new_zeros(1)).detach()
    out, _ = flash(*four, 0.0, options["is_causal"], attn_mask=mask, scale=options.get("scale"))
    return out.view(*lead, *out.shape[-2:])


def spread(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.double() - b.double()).square().mean().sqrt())


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_torchs_samples(dtype: torch.dtype, below: bool) -> None:
    """As close to torch's function as torch asks of this type. In 16 bits torch's own are farther off than that: there
    the result is held to torch's tolerance against float64, and gradients to twice the error of torch's fused kernel.
    """
    seen = 0
    for sample in samples(dtype):
        with use() if below else torch.enable_grad():
            got = run(torchs_own if below else scaled_dot_product_attention, sample, dtype)
        if dtype in (torch.float32, torch.float64) or sample.kwargs.get("dropout_p"):
            torch.testing.assert_close(got, run(torchs_own, sample, dtype))
            continue
        seen += 1
        exact = run(torchs_own, sample, torch.float64)
        if not below:  # what goes below torch's function is only what torch sends there
            torch.testing.assert_close(got[0], exact[0].to(dtype))
        grouped = sample.kwargs.get("enable_gqa", False)
        theirs = run(torchs_own if grouped else fused, sample, dtype)
        for a, b, c in zip(got, theirs, exact, strict=False):
            allowed = 2 * spread(b, c) + torch.finfo(dtype).eps * float(c.abs().max()) if b is not None else torch.inf
            assert spread(a, c) <= allowed
    assert seen > 5 or dtype in (torch.float32, torch.float64)
