"""The call as torch's operators, `headwork::ring_attention` and its gradients: a compiler and checkpoints keep them
whole, with the group's name as text.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from threading import Lock
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from headwork.errors import HeadworkError
from headwork.torch.calls import accumulator
from headwork.torch.cluster import exchange, ulysses
from headwork.torch.cluster.agreement import agree, check_held
from headwork.torch.cluster.blockwise import Gradients, KeyGradients, Partial
from headwork.torch.cluster.call import Call, description, ends_of
from headwork.torch.cluster.cost import chosen, sizes_of
from headwork.torch.cluster.line import Line
from headwork.torch.cluster.loss import RankLost, close_lines, stop
from headwork.torch.cluster.reading import Reading, reading
from headwork.torch.cluster.splits import named
from headwork.torch.operator import LIBRARY, once
from headwork.torch.path import Path
from headwork.torch.report import count

LIBRARY.define(
    "ring_attention(Tensor query, Tensor key, Tensor value, Tensor? offsets, str call, str group) -> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
LIBRARY.define(
    "ring_attention_backward(Tensor dout, Tensor? dlse, Tensor query, Tensor key, Tensor value, Tensor out, "
    "Tensor lse, Tensor? offsets, str call, str group) -> (Tensor, Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
ring_attention = torch.ops.headwork.ring_attention.default
ring_attention_backward = torch.ops.headwork.ring_attention_backward.default
sent: dict[str, int] = {}  # bytes that the last call sent, by the group's name
under_way: set[str] = set()  # groups that a call is under way in
entering = Lock()


def line_of(group: str) -> Line:
    return Line(dist.distributed_c10d._resolve_process_group(group))


def agreed(line: Line, name: str, call: Call, offsets: Tensor | None, four: tuple[Tensor, Tensor, Tensor]) -> Reading:
    """Who reads whom, after all ranks have said the same."""
    held = agree(line, description(name, call, offsets, four), four[0].shape[2], four[1].shape[2])
    tokens, keys = sum(held.tokens), sum(held.keys)
    if tokens != keys and (call.scores.window != (-1, -1) or offsets is not None):
        raise HeadworkError(
            f"the ranks have {tokens} tokens and {keys} keys together: causal order, a window and offsets ask for as "
            "many of both."
        )
    found = reading(tokens, keys, line.world, call.split, call.scores.window, ends_of(offsets, tokens))
    for what, mine, rows in (("query", found.tokens, held.tokens), ("key", found.keys, held.keys)):
        check_held(line, rows, mine, named(call.split), what)
    return found


def way_of(call: Call, found: Reading, query: Tensor, key: Tensor, value: Tensor) -> str:
    return chosen(found, sizes_of(query, key, value)) if call.method == "auto" else call.method


def one_at_a_time(work: Callable[..., Any]) -> Callable[..., Any]:
    """Rows of two calls that are under way in one group at once could be taken for each other's."""

    def guarded(*args: Any) -> Any:
        group: str = args[-1]
        with entering:
            if group in under_way:
                error = HeadworkError(
                    "another thread is in a call over this group: calls come one after another, in the same order on "
                    "all ranks. Give each thread a group of its own, torch.distributed.new_group()."
                )
                stop(line_of(group).group, error)
                raise error
            under_way.add(group)
        try:
            return work(*args)
        finally:
            under_way.discard(group)

    return guarded


@contextmanager
def whole(line: Line) -> Iterator[None]:
    """A rank that cannot go on in the middle of a call says so before others wait for it."""
    try:
        yield
    except RankLost:
        raise
    except BaseException as error:
        if line.world > 1:
            stop(line.group, error)
            close_lines(line.group)
        raise


def four_axes(*tensors: Tensor) -> tuple[Tensor, ...]:
    """(…, heads, tokens, d) with all leading axes as one batch."""
    return tuple(tensor.reshape(prod(tensor.shape[:-3]), *tensor.shape[-3:]) for tensor in tensors)


