"""What somebody else would do: fewer rows than ranks, some of all ranks, odd strides, some gradients, threads."""

from __future__ import annotations

import threading
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import headwork.torch as hw
from headwork.errors import HeadworkError
from headwork.torch.cluster import blockwise
from tests.cluster.cases import Case, by_hand, worked
from tests.cluster.ranks import results

CAUSAL = Case("causal", {"causal": True}, tokens=37)


def apart(found: Any, right: Any, group: Any = None) -> float:
    """How far rows of this rank are from those of a whole that everyone has."""
    pairs = [(a.detach().double(), hw.shard(b.detach(), group)) for a, b in zip(found, right, strict=True)]
    return max(float((a - b).abs().max()) if a.numel() else 0.0 for a, b in pairs)


def with_gradients(mine: list[Tensor], above: Tensor, **options: Any) -> list[Tensor]:
    mine = [x.requires_grad_() for x in mine]
    out: Any = hw.ring_attention(mine[0], mine[1], mine[2], causal=True, **options)
    return [out, *torch.autograd.grad(out, mine, above)]


def fewer_rows_than_ranks(rank: int) -> float:
    worst = 0.0
    for tokens in (1, 2):
        inputs, above, right = worked(Case("few", {"causal": True}, tokens=tokens))
        for method in ("exchange", "ulysses", "gather", "auto"):
            found = with_gradients([hw.shard(x) for x in inputs], hw.shard(above), method=method)
            worst = max(worst, apart(found, right))
            found = with_gradients([hw.shard(x)[0] for x in inputs], hw.shard(above)[0], method=method)
            worst = max(worst, apart([x[None] for x in found], right))
    nothing = with_gradients([torch.zeros(1, 4, 0, 8) for _ in range(3)], torch.zeros(1, 4, 0, 8))
    assert [tuple(x.shape) for x in nothing] == [(1, 4, 0, 8)] * 4
    return worst


def some_ranks(rank: int) -> float:
    """Ranks 0 and 2 are one group, rank 1 another, at the same time."""
    inputs, above, right = worked(CAUSAL)
    groups = [dist.new_group([0, 2]), dist.new_group([1])]
    mine = groups[rank % 2]
    found = with_gradients([hw.shard(x, mine) for x in inputs], hw.shard(above, mine), group=mine)
    return apart(found, right, mine)


def strides(rank: int) -> float:
    """Heads behind tokens, gaps between numbers, one head for all, a gradient that is one number."""
    inputs, above, right = worked(CAUSAL)
    turned = [hw.shard(x).transpose(1, 2).contiguous().transpose(1, 2) for x in inputs]
    across = hw.shard(above).transpose(-1, -2).contiguous().transpose(-1, -2)
    worst = apart(with_gradients(turned, across), right)
    gaps = [torch.stack([hw.shard(x)] * 2, -1)[..., 0] for x in inputs]
    worst = max(worst, apart(with_gradients(gaps, hw.shard(above)), right))
    one = inputs[1][:, :1].expand(-1, 4, -1, -1)
    mine = hw.shard(inputs[1])[:, :1].expand(-1, 4, -1, -1)
    same, _ = by_hand(inputs[0], one, one, CAUSAL.options)
    got: Any = hw.ring_attention(hw.shard(inputs[0]), mine, mine, causal=True)
    exact = [x.clone().requires_grad_() for x in inputs]
    by_hand(exact[0], exact[1], exact[2], CAUSAL.options)[0].sum().backward()
    rows = [hw.shard(x).requires_grad_() for x in inputs]
    hw.ring_attention(rows[0], rows[1], rows[2], causal=True).sum().backward()  # type: ignore[union-attr]  # no lse asked for
    return max(worst, apart([got], [same]), apart([x.grad for x in rows], [x.grad for x in exact]))


def some_gradients(rank: int) -> float:
    """Of one input alone, of another on every rank too."""
    inputs, above, right = worked(CAUSAL)
    worst = 0.0
    for which in (0, 1, 2, rank % 3):
        mine = [hw.shard(x).requires_grad_(i == which) for i, x in enumerate(inputs)]
        out: Any = hw.ring_attention(mine[0], mine[1], mine[2], causal=True)
        (gradient,) = torch.autograd.grad(out, mine[which], hw.shard(above))
        worst = max(worst, apart([out, gradient], [right[0], right[1 + which]]))
    return worst


def without_gradients(rank: int) -> float:
    inputs, _, right = worked(CAUSAL)
    mine = [hw.shard(x).requires_grad_() for x in inputs]
    with torch.no_grad():
        quiet: Any = hw.ring_attention(mine[0], mine[1], mine[2], causal=True)
    assert not quiet.requires_grad
    with torch.inference_mode():
        inferred: Any = hw.ring_attention(*(hw.shard(x) for x in inputs), causal=True)
        return apart([quiet, inferred], [right[0]] * 2)


