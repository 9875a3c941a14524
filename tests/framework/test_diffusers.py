"""`set_attention_backend("headwork")`: diffusers' own switch, and what it does not reach."""

import subprocess
import sys
from typing import Any

import diffusers
import pytest
import torch
from diffusers.models.attention_dispatch import AttentionBackendName, attention_backend, dispatch_attention_fn

import headwork.diffusers as ours
from headwork.errors import HeadworkError
from headwork.torch import report, use

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def flux() -> Any:
    torch.manual_seed(0)
    return diffusers.FluxTransformer2DModel(
        patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8),
    )  # fmt: skip


def given() -> dict[str, Any]:
    torch.manual_seed(1)
    return {
        "hidden_states": torch.randn(2, 16, 4),
        "encoder_hidden_states": torch.randn(2, 6, 32),
        "pooled_projections": torch.randn(2, 32),
        "timestep": torch.tensor([0.3, 0.6]),
        "img_ids": torch.randn(16, 3),
        "txt_ids": torch.zeros(6, 3),
    }


def test_a_model_takes_the_name_and_every_call_is_on_the_kernel() -> None:
    model, found, gradients = flux(), [], []
    for name in ("native", "headwork"):
        model.set_attention_backend(name)
        with report() as ran:
            found.append(model(**given()).sample)
            gradients.append(torch.autograd.grad(found[-1].square().sum(), list(model.parameters())))
    model.set_attention_backend("native")
    torch.testing.assert_close(*found)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)
    assert (ran.on_kernel(), ran.elsewhere()) == (2, 0)


@pytest.mark.parametrize("kind", ["none", "padding", "whole", "grouped"])
def test_calls_are_the_native_ones(kind: str) -> None:
    q, k, v = (torch.randn(2, n, 4, 8) for n in (5, 7, 7))
    options: dict[str, Any] = {
        "none": {"scale": 0.3},
        "padding": {"attn_mask": torch.tensor([[True] * 5 + [False] * 2, [True] * 7])},
        "whole": {"attn_mask": torch.randn(2, 1, 5, 7)},
        "grouped": {"enable_gqa": True},
    }[kind]
    if kind == "grouped":
        k, v = k[:, :, :2], v[:, :, :2]
    found = []
    for name in ("native", "headwork"):
        with attention_backend(name):
            found.append(dispatch_attention_fn(q, k, v, **options))
    torch.testing.assert_close(*found)


def test_what_it_has_not_is_refused() -> None:
    x = torch.randn(1, 2, 3, 4)
    with pytest.raises(HeadworkError, match="return_lse=True is not for"):
        ours.attention(x, x, x, return_lse=True)
    with pytest.raises(HeadworkError, match="context parallelism is not for"):
        ours.attention(x, x, x, _parallel_config=object())


def test_the_name_is_one_of_theirs() -> None:
    member = AttentionBackendName("headwork")
    assert member in list(AttentionBackendName)
    assert (member.name, member.value, str.__str__(member)) == ("HEADWORK", "headwork", "headwork")
    assert AttentionBackendName.__members__["HEADWORK"] is member


def test_models_that_call_torchs_function_run_under_use() -> None:
    model = diffusers.UNet2DConditionModel(
        sample_size=8, block_out_channels=(32, 32), cross_attention_dim=32, attention_head_dim=8, norm_num_groups=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        layers_per_block=1,
    )  # fmt: skip
    with torch.no_grad(), use() as ran:
        model(torch.randn(1, 4, 8, 8), 3, torch.randn(1, 7, 32))
    assert ran.on_kernel() > 1
    assert ran.elsewhere() == 0


def test_without_torch_and_diffusers_it_says_how_to_get_them() -> None:
    program = "import sys\nsys.modules.update(torch=None, diffusers=None)\nimport headwork.diffusers"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "HeadworkError: headwork.diffusers needs diffusers 0.35 or newer" in done.stderr
    assert "pip install" in done.stderr


def test_another_diffusers_is_told_of() -> None:
    program = (
        "import sys, types\nfor name in ('diffusers', 'diffusers.models', 'diffusers.models.attention_dispatch'):\n"
        "    sys.modules[name] = types.ModuleType(name)\n{more}import headwork.diffusers"
    )
    other = (
        "from enum import Enum\nmodule = sys.modules['diffusers.models.attention_dispatch']\n"
        "module.AttentionBackendName = Enum('AttentionBackendName', 'A')\nmodule._AttentionBackendRegistry = object\n"
    )
    for more, said in (("", "needs diffusers 0.35 or newer"), (other, "run its models under headwork.torch.use()")):
        done = subprocess.run([sys.executable, "-c", program.format(more=more)], capture_output=True, text=True)
        assert said in done.stderr
