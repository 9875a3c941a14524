"""The operators as functions of torch's autograd, for where their own rule does not reach or costs too much."""

from typing import Any

import torch
from torch import Tensor

from headwork.errors import HeadworkError
from headwork.torch.operator import (
    attention,
    attention_backward,
    backward,
    forward,
    gradients,
    mapped,
    mapped_backward,
    remember,
)


class Slope(torch.autograd.Function):
    """The gradients, which have none themselves, and say so."""

    forward = staticmethod(attention_backward)
    vmap = staticmethod(mapped_backward)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *upward: Any) -> Any:
        raise HeadworkError(
            "our attention has no second derivatives. For this call use torch's own: "
            "torch.nn.functional.scaled_dot_product_attention under torch.nn.attention.sdpa_kernel(SDPBackend.MATH)."
        )


class Transformed(torch.autograd.Function):
    """For the transforms of torch.func, which an operator's own gradient rule does not know."""

    forward = staticmethod(attention)
    setup_context = staticmethod(remember)
    vmap = staticmethod(mapped)

    @staticmethod
    def backward(ctx: Any, dout: Tensor | None, dlse: Tensor | None) -> tuple[Any, ...]:
        return gradients(ctx, dout, dlse, Slope.apply)


class AtOnce(torch.autograd.Function):
    """Without the dispatcher, which costs a small call more than its work: for plain tensors alone."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        output = forward(*inputs)
        remember(ctx, inputs, output)
        return output

    @staticmethod
    def backward(ctx: Any, dout: Tensor | None, dlse: Tensor | None) -> tuple[Any, ...]:
        # Gradients are recorded here only where somebody wants to differentiate them.
        return gradients(ctx, dout, dlse, Slope.apply if torch.is_grad_enabled() else backward)
