"""`headwork.torch.scaled_dot_product_attention` is torch's function."""

import inspect

import torch
from torch.nn.functional import scaled_dot_product_attention as torchs_own

from headwork.torch import scaled_dot_product_attention


def test_the_arguments_are_torchs() -> None:
    """torch's own is built in and has no signature to read: its first line of documentation does."""
    ours = inspect.signature(scaled_dot_product_attention)
    theirs = "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False"
    assert theirs in " ".join(torchs_own.__doc__.split())
    assert [f"{p.name}" if p.default is p.empty else f"{p.name}={p.default}" for p in ours.parameters.values()] == (
        theirs.split(", ")
    )


def test_a_plain_call() -> None:
    q, k, v = torch.randn(3, 2, 4, 9, 8)
    assert (scaled_dot_product_attention(q, k, v) - torchs_own(q, k, v)).abs().max() < 1e-6
