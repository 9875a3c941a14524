"""The operator without torch's dispatcher, which costs a small call more than its work: for plain tensors alone."""

from typing import Any

import torch
from torch import Tensor

from headwork.torch.operator import attention_backward, backward, forward, gradients, remember
from headwork.torch.path import is_memory


class AtOnce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        output = forward(*inputs)
        remember(ctx, inputs, output)
        return output

    @staticmethod
    def backward(ctx: Any, dout: Tensor | None, dlse: Tensor | None) -> tuple[Any, ...]:
        # Gradients are recorded here only where somebody wants to differentiate them; and what comes from above need
        # not be plain memory because the inputs were.
        at_once = not torch.is_grad_enabled() and all(x is None or is_memory(x) for x in (dout, dlse))
        return gradients(ctx, dout, dlse, backward if at_once else attention_backward)