def under_use(rank: int) -> float:
    """torch's function is ours then; over ranks in the block alone."""
    inputs, above, right = worked(CAUSAL)
    with hw.use():
        found = with_gradients([hw.shard(x) for x in inputs], hw.shard(above))
        with hw.context_parallel():
            q, k, v = (hw.shard(x) for x in inputs)
            rows = scaled_dot_product_attention(q, k, v, is_causal=True)
        whole = scaled_dot_product_attention(inputs[0], inputs[1], inputs[2], is_causal=True)
    return max(apart(found, right), apart([rows], right[:1]), float((whole - right[0]).abs().max()))


def other_lengths(rank: int) -> float:
    """Queries of one text, keys of another; three axes, and five."""
    torch.manual_seed(1)
    q, k = torch.randn(1, 4, 37, 8, dtype=torch.float64), torch.randn(1, 4, 11, 8, dtype=torch.float64)
    right = scaled_dot_product_attention(q, k, k)
    mine = [hw.shard(x) for x in (q, k, k)]
    three: Any = hw.ring_attention(mine[0][0], mine[1][0], mine[2][0])
    found = [hw.ring_attention(mine[0], mine[1], mine[2]), three[None]]
    five: Any = hw.ring_attention(*(x.expand(2, 3, 1, *x.shape[1:])[:, :, 0] for x in mine))
    return apart([*found, five[1, 2][None]], [right] * 3)


def a_group_for_each_thread(rank: int) -> float:
    inputs, _, _ = worked(CAUSAL)
    groups, worst, wrong = [dist.new_group() for _ in range(2)], [0.0, 0.0], []

    def work(number: int) -> None:
        mine = [x * (number + 1) for x in inputs]
        right, _ = by_hand(mine[0], mine[1], mine[2], CAUSAL.options)
        try:
            for _ in range(5):
                with hw.context_parallel(groups[number], split=("zigzag", "contiguous")[number]):
                    rows = [hw.shard(x).requires_grad_() for x in mine]
                    out = scaled_dot_product_attention(rows[0], rows[1], rows[2], is_causal=True)
                    out.sum().backward()
                    worst[number] = max(worst[number], apart([out], [right]))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong, wrong
    return max(worst)


def one_group_for_two_threads(rank: int) -> float:
    """A call that comes while another is under way is refused; the first one is right."""
    inputs, _, right = worked(CAUSAL)
    mine = [hw.shard(x) for x in inputs]
    real, inside, done = blockwise.forward, threading.Event(), threading.Event()

    def waits(*args: Any) -> None:
        inside.set()
        done.wait()
        real(*args)

    setattr(blockwise, "forward", waits)  # noqa: B010  # to the checker a module has no names to set
    found: list[Any] = []
    first = threading.Thread(target=lambda: found.append(hw.ring_attention(mine[0], mine[1], mine[2], causal=True)))
    first.start()
    inside.wait()
    try:
        hw.ring_attention(mine[0], mine[1], mine[2], causal=True)
        said = ""
    except HeadworkError as error:
        said = str(error)
    done.set()
    first.join()
    setattr(blockwise, "forward", real)  # noqa: B010
    assert said.startswith("another thread is in a call over this group"), said
    return apart(found, right[:1])


def narrowed(rank: int) -> float:
    """Under autocast the call is worked in bfloat16."""
    inputs, _, _ = worked(CAUSAL, torch.bfloat16)
    q, k, v = (x.double() for x in inputs)
    right, _ = by_hand(q, k, v, CAUSAL.options)
    with torch.autocast("cpu", torch.bfloat16), hw.context_parallel():
        q, k, v = (hw.shard(x.float()) for x in inputs)
        out = scaled_dot_product_attention(q, k, v, is_causal=True)
    assert out.dtype == torch.bfloat16
    return apart([out], [right]) * 1e-10  # to the bound of the others: 1e-2


KINDS = (
    fewer_rows_than_ranks, some_ranks, strides, some_gradients, without_gradients, under_use, other_lengths, narrowed,
    a_group_for_each_thread, one_group_for_two_threads,
)  # fmt: skip


def all_kinds(rank: int) -> dict[str, float]:
    return {kind.__name__: kind(rank) for kind in KINDS}


def test_what_somebody_else_would_do() -> None:
    for found in results(3, all_kinds):
        assert not {kind: worst for kind, worst in found.items() if not worst < 1e-12}
