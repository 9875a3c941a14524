"""The operator without torch's dispatcher, which costs a small call more than its work: for plain tensors alone."""

from typing import Any

import torch
from torch import Tensor

from headwork.engine.backend import kernel
from headwork.torch.calls import Biases, What, plain, seen_by_profiler, threads
from headwork.torch.operator import attention_backward, forward, gradients, remember
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


def plain_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    lse: Tensor | None,
    causal: bool,
    grouped: bool,
    scale: float,
) -> Tensor | None:
    """The output, or None where the kernel sees something that needs a closer look."""
    assert kernel is not None
    out = torch.empty_like(query)
    with seen_by_profiler("headwork::forward"):
        done = kernel.plain_tensors(query, key, value, mask, out, lse, causal, grouped, scale, threads())
    return out if done else None


class PlainAtOnce(torch.autograd.Function):
    """The arguments of torch's own function and no others, for a short call's sake: a mask has no gradient here."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        causal: bool,
        grouped: bool,
        scale: float,
    ) -> Tensor | None:
        lse = query.new_empty(query.shape[:-1], dtype=torch.float64)
        out = plain_forward(query, key, value, mask, lse, causal, grouped, scale)
        ctx.save_for_backward(query, key, value, mask, out, lse)
        ctx.numbers = causal, scale
        return out

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, mask, out, lse = ctx.saved_tensors
        causal, scale = ctx.numbers
        if torch.is_grad_enabled() or not is_memory(dout):  # as above
            what = plain(causal, scale)
            found = attention_backward(dout, None, query, key, value, out, lse, *Biases(mask), *what, [False] * 4)
            return (*found[:3], None, None, None, None)
        assert kernel is not None
        into = [
            torch.empty_like(x) if need else None
            for x, need in zip(ctx.saved_tensors, ctx.needs_input_grad[:3], strict=False)
        ]
        with seen_by_profiler("headwork::backward"):
            kernel.backward(
                query, key, value, mask, out, lse, dout, None, *into, *NOTHING_ELSE,
                False, 0, -1, 0 if causal else -1, scale, 0.0, 0.0, 0, threads(),
            )  # fmt: skip
        return (*into, None, None, None, None)


NOTHING_ELSE = (None,) * 7  # gradients of what is added to the scores, spans, and what is added besides a mask
