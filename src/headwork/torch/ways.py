"""A call on the way that was chosen for it: the kernel at once, our operator, or torch's own operations."""

import torch
from torch import Tensor

from headwork.engine.block_mask import BlockMask
from headwork.torch.calls import Biases, What
from headwork.torch.formula import worked
from headwork.torch.functions import AtOnce
from headwork.torch.operator import LSE, NO_LSE, attention, forward
from headwork.torch.path import Way, needs_gradient
from headwork.torch.report import dispatched
from headwork.torch.vmap import register_rules

register_rules()


def fresh_seed() -> Tensor:
    """From torch's generator: `torch.manual_seed` decides what is dropped."""
    return torch.randint(2**63 - 1, (), dtype=torch.int64, device="cpu")


def run(
    way: Way,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    biases: Biases,
    what: What,
    lse: bool = False,
    blocks: BlockMask | None = None,
) -> tuple[Tensor, Tensor]:
    """(out, log-sum-exp); the second is empty where nobody asks, and float64 where gradients need it. Blocks are for
    the kernel at once.
    """
    if way == "torch":
        return worked(query, key, value, biases, what)
    if way == "kernel":
        if needs_gradient(query, key, value, *biases):
            found: tuple[Tensor, Tensor] = AtOnce.apply(query, key, value, *biases, what, blocks)
            return found
        return forward(query, key, value, biases, what, LSE if lse else NO_LSE, blocks)
    result: tuple[Tensor, Tensor] = dispatched(attention, query, key, value, *biases, *what, LSE if lse else NO_LSE)
    return result
