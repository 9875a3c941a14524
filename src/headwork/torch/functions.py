"""The operator without torch's dispatcher, which costs a small call more than its work: for plain tensors alone."""

from typing import Any

import torch
from torch import Tensor, empty_like, get_num_threads, is_grad_enabled
from torch.autograd import _profiler_enabled as profiled
from torch.autograd.function import _SingleLevelFunction

from headwork.engine.backend import DEFAULT_THREADS, kernel
from headwork.errors import HeadworkError
from headwork.torch.calls import Biases, What, plain
from headwork.torch.operator import attention_backward, forward, gradients, remember
from headwork.torch.path import PLAIN, is_memory


class AtOnce(torch.autograd.Function):
    """Arguments: query, key, value, the four biases, all the rest as one, and blocks or None."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        query, key, value = inputs[:3]
        what: What = inputs[7]
        ctx.blocks = inputs[8]
        output = forward(query, key, value, Biases(*inputs[3:7]), what, blocks=ctx.blocks)
        remember(ctx, (*inputs[:7], *what), output)
        return output

    @staticmethod
    def backward(ctx: Any, *upward: Tensor | None) -> tuple[Any, ...]:
        if ctx.blocks is not None:  # which the operator does not know
            upward = tuple(x if x is None or is_memory(x) else torch.zeros(x.shape, dtype=x.dtype) + x for x in upward)
        # Gradients are recorded here only where somebody wants to differentiate them; and what comes from above need
        # not be plain memory because the inputs were.
        at_once = not is_grad_enabled() and all(x is None or is_memory(x) for x in upward)
        if ctx.blocks is not None and not at_once:
            raise HeadworkError(
                "with blocks there are no second derivatives, and no gradients of several at once: give a mask instead."
            )
        return (*gradients(ctx, upward[0], upward[1], at_once, ctx.blocks), None, None)


def plain_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    lse: Tensor | None,
    causal: bool,
    grouped: bool,
    scale: float | None,
) -> Tensor | None:
    """The output, or None where the kernel sees something that needs a closer look."""
    assert kernel is not None
    out = empty_like(query)
    number = DEFAULT_THREADS or get_num_threads()
    done = kernel.plain_tensors(query, key, value, mask, out, lse, causal, grouped, scale, number)
    return out if done else None


# So many products are worked out again, for the gradients, in less time than torch takes to keep two more tensors.
SOON_AGAIN = 65536


class PlainAtOnce(_SingleLevelFunction):
    """The arguments of torch's own function and no others, for a short call's sake: a mask has no gradient here.

    It is called where no transform of torch.func is active, which `torch.autograd.Function` would ask again.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        causal: bool,
        grouped: bool,
        scale: float | None,
    ) -> Tensor | None:
        ctx.numbers = causal, scale
        if query.numel() * key.size(-2) <= SOON_AGAIN:
            ctx.save_for_backward(query, key, value, mask, None, None)
            return plain_forward(query, key, value, mask, None, causal, grouped, scale)
        lse = torch.empty(query.shape[:-1], dtype=torch.float64, device="cpu")
        out = plain_forward(query, key, value, mask, lse, causal, grouped, scale)
        ctx.save_for_backward(query, key, value, mask, out, lse)
        return out

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, mask, out, lse = ctx.saved_tensors
        causal, scale = ctx.numbers
        assert kernel is not None
        # As above; and what is to be seen by the profiler goes through the operator, too.
        if type(dout) in PLAIN and not (is_grad_enabled() or dout.is_neg() or profiled()):
            of_query, of_key, of_value, *_ = ctx.needs_input_grad
            dq = empty_like(query) if of_query else None
            dk = empty_like(key) if of_key else None
            dv = empty_like(value) if of_value else None
            number = DEFAULT_THREADS or get_num_threads()
            if kernel.plain_gradients(query, key, value, mask, out, lse, dout, dq, dk, dv, causal, scale, number):
                return dq, dk, dv, None, None, None, None
        what = plain(causal, query.size(-1) ** -0.5 if scale is None else scale)
        if out is None:
            with torch.no_grad():
                out, lse = forward(query, key, value, Biases(mask), what)
        found = attention_backward(dout, None, query, key, value, out, lse, *Biases(mask), *what, [False] * 4)
        return (*found[:3], None, None, None, None)