def forward(
    query: Tensor, key: Tensor, value: Tensor, offsets: Tensor | None, text: str, group: str
) -> tuple[Tensor, Tensor]:
    call, line = Call.of(text), line_of(group)
    q, k, v = four_axes(query, key, value)
    found = agreed(line, "ring_attention", call, offsets, (q, k, v))
    out, lse = fake(query, key, value, offsets, text, group)
    way = way_of(call, found, q, k, v)
    count("ring_attention", Path("ring", f"{way} over {line.world} ranks, {named(call.split)}"))
    with whole(line):
        into = Partial(
            q.new_zeros((*q.shape[:3], v.shape[3]), dtype=accumulator(q)),
            q.new_full(q.shape[:3], -torch.inf, dtype=torch.float64),
        )
        if way == "ulysses":
            ulysses.forward(line, found, call.scores, q, k, v, into)
        else:
            ahead = line.world if way == "gather" else 1
            exchange.forward(line, found, call.scores, q, k, v, into, ahead)
    sent[group] = line.sent
    return into.out.reshape(out.shape).to(out.dtype), into.lse.reshape(lse.shape)


def backward(
    dout: Tensor,
    dlse: Tensor | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    offsets: Tensor | None,
    text: str,
    group: str,
) -> tuple[Tensor, Tensor, Tensor]:
    call, line = Call.of(text), line_of(group)
    q, k, v, d_out, result = four_axes(query, key, value, dout, out)
    sums = lse.reshape(q.shape[:3])
    found = agreed(line, "the backward of ring_attention", call, offsets, (q, k, v))
    with whole(line):
        dtype = accumulator(q)
        delta = (d_out.to(dtype) * result.to(dtype)).sum(-1)
        if dlse is not None:
            delta -= dlse.reshape(delta.shape)
        d_q, d_k, d_v = (torch.zeros(x.shape, dtype=dtype, device=x.device) for x in (q, k, v))
        mine, keys = Gradients(q, d_out, sums, delta, d_q), KeyGradients(k, v, d_k, d_v)
        way = way_of(call, found, q, k, v)
        if way == "ulysses":
            ulysses.backward(line, found, call.scores, mine, keys)
        else:
            ahead = line.world if way == "gather" else 1
            exchange.backward(line, found, call.scores, mine, keys, ahead)
    sent[group] = line.sent
    wanted = zip((d_q, d_k, d_v), (query, key, value), strict=True)
    d_query, d_key, d_value = (gradient.reshape(x.shape).to(x.dtype) for gradient, x in wanted)
    return d_query, d_key, d_value


def fake(
    query: Tensor, key: Tensor, value: Tensor, offsets: Tensor | None, text: str, group: str
) -> tuple[Tensor, Tensor]:
    rows = query.shape[:-1]
    return query.new_empty((*rows, value.shape[-1])), query.new_empty(rows, dtype=torch.float64)


def fake_backward(dout: Tensor, dlse: Tensor | None, *others: Any) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = (x.new_empty(x.shape) for x in others[:3])
    return query, key, value


def remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.call, ctx.group = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.set_materialize_grads(False)


def gradients(ctx: Any, dout: Tensor | None, dlse: Tensor | None) -> tuple[Any, ...]:
    query, key, value, offsets, out, lse = ctx.saved_tensors
    dout = torch.zeros_like(out) if dout is None else dout
    found = ring_attention_backward(dout, dlse, query, key, value, out, lse, offsets, ctx.call, ctx.group)
    return (*found, None, None, None)


for _name, _work, _pretend, _setup, _slope in (
    ("ring_attention", forward, fake, remember, gradients),
    ("ring_attention_backward", backward, fake_backward, None, once),
):
    LIBRARY.impl(_name, one_at_a_time(_work), "CPU")
    torch.library.register_fake(f"headwork::{_name}", _pretend, lib=LIBRARY)
    torch.library.register_autograd(f"headwork::{_name}", _slope, setup_context=_setup, lib=LIBRARY)
