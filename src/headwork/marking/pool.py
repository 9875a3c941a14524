"""A class marked on several cores: in order, with so many students on their way and no more.

This process marks too, so that nothing waits while the others start. Those are started by spawn, each with a marker of
its own and a pipe to this one: they share nothing and mark as one alone would.
"""

import gc
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from itertools import islice
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from threading import Thread
from types import ModuleType

from headwork.errors import HeadworkError
from headwork.marking.class_marker import ClassMarker, ClassOf, settled
from headwork.marking.marks import Marks, known_as
from headwork.marking.one_file import Answers

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
        others = [Colleague(own.sheets, own.today, with_working) for _ in range(jobs - 1)]
        try:
            yield from _shared(own, iter(students), others)
        finally:
            for other in others:
                other.end()


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
    """Another process, the pipe to it, and the groups that it has not sent back. It is started when there is something
    to send it: a small class keeps few busy, however many there may be."""

    sheets: ClassOf
    today: date
    with_working: bool
    process: SpawnProcess | None = None
    sent: deque[Group] = field(default_factory=deque)

    @cached_property
    def pipe(self) -> Connection:
        spawn = get_context("spawn")
        try:
            pipe, theirs = spawn.Pipe()
            given = (theirs, self.sheets, self.today, self.with_working)
            process = spawn.Process(target=_mark, args=given, daemon=True)
            with theirs, _interrupts_held(), _without_main():
                process.start()
        except OSError as error:
            raise HeadworkError(f"no more processes can be started ({error.strerror}); try fewer --jobs") from None
        self.process = process
        return pipe

    def send(self, students: list[Answers]) -> Group:
        self.sent.append(Group(len(students)))
        with _heard_of():
            self.pipe.send(students)
        return self.sent[-1]

    def collect(self) -> None:
        """Whatever has come back."""
        with _heard_of():
            while self.sent and self.pipe.poll():
                self.sent.popleft().back = self.pipe.recv()

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()


@contextmanager
def _heard_of() -> Iterator[None]:
    """A pipe that ends, between messages or within one, tells that its process has."""
    try:
        yield
    except (EOFError, OSError):
        raise HeadworkError(
            "a process that marks has ended before its work was done, killed or out of memory; try --jobs 1"
        ) from None


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
            line.append(Group(1, _attempted(own.mark, [student])))
            waiting += 1
        else:
            wait([other.pipe for other in others if other.sent])


def _attempted(mark: Callable[[Answers], Marks], students: list[Answers]) -> list[Marks] | HeadworkError:
    """An error waits for its turn, wherever it comes from."""
    try:
        return [mark(student) for student in students]
    except HeadworkError as error:
        return error


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process that is started here never sees Ctrl-C: it is for this one, which then ends the others."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which starts with the first process otherwise, and lets interrupts through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """A process that is started here does not run the main program again: that may be a script that would start more
    of them, or nothing that can be run twice, such as what was typed in or piped in."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


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
        back = _attempted(lambda student: settled(marker.mark(student), with_working), group)
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
