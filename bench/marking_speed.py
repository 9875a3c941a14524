"""A class of 1,000 on a two-head sheet, one core: seconds and memory.

    python bench/marking_speed.py

A third of the class is right, a third carries one planted mistake through, a third wrote wrong numbers. Every mark
is checked: who is right earns every point, and who is not does not. The class is marked twice over, to show that the
memory does not grow with it.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator

import numpy as np
from planting import Desk, texts

from headwork.marking import pool
from headwork.marking.answers import Answers
from headwork.marking.class_marker import ClassOf
from headwork.marking.marks import Marks
from headwork.mistakes.make import Plan, new_sheet
from headwork.sheets.save import sheet_toml

SECONDS = 5.0  # for 1,000 students on one core
FASTER = 1.7  # with two jobs


def students(desk: Desk, number: int) -> Iterator[tuple[bool, Answers]]:
    """One after the other, each made when asked for."""
    right = desk.right()
    graphs = [graph for _, graph in desk.diagnosis.single]
    generator = np.random.default_rng(0)
    for i in range(number):
        if i % 3 == 0:
            yield True, texts(right, 2)
        elif i % 3 == 1:
            yield False, texts(desk.with_graph(graphs[i % len(graphs)]), 2)
        else:
            yield False, texts({key: matrix + generator.normal(0, 2, matrix.shape) for key, matrix in right.items()}, 2)


def marked(desk: Desk, number: int) -> float:
    """Seconds spent marking, the making of answers not counted."""
    spent = 0.0
    for right, answers in students(desk, number):
        start = time.perf_counter()
        marks = desk.marker.mark(answers)
        spent += time.perf_counter() - start
        if (marks.score == marks.max_score) != right:
            raise AssertionError(f"marked {marks.score} of {marks.max_score}, but right is {right}")
    return spent


def memory() -> float:
    """The most this process has held so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def on_jobs(sheets: ClassOf, answers: list[Answers], jobs: int) -> tuple[float, list[Marks]]:
    """Seconds for a class that is read already, starting the processes included, and its marks."""
    start = time.perf_counter()
    marks = list(pool.marked(sheets, answers, jobs, with_working=False))
    return time.perf_counter() - start, marks


def main(number: int, many: int) -> int:
    sheet = new_sheet(Plan("multi_head", 3, 2, 6, mask="causal"))
    desk = Desk(sheet)
    first = marked(desk, number)
    held = memory()
    marked(desk, 4 * number)
    grown = memory() - held
    print(f"{number:,} students: {first:.2f} s, {first / number * 1e3:.2f} ms each, diagnosis included")
    print(f"memory: {held:.0f} MB; marking {4 * number:,} more added {grown:.1f} MB")
    answers = [answer for _, answer in students(desk, many)]
    sheets = ClassOf({"sheet": sheet_toml(sheet)})
    (alone, one), (together, two) = (on_jobs(sheets, answers, jobs) for jobs in (1, 2))
    if one != two:
        raise AssertionError("two jobs mark otherwise than one")
    print(f"{many:,} students: one job {alone:.1f} s, two jobs {together:.1f} s, {alone / together:.2f} times as fast")
    return 0 if first < SECONDS * number / 1000 and grown < 10 and alone / together >= FASTER else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--students", type=int, default=1000)
    parser.add_argument("--many", type=int, default=6000, help="students for the comparison of one job with two")
    given = parser.parse_args()
    sys.exit(main(given.students, given.many))
