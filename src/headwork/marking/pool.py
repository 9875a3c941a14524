"""A class marked on several cores: in order, with so many students on their way and no more.

This process marks too, so that nothing waits while the others start. Those are started by spawn, each with a marker of
its own and a pipe to this one: they share nothing and mark as one alone would.
"""

from __future__ import annotations

import gc
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from threading import Thread

from headwork.errors import HeadworkError
from headwork.marking.class_marker import ClassMarker, ClassOf, settled
from headwork.marking.marks import Marks
from headwork.marking.one_file import Answers
from headwork.marking.overrides import known_as

AT_ONCE = 10  # students sent together
SENT = 3  # such groups for every other process: one in work and two at hand
WAITING = 100  # students for every process, at most, who are read and wait for those before them
RARELY = 50_000  # objects, for the collector while a class is marked
WORTH_IT = 400  # students from which starting processes pays


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def marked(own: ClassMarker, students: Iterable[Answers], jobs: int, with_working: bool) -> Iterator[Marks]:
    """Everybody's marks, in order. Points set by hand for nobody are told at the end, when everybody is marked."""
    waiting = set(own.sheets.overrides)
    for marks in _marked(own, students, jobs, with_working):
        waiting.difference_update(map(known_as, marks.known_as))
        yield marks
    if waiting:
        raise HeadworkError(f"points are set by hand for '{min(waiting)[:40]}', who handed in nothing; all were marked")


def _marked(own: ClassMarker, students: Iterable[Answers], jobs: int, with_working: bool) -> Iterator[Marks]:
    with _collecting_rarely():
        if jobs == 1:
            yield from map(own.mark, students)
            return
        others: list[Colleague] = []
        try:
            others += (Colleague.at_work(own, with_working) for _ in range(jobs - 1))
            yield from _shared(own, iter(students), others)
        except (EOFError, ConnectionError):
            raise HeadworkError(
                "a process that marks has ended before its work was done, killed or out of memory; try --jobs 1"
            ) from None
        finally:
            for other in others:
                other.process.kill()


@dataclass
class Group:
    """Students who are marked together: their marks, or why there are none, once they are known."""

    size: int
    back: list[Marks] | HeadworkError | None = None

    def marks(self) -> list[Marks]:
        if isinstance(self.back, HeadworkError):
            raise self.back
        return self.back or []


@dataclass
class Colleague:
    """Another process, the pipe to it, and the groups that it has not sent back."""

    process: SpawnProcess
    pipe: Connection
    sent: deque[Group] = field(default_factory=deque)

    @classmethod
    def at_work(cls, own: ClassMarker, with_working: bool) -> Colleague:
        spawn = get_context("spawn")
        pipe, theirs = spawn.Pipe()
        process = spawn.Process(target=_mark, args=(theirs, own.sheets, own.today, with_working), daemon=True)
        with _interrupts_held(), theirs:
            process.start()
        return cls(process, pipe)

    def send(self, students: list[Answers]) -> Group:
        self.sent.append(Group(len(students)))
        self.pipe.send(students)
        return self.sent[-1]

    def collect(self) -> None:
        """Whatever has come back."""
        while self.sent and self.pipe.poll():
            self.sent.popleft().back = self.pipe.recv()


def _shared(own: ClassMarker, rest: Iterator[Answers], others: list[Colleague]) -> Iterator[Marks]:
    """The others have work at hand first; who is next in order and marked goes out; else somebody is marked here."""
    line: deque[Group] = deque()
    most = WAITING * (1 + len(others))
    waiting = 0
    while True:
        for other in others:
            other.collect()
            while len(other.sent) < SENT and waiting + AT_ONCE <= most and (group := list(islice(rest, AT_ONCE))):
                line.append(other.send(group))
                waiting += len(group)
        if not line:
            return
        if line[0].back is not None:
            waiting -= line[0].size
            yield from line.popleft().marks()
        elif waiting < most and (student := next(rest, None)) is not None:
            line.append(_marked_here(own, student))
            waiting += 1
        else:
            wait([other.pipe for other in others if other.sent])


def _marked_here(own: ClassMarker, student: Answers) -> Group:
    """An error waits for its turn, as if it came from another process."""
    try:
        return Group(1, [own.mark(student)])
    except HeadworkError as error:
        return Group(1, error)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process that is started here never sees Ctrl-C: it is for this one, which then ends the others."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """A solved sheet is large, and looking through it for garbage frees nothing."""
    before = gc.get_threshold()
    gc.set_threshold(RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _mark(pipe: Connection, sheets: ClassOf, today: date, with_working: bool) -> None:
    """What another process does: mark every group, as it comes, until there is nobody to send it back to."""
    gc.set_threshold(RARELY)
    groups: SimpleQueue[list[Answers] | None] = SimpleQueue()
    Thread(target=_taken_in, args=(pipe, groups), daemon=True).start()
    marker = ClassMarker(sheets, today)
    while (group := groups.get()) is not None:
        try:
            back: list[Marks] | HeadworkError = [settled(marker.mark(student), with_working) for student in group]
        except HeadworkError as error:
            back = error
        try:
            pipe.send(back)
        except OSError:
            return


def _taken_in(pipe: Connection, groups: SimpleQueue[list[Answers] | None]) -> None:
    """Groups leave the pipe at once: else each side could wait for the other to read."""
    try:
        while True:
            groups.put(pipe.recv())
    except (EOFError, OSError):
        groups.put(None)
