"""A class of 1,000 on a two-head sheet on one core, 6,000 on one and on two, 100,000 on two: seconds and memory.

    python bench/marking_speed.py            # all of it
    python bench/marking_speed.py --quick    # without the 100,000

A third of the class is right, a third carries one planted mistake through, a third wrote wrong numbers. Every mark
is checked: who is right earns every point, and who is not does not. One job and two take turns, and the median of
the rounds' ratios counts; what counts as CPU is that of all processes. The 100,000 are marked as `headwork mark` does
it, read from a CSV and written to one, and the memory of all processes is looked at on the way: it must not grow.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from itertools import cycle, islice
from multiprocessing import active_children
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from planting import Desk, texts

from headwork.marking import pool
from headwork.marking.answers import Answers, read_answers
from headwork.marking.class_marker import ClassMarker, ClassOf, settled
from headwork.marking.marks import Marks
from headwork.marking.spreadsheet import class_csv
from headwork.mistakes.make import Plan, new_sheet
from headwork.sheets.save import sheet_toml
from headwork.sheets.sheet import Sheet

SECONDS = 5.0  # for 1,000 students on one core
FASTER = 1.7  # with two jobs
MINUTES = 5.0  # for 100,000 students on two
ROUNDS = 5
GROWS = 10.0  # MB at most, between a tenth of them and all


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
    """What this process and those it started hold now, in MB."""
    processes = [os.getpid(), *(child.pid for child in active_children())]
    held = (Path(f"/proc/{process}/statm").read_text().split()[1] for process in processes)
    return sum(map(int, held)) * resource.getpagesize() / 2**20


def cpu() -> float:
    """Seconds of this process, and of those it started that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def on_jobs(sheets: ClassOf, answers: list[Answers], jobs: int) -> tuple[float, float, str]:
    """Seconds for a class that is read already, starting the processes included, on the clock and of CPU; and a digest
    of its marks, as marks that were kept would slow down whose turn comes next."""
    start, before = time.perf_counter(), cpu()
    marks = list(pool.marked(ClassMarker(sheets), answers, jobs, with_working=False))
    seconds = time.perf_counter() - start
    for child in active_children():
        child.join()
    spent = cpu() - before
    return seconds, spent, sha256("".join(repr(settled(each, False)) for each in marks).encode()).hexdigest()


def compared(sheets: ClassOf, answers: list[Answers]) -> float:
    """How many times as fast two jobs are as one: in turns, the median of the rounds' ratios. What disturbs the machine
    for minutes disturbs both turns of a round."""
    taken: dict[int, list[float]] = {1: [], 2: []}
    for round_ in range(1, ROUNDS + 1):
        marks = {}
        for jobs, seconds in taken.items():
            clock, spent, marks[jobs] = on_jobs(sheets, answers, jobs)
            seconds.append(clock)
            print(f"  round {round_}, jobs {jobs}: {clock:.1f} s, {spent:.1f} s of CPU", flush=True)
        if marks[1] != marks[2]:
            raise AssertionError("two jobs mark otherwise than one")
    alone, together = (median(seconds) for seconds in taken.values())
    faster = median(one / two for one, two in zip(*taken.values(), strict=True))
    print(f"{len(answers):,} students: one job {alone:.1f} s, two jobs {together:.1f} s, {faster:.2f} times as fast")
    return float(faster)


def as_csv(answers: list[Answers], number: int, path: Path) -> None:
    """So many students, the same ones over and over, as a class hands in."""
    names = [(part, name) for part, given in answers[0].parts.items() for name in given]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student", *(f"{part}.{name}" for part, name in names)])
        for i, own in enumerate(islice(cycle(answers), number)):
            cells = ("; ".join(" ".join(row) for row in own.parts[part].get(name, [])) for part, name in names)
            table.writerow([f"student {i}", *cells])


def class_in_one_go(sheet: Sheet, answers: list[Answers], number: int, jobs: int) -> tuple[float, float, float]:
    """Seconds from CSV to CSV, and the memory of all processes when a tenth is marked and at the end."""
    held: list[float] = []

    def watched(marks: Iterator[Marks]) -> Iterator[Marks]:
        for i, each in enumerate(marks, 1):
            if i in (number // 10, number):
                held.append(memory())
            if (each.score == each.max_score) != (i % 3 == 1):
                raise AssertionError(f"{each.student} has {each.score} of {each.max_score}")
            yield each

    with TemporaryDirectory() as folder:
        read, written = Path(folder, "answers.csv"), Path(folder, "marks.csv")
        as_csv(answers, number, read)
        start = time.perf_counter()
        marker = ClassMarker(ClassOf({"sheet": sheet_toml(sheet)}))
        marks = pool.marked(marker, read_answers(read, sheet), jobs, with_working=False)
        with written.open("w", encoding="utf-8", newline="") as file:
            file.writelines(class_csv(watched(marks)))
        early, late = held
        return time.perf_counter() - start, early, late


def main(number: int, many: int, most: int) -> int:
    sheet = new_sheet(Plan("multi_head", 3, 2, 6, mask="causal"))
    desk = Desk(sheet)
    first = marked(desk, number)
    print(f"{number:,} students: {first:.2f} s on one core, {first / number * 1e3:.2f} ms each, diagnosis included")
    answers = [answer for _, answer in students(desk, many)]
    faster = compared(ClassOf({"sheet": sheet_toml(sheet)}), answers)
    bounds = [first < SECONDS * number / 1000, faster >= FASTER]
    if most:
        seconds, early, late = class_in_one_go(sheet, answers, most, 2)
        print(f"{most:,} students, from CSV to CSV on two jobs: {seconds:.0f} s")
        print(f"memory of all processes: {early:.0f} MB after a tenth of them, {late:.0f} MB at the end")
        bounds += [seconds < 60 * MINUTES * most / 100_000, late - early < GROWS]
    print("all bounds hold" if all(bounds) else "A BOUND DOES NOT HOLD")
    return 0 if all(bounds) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--students", type=int, default=1000)
    parser.add_argument("--many", type=int, default=6000, help="students for the comparison of one job with two")
    parser.add_argument("--most", type=int, default=100_000, help="students from CSV to CSV on two jobs")
    parser.add_argument("--quick", action="store_true", help="no class from CSV to CSV")
    given = parser.parse_args()
    sys.exit(main(given.students, given.many, 0 if given.quick else given.most))
