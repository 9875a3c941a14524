"""The operator without torch's dispatcher, which costs a small call more than its work: for plain tensors alone."""

from typing import Any

import torch
from torch import Tensor

from headwork.torch.calls import Biases, What
from headwork.torch.operator import forward, gradients, remember
from headwork.torch.path import is_memory


class AtOnce(torch.autograd.Function):
    """Arguments: query, key, value, the four biases, and all the rest as one."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        query, key, value = inputs[:3]
        what: What = inputs[7]
        output = forward(query, key, value, Biases(*inputs[3:7]), what)
        remember(ctx, (*inputs[:7], *what), output)
        return output

    @staticmethod
    def backward(ctx: Any, dout: Tensor | None, dlse: Tensor | None) -> tuple[Any, ...]:
        # Gradients are recorded here only where somebody wants to differentiate them; and what comes from above need
        # not be plain memory because the inputs were.
        at_once = not torch.is_grad_enabled() and all(x is None or is_memory(x) for x in (dout, dlse))
        return (*gradients(ctx, dout, dlse, at_once), None)
