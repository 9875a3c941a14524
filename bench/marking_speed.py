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

from headwork.marking.answers import Answers
from headwork.mistakes.make import Plan, new_sheet

SECONDS = 10.0


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


def main(number: int) -> int:
    desk = Desk(new_sheet(Plan("multi_head", 3, 2, 6, mask="causal")))
    first = marked(desk, number)
    held = memory()
    marked(desk, 4 * number)
    grown = memory() - held
    print(f"{number:,} students: {first:.2f} s, {first / number * 1e3:.2f} ms each, diagnosis included")
    print(f"memory: {held:.0f} MB; marking {4 * number:,} more added {grown:.1f} MB")
    return 0 if first < SECONDS * number / 1000 and grown < 10 else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--students", type=int, default=1000)
    sys.exit(main(parser.parse_args().students))
