"""A class marked on several cores: in order, with so many students on their way and no more.

Processes are started by spawn, each with a marker of its own, so they share nothing and mark as one alone would.
"""

import gc
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import date
from itertools import islice
from multiprocessing import get_context

from headwork.errors import HeadworkError
from headwork.marking.class_marker import ClassMarker, ClassOf, settled
from headwork.marking.marks import Marks
from headwork.marking.one_file import Answers
from headwork.marking.overrides import known_as

AT_ONCE = 25  # students sent together
WAITING = 4  # such groups for every process
RARELY = 50_000  # objects, for the collector of a process that does nothing but mark
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
    if jobs == 1:
        yield from map(own.mark, students)
        return
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _start, (own.sheets, own.today, with_working))
    waiting: deque[Future[list[Marks]]] = deque()
    rest = iter(students)
    try:
        while True:
            while len(waiting) < jobs * WAITING and (group := list(islice(rest, AT_ONCE))):
                waiting.append(pool.submit(_mark, group))
            if not waiting:
                return
            yield from waiting.popleft().result()
    except BrokenProcessPool:
        raise HeadworkError(
            "a process that marks has ended before its work was done, killed or out of memory; try --jobs 1"
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


_marker: ClassMarker
_with_working: bool


def _start(sheets: ClassOf, today: date, with_working: bool) -> None:
    global _marker, _with_working
    _marker, _with_working = ClassMarker(sheets, today), with_working
    gc.set_threshold(RARELY)  # a solved sheet is large, and looking through it for garbage frees nothing


def _mark(students: list[Answers]) -> list[Marks]:
    return [settled(_marker.mark(student), _with_working) for student in students]
