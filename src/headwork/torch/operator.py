"""Our kernel as torch's operators: `headwork::attention` and its gradients, for autograd, compilers and transforms."""

from collections.abc import Callable
from typing import Any

import torch
from torch import _C, Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd.function import _SingleLevelFunction

from headwork.errors import HeadworkError
from headwork.torch.calls import accumulator, backward_into, forward_into

LIBRARY = torch.library.Library("headwork", "DEF")
WHAT = "Tensor? mask, bool causal, float scale"
LIBRARY.define(
    f"attention(Tensor query, Tensor key, Tensor value, {WHAT}) -> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
LIBRARY.define(
    "attention_backward(Tensor dout, Tensor? dlse, Tensor query, Tensor key, Tensor value, Tensor out, Tensor lse, "
    f"{WHAT}, bool mask_gradient) -> (Tensor, Tensor, Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
attention = torch.ops.headwork.attention.default
attention_backward = torch.ops.headwork.attention_backward.default


def fresh(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp, empty. A caller that stores heads within tokens gets them so again.

    The log-sum-exp is float64, for the gradients: of scores in the hundreds a float keeps too few digits.
    """
    rows = query.shape[:-1]
    alike = value.shape[-1] == query.shape[-1]
    out = torch.empty_like(query) if alike else query.new_empty((*rows, value.shape[-1]))
    return out, query.new_empty(rows, dtype=torch.float64)


def forward(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp."""
    out, lse = fresh(query, key, value)
    forward_into(out, lse, query, key, value, mask, causal, scale)
    return out, lse


def backward(
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
    mask_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of query, key, value and mask; the last one empty where it is not asked for."""
    dq, dk, dv, dmask = fresh_gradients(query, key, value, mask, mask_gradient)
    asked = dmask if mask_gradient else None
    backward_into(dq, dk, dv, asked, dout, dlse, query, key, value, out, lse, mask, causal, scale)
    return dq, dk, dv, dmask if mask is None else dmask.to(mask.dtype)


def fresh_gradients(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, mask_gradient: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    shape = mask.shape if mask is not None and mask_gradient else (0,)
    dmask = query.new_empty(shape, dtype=accumulator(query))
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value), dmask


def fake(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    return fresh(query, key, value)


def fake_backward(*saved: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    _, _, query, key, value, _, _, mask, _, _, mask_gradient = saved
    dq, dk, dv, dmask = fresh_gradients(query, key, value, mask, mask_gradient)
    return dq, dk, dv, dmask if mask is None else dmask.to(mask.dtype)


def remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    query, key, value, mask, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(query, key, value, mask, *output)
    ctx.set_materialize_grads(False)


def gradients(
    ctx: Any, dout: Tensor | None, dlse: Tensor | None, work: Callable[..., Any] = attention_backward
) -> tuple[Any, ...]:
    """Those of the operator's arguments."""
    query, key, value, mask, out, lse = ctx.saved_tensors
    if dout is None and dlse is None:
        return (None,) * 6
    dout = torch.zeros_like(out) if dout is None else dout
    dlse = None if dlse is None else dlse.to(accumulator(query))
    asked = bool(ctx.needs_input_grad[3])
    dq, dk, dv, dmask = work(dout, dlse, query, key, value, out, lse, mask, ctx.causal, ctx.scale, asked)
    return dq, dk, dv, dmask if asked else None, None, None


def once(ctx: Any, *upward: Any) -> tuple[Any, ...]:
    raise HeadworkError(
        "our attention has no second derivatives. For this call use torch's own: "
        "torch.nn.functional.scaled_dot_product_attention under torch.nn.attention.sdpa_kernel(SDPBackend.MATH)."
    )


def forget(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)


def differentiable(operator: Any, setup: Callable[..., None], slope: Callable[..., tuple[Any, ...]]) -> Any:
    """What the operator does at the dispatcher's key for autograd.

    The rule that `torch.library.register_autograd` would make is refused within the transforms of torch.func, compiled
    ones above all. One level at a time, as torch's own operators are recorded, it nests with every transform.
    """

    def below(keyset: Any, *inputs: Any) -> Any:
        with _C._AutoDispatchBelowAutograd():
            return operator.redispatch(keyset & _C._after_autograd_keyset, *inputs)

    class Recorded(_SingleLevelFunction):
        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            *inputs, keyset = given
            with torch.enable_grad():  # for the levels below, which record for themselves
                output = below(keyset, *inputs)
            setup(ctx, inputs, output)
            return output

        @staticmethod
        def backward(ctx: Any, *upward: Any) -> Any:
            return (*slope(ctx, *upward), None)

    def recorded(keyset: Any, *inputs: Any) -> Any:
        if not torch.is_grad_enabled() or not _C._any_requires_grad(*inputs):
            return below(keyset, *inputs)
        with enable_single_level_autograd_function():
            return Recorded.apply(*inputs, keyset)

    return recorded


def in_front(tensor: Tensor | None, at: int | None, size: int, rank: int) -> Tensor | None:
    """The tensor with the new axis in front of `rank` others, of `size` whether it had one or not."""
    if tensor is None:
        return None
    moved = tensor.unsqueeze(0) if at is None else tensor.movedim(at, 0)
    moved = moved.reshape(moved.shape[0], *(1,) * (rank + 1 - moved.dim()), *moved.shape[1:])
    return moved.expand(size, *moved.shape[1:])


def mapped(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    query, key, value, mask, causal, scale = args
    rank = query.dim() - (in_dims[0] is not None)
    wide = (in_front(t, at, info.batch_size, rank) for t, at in zip((query, key, value), in_dims, strict=False))
    # A mask that all share needs no axis of its own, and its gradient none either.
    mask = mask if in_dims[3] is None else in_front(mask, in_dims[3], info.batch_size, rank)
    return attention(*wide, mask, causal, scale), (0, 0)


def mapped_backward(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    dout, dlse, query, key, value, out, lse, mask, causal, scale, asked = args
    rank = query.dim() - (in_dims[2] is not None)
    dout, query, key, value, out = (
        in_front(t, at, info.batch_size, rank)
        for t, at in zip((dout, query, key, value, out), (in_dims[0], *in_dims[2:6]), strict=True)
    )
    lse, dlse = (
        in_front(t, at, info.batch_size, rank - 1) for t, at in zip((lse, dlse), (in_dims[6], in_dims[1]), strict=True)
    )
    # The gradient of a mask is one for every item, so the mask must be too.
    mask = in_front(mask, in_dims[7], info.batch_size, rank) if mask is not None else None
    return attention_backward(dout, dlse, query, key, value, out, lse, mask, causal, scale, asked), (0, 0, 0, 0)


for _name, _work, _fake, _map, _recorded in (
    ("attention", forward, fake, mapped, differentiable(attention, remember, gradients)),
    ("attention_backward", backward, fake_backward, mapped_backward, differentiable(attention_backward, forget, once)),
):
    LIBRARY.impl(_name, _work, "CPU")
    LIBRARY.impl(_name, _recorded, "Autograd", with_keyset=True)
    torch.library.register_fake(f"headwork::{_name}", _fake, lib=LIBRARY)
    torch.library.register_vmap(f"headwork::{_name}", _map, lib=LIBRARY)
