"""The kernel called with torch's tensors: plain memory on the CPU, read and written where it lies."""

import torch
from torch import Tensor

from headwork.engine.backend import DEFAULT_THREADS, kernel


def accumulator(query: Tensor) -> torch.dtype:
    return torch.float64 if query.dtype == torch.float64 else torch.float32


def threads() -> int:
    """As many as torch would use here: its number counts for fresh threads and forked workers too."""
    return DEFAULT_THREADS or torch.get_num_threads()


def forward_into(
    out: Tensor,
    lse: Tensor | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    weights: Tensor | None = None,
) -> None:
    """Batch axes are equal, and key heads divide query heads; a causal call aligns the first token and key.

    `weights` are of the accumulation type.
    """
    assert kernel is not None
    right = 0 if causal else -1
    kernel.forward(
        query, key, value, mask, out, lse, weights, None, False, 0, -1, right, scale, 0.0, threads()
    )  # fmt: skip


def backward_into(
    dq: Tensor,
    dk: Tensor,
    dv: Tensor,
    dmask: Tensor | None,
    dout: Tensor,
    dlse: Tensor | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
) -> None:
    """`dmask` is of the accumulation type."""
    assert kernel is not None
    right = 0 if causal else -1
    kernel.backward(
        query, key, value, mask, out, lse, dout, dlse, dq, dk, dv, dmask,
        None, False, 0, -1, right, scale, 0.0, threads(),
    )  # fmt: skip
