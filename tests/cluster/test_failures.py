"""Ranks that disagree, die, hang or stop: the same error everywhere, with the rank's name, in time; never a signal."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.nn.functional import scaled_dot_product_attention

from headwork.errors import HeadworkError
from headwork.torch import context_parallel, ring_attention, shard, unshard
from headwork.torch.cluster import blockwise
from headwork.torch.cluster.loss import REFUSED, default_store
from tests.cluster.ranks import Ended, run

HUNG = 5.0


def call(tokens: int = 24, **options: Any) -> Any:
    q = shard(torch.randn(1, 4, tokens, 8))
    return ring_attention(q, q, q, **options)


def disagree(rank: int, kind: str) -> str:
    """Rank 1 says something else; afterwards the group works as before."""
    torch.manual_seed(0)
    odd = rank == 1
    q = shard(torch.randn(1, 4, 24, 8))
    options: dict[str, Any] = {}
    if odd and kind == "dtype":
        q = q.double()
    if odd and kind == "shape":
        q = q[:, :2]
    if odd and kind == "rows":
        q = q[:, :, 1:]
    if odd and kind == "option":
        options = {"causal": True}
    if odd and kind == "gradients":
        q = q.requires_grad_()
    if kind == "documents":
        options = {"offsets": [0, 10 + odd, 24]}
    if odd and kind == "a bad window":
        options = {"window": "wide"}
    if odd and kind == "no tensor":
        q = None
    if odd and kind == "split":
        options = {"split": "contiguous"}
    if odd and kind == "no numbers":
        options = {"offsets": "abc"}
    if odd and kind == "scale":
        options = {"scale": "x"}
    said = ""
    try:
        ring_attention(q, q, q, **options)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    call()
    return said


KINDS = {
    "dtype": "rank 1 of 3 has dtype torch.float64",
    "shape": "rank 1 of 3 has shape of query without tokens [1, 2, 8]",
    "rows": "rank 0 of 3, rank 1 of 3: the ranks hold [8, 7, 8] rows of query, but zigzag lays 23 out as [7, 8, 8]",
    "option": "rank 1 of 3 has causal true",
    "gradients": "rank 1 of 3 has gradients asked for true",
    "documents": "rank 1 of 3 has offsets",
    "a bad window": "rank 1 of 3: window is 'wide'",
    "no tensor": "rank 1 of 3: query is None",
    "split": "rank 1 of 3 has split contiguous",
    "no numbers": "rank 1 of 3: ",
    "scale": "rank 1 of 3: scale is 'x'",
}


def disagree_about_rows(rank: int, kind: str) -> str:
    """The same where whole tensors are put together, where tensors are placed, and in torch's function."""
    mesh, q = init_device_mesh("cpu", (3,)), shard(torch.randn(1, 4, 24, 8))
    odd = rank == 1
    try:
        if kind == "unshard":
            unshard(q, dim=7 if odd else -2)
        elif kind == "nothing to unshard":
            unshard(None if odd else q)
        elif kind == "mask":
            with context_parallel():
                scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(8, 8) if odd else None)
        else:
            placed = DTensor.from_local(q, mesh, [Replicate() if odd and kind == "placement" else Shard(2)])
            value = q if odd and kind == "a plain tensor" else placed
            ring_attention(placed, placed, value, group=mesh if odd and kind == "group and mesh" else None)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        call()
    return ""


ROWS = {
    "unshard": "rank 1 of 3: dim is 7, but x has 4 axes",
    "nothing to unshard": "rank 1 of 3: x is a NoneType",
    "mask": "rank 1 of 3: attn_mask within context_parallel",
    "placement": "rank 1 of 3: query is placed (Replicate(),): shard the tokens",
    "a plain tensor": "rank 1 of 3: some of query, key, value are DTensors and some are not",
    "group and mesh": "rank 1 of 3: DTensors say themselves over which ranks they lie",
}


def all_kinds(rank: int) -> list[str]:
    return [disagree(rank, kind) for kind in KINDS] + [disagree_about_rows(rank, kind) for kind in ROWS]


def test_a_disagreement_is_the_same_error_on_every_rank_and_names_the_rank() -> None:
    ended = run(3, all_kinds)
    assert [one.error for one in ended] == [""] * 3
    for number, (kind, words) in enumerate({**KINDS, **ROWS}.items()):
        said = [one.result[number] for one in ended]
        assert len(set(said)) == 1, (kind, said)
        assert said[0].startswith("HeadworkError"), said
        assert words in said[0], said


