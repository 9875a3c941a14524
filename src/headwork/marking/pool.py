"""A class marked on several cores: in order, with so many students on their way and no more.

This process marks too, so that nothing waits while the others start. Those are started by spawn, each with a marker of
its own: they share nothing and mark as one alone would.
"""

import gc
import os
import signal
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from ctypes import c_byte
from datetime import date
from io import StringIO
from itertools import islice
from multiprocessing import get_context

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
        spawn = get_context("spawn")
        given_up = spawn.RawValue("b", 0)  # without a lock, which a killed process may hold
        pool = ProcessPoolExecutor(jobs - 1, spawn, _start, (own.sheets, own.today, with_working, given_up))
        try:
            yield from _shared(own, students, pool, jobs)
        except BrokenProcessPool:
            raise HeadworkError(
                "a process that marks has ended before its work was done, killed or out of memory; try --jobs 1"
            ) from None
        finally:
            given_up.value = 1
            pool.shutdown(wait=False, cancel_futures=True)


def _shared(own: ClassMarker, students: Iterable[Answers], pool: ProcessPoolExecutor, jobs: int) -> Iterator[Marks]:
    """The others have work at hand first; who is next in order and marked goes out; else somebody is marked here."""
    rest = iter(students)
    line: deque[Future[list[Marks]]] = deque()
    sent: deque[Future[list[Marks]]] = deque()
    waiting = 0
    while True:
        while sent and sent[0].done():
            sent.popleft()
        while (
            len(sent) < SENT * (jobs - 1)
            and waiting + AT_ONCE <= WAITING * jobs
            and (group := list(islice(rest, AT_ONCE)))
        ):
            with _interrupts_held():
                sent.append(pool.submit(_mark, group))
            line.append(sent[-1])
            waiting += len(group)
        if not line:
            return
        late = not line[0].done() and waiting < WAITING * jobs
        if late and (student := next(rest, None)) is not None:
            line.append(_marked_here(own, student))
            waiting += 1
        else:
            marks = line.popleft().result()
            waiting -= len(marks)
            yield from marks


def _marked_here(own: ClassMarker, student: Answers) -> Future[list[Marks]]:
    """An error waits for its turn, as if it came from another process."""
    done: Future[list[Marks]] = Future()
    try:
        done.set_result([own.mark(student)])
    except HeadworkError as error:
        done.set_exception(error)
    return done


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


_marker: ClassMarker
_with_working: bool
_given_up: c_byte


def _start(sheets: ClassOf, today: date, with_working: bool, given_up: c_byte) -> None:
    global _marker, _with_working, _given_up
    sys.stderr = StringIO()  # errors travel with results; a queue that Ctrl-C cut off is nobody's concern
    _marker, _with_working, _given_up = ClassMarker(sheets, today), with_working, given_up
    gc.set_threshold(RARELY)


def _mark(students: list[Answers]) -> list[Marks]:
    """Everybody in a group; nobody any more when it is for nothing."""
    return [settled(_marker.mark(student), _with_working) for student in students if not _given_up.value]
