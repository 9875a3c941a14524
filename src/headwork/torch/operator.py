"""Our kernel as torch's operators: `headwork::attention` and its gradients, for autograd, compilers and transforms."""

from collections.abc import Callable
from typing import Any

import torch
from torch import _C, Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd.function import _SingleLevelFunction

from headwork.engine.block_mask import BlockMask
from headwork.errors import HeadworkError
from headwork.torch.calls import Biases, Saved, What, accumulator, backward_into, forward_into, sink_gradient
from headwork.torch.report import count_compiled

NO_LSE, LSE, FINE_LSE = 0, 1, 2  # none; in the type of the sums; in float64, for gradients

LIBRARY = torch.library.Library("headwork", "DEF")
WHAT = (
    "Tensor? mask, Tensor? sinks, Tensor? slopes, Tensor? table, Tensor? spans, Tensor? seed, bool swapped, "
    "SymInt offset, SymInt left, SymInt right, float scale, float softcap, float dropout"
)
LIBRARY.define(
    f"attention(Tensor query, Tensor key, Tensor value, {WHAT}, int lse) -> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
LIBRARY.define(
    "attention_backward(Tensor dout, Tensor? dlse, Tensor query, Tensor key, Tensor value, Tensor out, Tensor lse, "
    f"{WHAT}, bool[] asked) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
attention = torch.ops.headwork.attention.default
attention_backward = torch.ops.headwork.attention_backward.default


def fresh(query: Tensor, key: Tensor, value: Tensor, what: What, lse: int) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp, empty. A caller that stores heads within tokens gets them so again.

    For gradients the log-sum-exp is float64: of scores in the hundreds a float keeps too few digits.
    """
    rows = query.shape[:-1]
    if what.spans is not None and query.dim() == 3:  # packed: what lies in no sequence is not written
        out = query.new_zeros((*rows, value.shape[-1]))
    else:
        alike = value.shape[-1] == query.shape[-1]
        out = torch.empty_like(query) if alike else query.new_empty((*rows, value.shape[-1]))
    if what.swapped and len(rows) > 1:
        rows = (*rows[:-2], rows[-1], rows[-2])
    dtype = torch.float64 if lse == FINE_LSE else accumulator(query)
    return out, query.new_empty(rows if lse else (0,), dtype=dtype)


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    biases: Biases,
    what: What,
    lse: int = FINE_LSE,
    blocks: BlockMask | None = None,
) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp, which is empty where it is not asked for."""
    out, rows = fresh(query, key, value, what, lse)
    if out.numel() or rows.numel():
        forward_into(out, rows if lse else None, query, key, value, biases, what, blocks=blocks)
    return out, rows


def backward(
    dout: Tensor,
    dlse: Tensor | None,
    saved: Saved,
    biases: Biases,
    what: What,
    asked: list[bool],
    blocks: BlockMask | None = None,
) -> tuple[Tensor, ...]:
    """The gradients of query, key, value, mask, sinks, slopes and table; one that is not asked for is empty."""
    dq, dk, dv, dmask, dsinks, dslopes, dtable = fresh_gradients(saved[:3], biases, what, asked)
    if asked[1] and biases.sinks is not None:
        dsinks = sink_gradient(biases.sinks, dout, dlse, *saved[3:], what.swapped and dq.dim() > 2)
    of_mask, of_slopes, of_table = (x if x.numel() else None for x in (dmask, dslopes, dtable))
    of_biases = Biases(of_mask, None, of_slopes, of_table)
    backward_into((dq, dk, dv), of_biases, dout, dlse, saved, biases, what, blocks)
    return (dq, dk, dv, dmask if biases.mask is None else dmask.to(biases.mask.dtype), dsinks, dslopes, dtable)


def fresh_gradients(three: tuple[Tensor, ...], biases: Biases, what: What, asked: list[bool]) -> tuple[Tensor, ...]:
    # A key that no batch item counts as real, and a row of no sequence, is in no span and never written.
    like = torch.empty_like if what.spans is None else torch.zeros_like
    query, dtype = three[0], accumulator(three[0])
    shapes = [b.shape if b is not None and a else (0,) for b, a in zip(biases, asked, strict=True)]
    rest = [query.new_zeros(shape, dtype=dtype) for shape in shapes]
    return (*map(like, three), *rest)


def gathered(flat: tuple[Any, ...]) -> tuple[Biases, What]:
    return Biases(*flat[:4]), What(*flat[4:])


def on_cpu(query: Tensor, key: Tensor, value: Tensor, *flat: Any) -> tuple[Tensor, Tensor]:
    count_compiled("headwork::attention")
    return forward(query, key, value, *gathered(flat[:-1]), flat[-1])


def backward_on_cpu(*flat: Any) -> tuple[Tensor, ...]:
    return backward(flat[0], flat[1], flat[2:7], *gathered(flat[7:-1]), flat[-1])


def fake(query: Tensor, key: Tensor, value: Tensor, *flat: Any) -> tuple[Tensor, Tensor]:
    return fresh(query, key, value, gathered(flat[:-1])[1], flat[-1])


def fake_backward(*flat: Any) -> tuple[Tensor, ...]:
    biases, what = gathered(flat[7:-1])
    found = fresh_gradients(flat[2:5], biases, what, flat[-1])
    mask = found[3] if biases.mask is None else found[3].to(biases.mask.dtype)
    return (*found[:3], mask, *found[4:])


def remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """Inputs as the operator has them, without the last one."""
    *tensors, spans, seed = inputs[:9]
    ctx.numbers = inputs[9:16]
    ctx.save_for_backward(*tensors, spans, seed, *output)
    ctx.set_materialize_grads(False)


def gradients(
    ctx: Any, dout: Tensor | None, dlse: Tensor | None, at_once: bool = False, blocks: BlockMask | None = None
) -> tuple[Any, ...]:
    """Those of the operator's first seven arguments. A call with blocks goes at once."""
    query, key, value, *four, spans, seed, out, lse = ctx.saved_tensors
    if dout is None and dlse is None:
        return (None,) * 7
    dout = torch.zeros_like(out) if dout is None else dout
    dlse = None if dlse is None else dlse.to(accumulator(query))
    asked = [bool(need) for need in ctx.needs_input_grad[3:7]]
    biases, what = Biases(*four), What(spans, seed, *ctx.numbers)
    saved = (query, key, value, out, lse)
    if at_once:
        found = backward(dout, dlse, saved, biases, what, asked, blocks)
    else:
        found = attention_backward(dout, dlse, *saved, *biases, *what, asked)
    return (*found[:3], *(x if need else None for x, need in zip(found[3:], asked, strict=True)))


def all_gradients(ctx: Any, dout: Tensor | None, dlse: Tensor | None) -> tuple[Any, ...]:
    return (*gradients(ctx, dout, dlse), *(None,) * 10)


def once(ctx: Any, *upward: Any) -> tuple[Any, ...]:
    raise HeadworkError(
        "our attention has no second derivatives. For this call use torch's own: "
        "torch.nn.functional.scaled_dot_product_attention under torch.nn.attention.sdpa_kernel(SDPBackend.MATH)."
    )


def forget(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)


def with_fine_lse(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The forward pass as gradients need it; nobody else has to ask for a fine log-sum-exp."""
    return (*inputs[:-1], FINE_LSE)


def differentiable(
    operator: Any,
    setup: Callable[..., None],
    slope: Callable[..., tuple[Any, ...]],
    prepared: Callable[[tuple[Any, ...]], tuple[Any, ...]] = tuple,
) -> Any:
    """What the operator does at the dispatcher's key for autograd; `prepared` are its inputs where it is recorded.

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
            return Recorded.apply(*prepared(inputs), keyset)

    return recorded


def register(name: str, work: Any, pretend: Any, recorded: Any) -> None:
    LIBRARY.impl(name, work, "CPU")
    LIBRARY.impl(name, recorded, "Autograd", with_keyset=True)
    torch.library.register_fake(f"headwork::{name}", pretend, lib=LIBRARY)


register("attention", on_cpu, fake, differentiable(attention, remember, all_gradients, with_fine_lse))
register("attention_backward", backward_on_cpu, fake_backward, differentiable(attention_backward, forget, once))
