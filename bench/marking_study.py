"""How well the marking finds planted mistakes: a table of what was planted, found and wrongly accused.

    python bench/marking_study.py            # 2,000 sheets, some minutes
    python bench/marking_study.py --sheets 100

Every sheet is drawn anew. Each mistake that it gives occasion for is planted alone, in every way that a head or a
matrix allows; all answers are then worked out with it, rounded, written as text, and marked like a student's. A
mistake counts as found if an answer names it among at most two candidates. Right answers must earn every point, and
random wrong ones should be accused of nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from random import Random

import numpy as np

from headwork.marking.answers import Answers
from headwork.marking.diagnose import Tags
from headwork.marking.mark import Marker, ProblemMarker
from headwork.marking.marks import Marks
from headwork.marking.mistakes import CATALOGUE
from headwork.marking.predict import Graph
from headwork.marking.slips import ADVICE, early_roundings, half_up
from headwork.readings.values import Array
from headwork.sheets.make import Plan, new_sheet
from headwork.sheets.sheet import Sheet

PLANS = (
    Plan("multi_head", 3, 2, 6),
    Plan("multi_head", 3, 2, 6, mask="causal"),
    Plan("multi_head_blocks", 3, 2, 6, mask="causal"),
    Plan("multi_head_blocks", 3, 2, 6, biases=True),
    Plan("multi_head_blocks", 4, 2, 8),
    Plan("single_head", 3, 1, 3, mask="causal"),
    Plan("scaled_dot_product", 3, 1, 3),
)
PLACES = (2, 4)
Matrices = dict[tuple[str, str], Array]  # (part, name) → answer


def texts(matrices: Matrices, places: int) -> Answers:
    """Answers as a student writes them: rounded to so many places."""
    parts: dict[str, dict[str, list[list[str]]]] = {}
    for (part, name), matrix in matrices.items():
        rows = [[f"{x:.{places}f}" for x in row] for row in half_up(matrix, places)]
        parts.setdefault(part, {})[name] = rows
    return Answers("student", parts)


class Desk:
    """One sheet: the right answers, and those that a graph predicts."""

    def __init__(self, sheet: Sheet) -> None:
        self.marker = Marker(sheet)
        self.problem: ProblemMarker = self.marker.problems[0]
        self.asked = {(label, q.name): q for label, asked in self.problem.asked.items() for q in asked}
        self.handed = {s: next(iter(self.problem.near.values()))[s] for s in self.problem.ready.handed}

    def right(self) -> Matrices:
        return {key: self.problem.near[key[0]][q.found.step] for key, q in self.asked.items()}

    def with_graph(self, graph: Graph) -> Matrices:
        """Where the mistake leaves no answer of any shape, the student leaves off."""
        worked = graph.everything(self.handed)
        steps = {key: (q.found.step.role, q.found.step.head) for key, q in self.asked.items()}
        return {key: worked[step] for key, step in steps.items() if step in worked and np.isfinite(worked[step]).all()}

    def mark(self, matrices: Matrices, places: int) -> Marks:
        return self.marker.mark(texts(matrices, places))


def planted(desk: Desk, generator: Random) -> Iterator[tuple[str, Matrices]]:
    """Every mistake alone, in every way, and every slip in one answer."""
    for tag, graph in desk.problem.diagnosis.single:
        yield tag, desk.with_graph(graph)
    for rounding in list(early_roundings())[4:6]:  # to two places, everything or the weights
        worked = desk.problem.diagnosis.right.everything(desk.handed, rounding)
        last = list(desk.asked)[-1]
        step = desk.asked[last].found.step
        yield "early-rounding", {last: worked[step.role, step.head]}
    for slip in ("sign", "one-entry", "swapped-entries", "transposed"):
        if (answers := slipped(slip, desk.right(), generator)) is not None:
            yield slip, answers


def slipped(slip: str, answers: Matrices, generator: Random) -> Matrices | None:
    """One answer with a slip of the pen in it; what comes after it is left off."""
    keys = list(answers)
    number = generator.randrange(len(keys))
    matrix = answers[keys[number]].copy()
    rows, columns = matrix.shape
    i, j, k, m = (generator.randrange(size) for size in (rows, columns, rows, columns))
    if slip == "sign":
        matrix[i, j] *= -1
    elif slip == "one-entry":
        matrix[i, j] += generator.choice([-1, 1]) * generator.randrange(1, 9) / 2
    elif slip == "swapped-entries":
        matrix[i, j], matrix[k, m] = matrix[k, m], matrix[i, j]
    else:
        matrix = matrix.T
    before = answers[keys[number]]
    if matrix.shape == before.shape and np.abs(matrix - before).max() < 0.05:
        return None  # the slip left no trace
    return {**{key: answers[key] for key in keys[:number]}, keys[number]: matrix}


def found(marks: Marks, tags: Tags) -> bool:
    """Whether some answer names exactly these mistakes among at most two candidates."""
    wanted = set(tags)
    answers = [answer for part in marks.parts for answer in part.answers if answer.tags]
    return any(len(a.tags) <= 2 and any(set(tag.split("+")) == wanted for tag in a.tags) for a in answers)


def seen(marks: Marks) -> bool:
    """Whether anything came out wrong at all: a mistake that changes no digit asked for is no mistake."""
    return any(answer.verdict in ("wrong", "malformed") for part in marks.parts for answer in part.answers)


def pair_found(marks: Marks, tags: Tags) -> bool:
    """Both named: together in one answer, or one after the other as follow-through uncovers them."""
    named = {
        single
        for part in marks.parts
        for a in part.answers
        if len(a.tags) <= 2
        for t in a.tags
        for single in t.split("+")
    }
    return set(tags) <= named


Counts = Counter[tuple[str, int]]


def study_sheet(seed: int, number: int) -> tuple[Counts, Counts]:
    """One sheet: what was planted in it, and what was found. Right answers count as "right"."""
    planted_count: Counts = Counter()
    found_count: Counts = Counter()
    generator = Random(f"study {seed} {number}")
    desk = Desk(new_sheet(PLANS[number % len(PLANS)], seed, number))
    for places in PLACES:
        marks = desk.mark(desk.right(), places)
        planted_count["right", places] += 1
        found_count["right", places] += marks.score == marks.max_score
        for tag, answers in planted(desk, generator):
            marks = desk.mark(answers, places)
            if seen(marks):
                planted_count[tag, places] += 1
                found_count[tag, places] += found(marks, (tag,))
    return planted_count, found_count


def study(sheets: int, pairs: int, wrong: int, seed: int, jobs: int) -> int:
    planted_count: Counts = Counter()
    found_count: Counts = Counter()
    start = time.perf_counter()
    with ProcessPoolExecutor(jobs) as pool:
        for one, other in pool.map(partial(study_sheet, seed), range(sheets), chunksize=10):
            planted_count += one
            found_count += other
    right, right_earned = (sum(c.pop(("right", places), 0) for places in PLACES) for c in (planted_count, found_count))
    print(f"{sheets:,} sheets, {time.perf_counter() - start:.0f} s\n")
    single = report_singles(planted_count, found_count)
    both = study_pairs(pairs, seed)
    accused = study_wrong(wrong, seed)
    print(f"right answers, rounded: {right_earned} of {right} earn every point")
    ok = single >= 0.995 and both >= 0.95 and accused <= 0.005 and right_earned == right
    print("all bounds hold" if ok else "A BOUND DOES NOT HOLD")
    return 0 if ok else 1


def report_singles(planted_count: Counts, found_count: Counts) -> float:
    print(f"{'planted alone':<26}{'2 places':>16}{'found':>9}{'4 places':>16}{'found':>9}")
    for tag in [*CATALOGUE, *ADVICE]:
        cells = [(planted_count[tag, p], found_count[tag, p]) for p in PLACES]
        print(f"{tag:<26}" + "".join(f"{n:>16,}{f / n:>9.2%}" if n else f"{n:>16}{'':>9}" for n, f in cells))
    share = found_count.total() / planted_count.total()
    print(f"{'all':<26}{planted_count.total():>16,}{share:>9.3%}\n")
    return share


def study_pairs(pairs: int, seed: int) -> float:
    """Two mistakes at once, ten to a sheet."""
    named = count = together = 0
    number = 0
    while count < pairs:
        generator = Random(f"pairs {seed} {number}")
        desk = Desk(new_sheet(PLANS[number % len(PLANS)], seed + 1, number))
        number += 1
        for tags, graph in generator.sample(desk.problem.diagnosis.pairs(), 10):
            marks = desk.mark(desk.with_graph(graph), generator.choice(PLACES))
            if seen(marks) and count < pairs:
                count += 1
                named += pair_found(marks, tags)
                together += found(marks, tags)
    print(f"planted pairs: {count}, both named {named / count:.1%} ({together / count:.1%} in one answer)")
    return named / count


def study_wrong(wrong: int, seed: int) -> float:
    """Random wrong answers: numbers of the size and places of the right ones, and of no other connection."""
    accused = count = 0
    tags: Counter[str] = Counter()
    number = 0
    while count < wrong:
        generator = np.random.default_rng([seed, number])
        desk = Desk(new_sheet(PLANS[number % len(PLANS)], seed + 2, number))
        number += 1
        for _ in range(20):
            for key, matrix in desk.right().items():
                drawn = _like(matrix, generator)
                marks = desk.mark({key: drawn}, int(generator.choice(PLACES)))
                answer = next(a for p in marks.parts for a in p.answers if a.verdict != "blank")
                if answer.verdict == "wrong":
                    count += 1
                    accused += bool(answer.tags)
                    tags.update(answer.tags)
    print(f"random wrong answers: {count:,}, accused {accused / count:.3%}", dict(tags.most_common(4)) or "")
    return accused / count


def _like(matrix: Array, generator: np.random.Generator) -> Array:
    """Whole numbers for whole numbers, weights for weights, anything else of the same spread."""
    if np.all(matrix == np.round(matrix)):
        low, high = int(matrix.min()), int(matrix.max())
        return generator.integers(low - 1, high + 2, matrix.shape).astype(np.float64)
    if np.all(matrix >= 0) and np.allclose(matrix.sum(axis=1), 1):
        drawn = generator.random(matrix.shape) + 0.01
        return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))
    return generator.uniform(matrix.min() - 0.5, matrix.max() + 0.5, matrix.shape)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sheets", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--wrong", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    sys.exit(study(given.sheets, given.pairs, given.wrong, given.seed, given.jobs))