def lose(rank: int, lost: int, how: str, when: str) -> None:
    """One rank is lost before the call or in the middle of it."""

    def go() -> None:
        if how == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "hangs":
            os.kill(os.getpid(), signal.SIGSTOP)
        if how == "sleeps":
            time.sleep(600)
        raise MemoryError("no more memory")

    call()
    if rank == lost and when == "before":
        go()
    if rank == lost:
        real, calls = blockwise.forward, [0]

        def stops(*args: Any) -> None:
            calls[0] += 1
            if calls[0] == 2:
                go()
            real(*args)

        setattr(blockwise, "forward", stops)  # noqa: B010  # to the checker a module has no names to set
    q = shard(torch.randn(1, 4, 64, 8)).requires_grad_()
    out = ring_attention(q, q, q)
    assert isinstance(out, torch.Tensor)
    out.sum().backward()


def check_lost(ended: list[Ended], lost: int, words: str, least: float, most: float) -> None:
    for rank, one in enumerate(ended):
        if rank == lost:
            continue
        assert one.code == 0, "no signal"
        assert one.error.startswith(f"RankLost: rank {lost} of {len(ended)} {words}"), one
        assert least <= one.seconds <= most, one


@pytest.mark.parametrize("lost", [0, 2])
@pytest.mark.parametrize("when", ["before", "within"])
def test_a_dead_rank_is_named_at_once(lost: int, when: str) -> None:
    check_lost(run(3, lose, lost, "dies", when, lost=lost), lost, "is gone", 0, 10)


@pytest.mark.parametrize(
    ("lost", "how", "when"), [(1, "hangs", "before"), (2, "sleeps", "within"), (0, "hangs", "within")]
)
def test_a_hung_rank_is_named_after_the_groups_timeout(lost: int, how: str, when: str) -> None:
    ended = run(3, lose, lost, how, when, timeout=HUNG, lost=lost)
    check_lost(ended, lost, f"did not answer within {HUNG:g} s", HUNG - 0.5, 10)


def test_a_rank_that_stops_in_the_middle_says_why() -> None:
    ended = run(3, lose, 1, "stops", "within")
    check_lost(ended, 1, "stopped in the middle of a call: MemoryError: no more memory", 0, 10)
    assert ended[1].error == "MemoryError: no more memory"


def without_a_group(rank: int, goes_on: bool) -> None:
    """Rank 1 names its group wrongly: nobody can know which ranks it should tell."""
    try:
        call(group="cp" if rank == 1 else None)
    except HeadworkError:
        if rank == 1 and goes_on:
            time.sleep(600)
        raise


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_rank_that_cannot_name_its_group_is_named_with_the_reason(goes_on: bool) -> None:
    ended = run(3, without_a_group, goes_on, timeout=HUNG, lost=1 if goes_on else -1)
    told = "rank 1 of 3: group is a str. Give a process group"
    assert ended[1].error.startswith("HeadworkError: group is a str" if not goes_on else "never ended")
    for rank in (0, 2):
        assert ended[rank].code == 0
        assert ended[rank].error.startswith(f"RankLost: {told}"), ended[rank]
        assert ended[rank].seconds < 10


def same_mistake(rank: int) -> str:
    """What all ranks do wrongly is told at once, and leaves nothing behind."""
    said = ""
    try:
        call(group="cp")
    except HeadworkError as error:
        said = str(error)
    call()
    return f"{said} {default_store().check([f'{REFUSED}/{rank}'])}"


def test_a_group_that_all_name_wrongly_costs_no_wait() -> None:
    for one in run(2, same_mistake):
        assert one.result is not None, one.error
        assert one.result.startswith("group is a str"), one
        assert one.result.endswith(" False"), "the word is taken back"


def alone(rank: int) -> str:
    try:
        ring_attention(torch.eye(2)[None], torch.eye(2)[None], torch.eye(2)[None], group=dist.new_group([0]))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def test_a_rank_outside_the_group_is_told() -> None:
    ended = run(2, alone)
    assert ended[0].result == "no error"
    assert "not in the group" in ended[1].result
