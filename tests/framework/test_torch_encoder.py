"""Our layer inside torch's encoder: called in evaluation too, with and without padding."""

import copy
from contextlib import suppress

import pytest
import torch
from torch import nn

from headwork.torch import MultiheadAttention, report

# torch tells that its nested tensors are young, and that an encoder does without them.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("padded", [False, True])
def test_called_in_evaluation(padded: bool) -> None:
    torch.manual_seed(0)
    theirs = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2).eval()
    ours = copy.deepcopy(theirs)
    for layer in ours.layers:
        own = MultiheadAttention(32, 4, batch_first=True).eval()
        own.load_state_dict(layer.self_attn.state_dict())
        layer.self_attn = own
    # Longer first: torch packs padded batches into nested tensors only where they are so.
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2]) if padded else None
    x = torch.randn(2, 6, 32)
    with torch.no_grad():
        expected = theirs(x, src_key_padding_mask=padding)
    real = torch.ones(2, 6, dtype=torch.bool) if padding is None else ~padding
    for nested in (False, True):
        ours.use_nested_tensor = nested
        with torch.no_grad(), report() as ran:
            got = ours(x, src_key_padding_mask=padding)
        torch.testing.assert_close(got[real], expected[real], rtol=1e-4, atol=1e-5)
        assert (ran.on_kernel(), ran.elsewhere()) == (2, 0)


def test_other_nested_tensors_are_torchs_and_counted() -> None:
    layer = MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.nested.nested_tensor([torch.randn(3, 8), torch.randn(5, 8)])
    y = torch.nested.nested_tensor([torch.randn(3, 8), torch.randn(5, 8)])
    with torch.no_grad(), report() as ran, suppress(AssertionError):  # torch knows no such call either
        layer(x, y, y, need_weights=False)
    assert str(ran) == "1 × MultiheadAttention, torch: nested tensors"


def test_parameters_can_be_drawn_anew() -> None:
    layer = MultiheadAttention(8, 2)
    before = layer.in_proj_weight.clone()
    layer._reset_parameters()
    assert not torch.equal(layer.in_proj_weight, before)
