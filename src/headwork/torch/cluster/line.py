"""The lines between ranks: tensors sent and received with one wait each, and a failure that names who is gone."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from headwork.torch.cluster.loss import blame, close_lines

# Tags of ours alone: a rank that is in another collective is waited for, never misread.
AGREEMENT, ROWS, GRADIENTS = range(0x4EAD, 0x4EB0)


class Under(NamedTuple):
    """Something under way: the peer, what it is for, the work to wait for (once), and the memory it reads or fills."""

    peer: int
    step: str
    work: Any
    message: Tensor


class Line:
    """This rank's end of the lines of a group."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self.rank = group.rank()
        self.world = group.size()
        self.sent = 0  # bytes, for tests and reports

    def send(self, to: int, message: Tensor, step: str, tag: int = ROWS) -> Under:
        self.sent += message.numel() * message.element_size()
        work = self.tried(to, step, lambda: dist.isend(message, group=self.group, group_dst=to, tag=tag))
        return Under(to, step, work, message)

    def receive(self, source: int, message: Tensor, step: str, tag: int = ROWS) -> Under:
        work = self.tried(source, step, lambda: dist.irecv(message, group=self.group, group_src=source, tag=tag))
        return Under(source, step, work, message)

    def wait(self, under: Under) -> Tensor:
        self.tried(under.peer, under.step, under.work.wait)
        return under.message

    def tried(self, peer: int, step: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except RuntimeError as error:
            found = blame(self.group, peer, step, error)
            close_lines(self.group)
            raise found from error

    def everyone(self, mine: Tensor, step: str) -> list[Tensor]:
        """The tensor of every rank, all of one size: each sends its own to each, so that a silent one is known."""
        found = [torch.empty_like(mine) for _ in range(self.world)]
        found[self.rank] = mine
        self.each_to_each(found, step, AGREEMENT)
        return found

    def each_to_each(self, messages: list[Tensor], step: str, tag: int = ROWS) -> None:
        """This rank's message to every other, and theirs into the others' places; an empty one does not travel."""
        others = [(self.rank + t) % self.world for t in range(1, self.world)]
        mine = messages[self.rank]
        under = [self.receive(peer, messages[peer], step, tag) for peer in others if messages[peer].numel()]
        under += [self.send(peer, mine, step, tag) for peer in others if mine.numel()]
        for one in under:
            self.wait(one)
