"""How well the marking finds planted mistakes: a table of what was planted, found and wrongly accused.

    python bench/marking_study.py            # 2,000 sheets, a quarter of an hour
    python bench/marking_study.py --sheets 100

Every sheet is drawn anew. Each mistake that it gives occasion for is planted alone, in every way that a head or a
matrix allows; all answers are then worked out with it, rounded, written as text, and marked like a student's. A
mistake counts as found if an answer names it among at most two candidates. Of two planted at once both must be named
so, in one answer or in two; pairs that leave the digits of one of them alone cannot be told from it by anybody, and
are counted apart. Right answers must earn every point, and random wrong ones, or ones with a few random entries, should
be accused of nothing.

Slips are carried on in three ways: at full precision, with two guard digits, rounded at every step. All that comes
after one must be right or follow; a second slip, made later, must be named; and random answers after a slip must earn
nothing that they would not have earned without it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from random import Random

import numpy as np
from planting import (
    CARRIED,
    PLACES,
    PLANS,
    Desk,
    Matrices,
    as_alone,
    carried_on,
    planted_alone,
    random_wrong,
    slipped_matrix,
)
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from headwork.marking.marks import AnswerMark, Marks
from headwork.mistakes.catalogue import CATALOGUE
from headwork.mistakes.evidence import Tags
from headwork.mistakes.make import new_sheet
from headwork.mistakes.slips import ADVICE


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
RIGHT = "right"  # not a tag: what right answers are counted under


def study_sheet(seed: int, number: int) -> tuple[Counts, Counts]:
    """One sheet: what was planted in it, and what was found."""
    planted_count: Counts = Counter()
    found_count: Counts = Counter()
    generator = Random(f"study {seed} {number}")
    desk = Desk(new_sheet(PLANS[number % len(PLANS)], seed, number))
    for places in PLACES:
        marks = desk.mark(desk.right(), places)
        planted_count[RIGHT, places] += 1
        found_count[RIGHT, places] += marks.score == marks.max_score
        for tag, answers in planted_alone(desk, generator):
            marks = desk.mark(answers, places)
            if seen(marks):
                planted_count[tag, places] += 1
                found_count[tag, places] += found(marks, (tag,))
    return planted_count, found_count


def study(sheets: int, pairs: int, wrong: int, slips: int, seed: int, jobs: int) -> int:
    start = time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        alone = study_alone(sheets, seed, jobs, progress)
        both = study_pairs(pairs, seed, progress)
        accused = study_wrong(wrong, seed, progress)
        carried = [study_carried(kind, slips, seed, progress) for kind in CARRIED]
    print(f"seed {seed}: {sheets:,} sheets, {time.perf_counter() - start:.0f} s\n")
    reports: list[Alone | Pairs | Wrong | Carried] = [alone, both, *accused, *carried]
    bounds = [report.report() for report in reports]
    print("all bounds hold" if all(bounds) else "A BOUND DOES NOT HOLD")
    return 0 if all(bounds) else 1


@dataclass
class Alone:
    """Mistakes planted alone, by tag and places, and right answers."""

    planted: Counts = field(default_factory=Counter)
    found: Counts = field(default_factory=Counter)

    def report(self) -> bool:
        print(f"{'planted alone':<26}{'2 places':>16}{'found':>9}{'4 places':>16}{'found':>9}")
        for tag in [*CATALOGUE, *ADVICE]:
            cells = [(self.planted[tag, p], self.found[tag, p]) for p in PLACES]
            print(f"{tag:<26}" + "".join(f"{n:>16,}{f / n:>9.2%}" if n else f"{n:>16}{'':>9}" for n, f in cells))
        right, earned = (sum(counts[RIGHT, p] for p in PLACES) for counts in (self.planted, self.found))
        planted, found = self.planted.total() - right, self.found.total() - earned
        print(f"{'all':<26}{planted:>16,}{found / planted:>9.3%}\n")
        print(f"right answers, rounded: {earned:,} of {right:,} earn every point")
        return found / planted >= 0.995 and earned == right


def study_alone(sheets: int, seed: int, jobs: int, progress: Progress) -> Alone:
    alone = Alone()
    with ProcessPoolExecutor(jobs) as pool:
        task = progress.add_task("sheets", total=sheets)
        for planted, found in pool.map(partial(study_sheet, seed), range(sheets), chunksize=4):
            alone.planted += planted
            alone.found += found
            progress.advance(task)
    return alone


@dataclass
class Pairs:
    """Two mistakes planted at once."""

    planted: int = 0
    named: int = 0
    together: int = 0
    unseen: int = 0
    as_alone: Counter[Tags] = field(default_factory=Counter)
    missed: Counter[Tags] = field(default_factory=Counter)

    def report(self) -> bool:
        share, together = self.named / self.planted, self.together / self.planted
        print(f"planted pairs: {self.planted}, both named {share:.1%} ({together:.1%} in one answer)")
        print(f"  missed: {_listed(self.missed)}")
        print(f"  left out, every answer has the digits of one mistake alone: {_listed(self.as_alone)}")
        print(f"  left out, no answer leaves the tolerance: {self.unseen}")
        return share >= 0.95


def _listed(counts: Counter[Tags]) -> str:
    each = ", ".join(f"{' + '.join(tags)} {number}" for tags, number in counts.most_common())
    return f"{counts.total()} ({each})" if each else "0"


def study_pairs(pairs: int, seed: int, progress: Progress) -> Pairs:
    """Ten pairs to a sheet."""
    result = Pairs()
    number = 0
    task = progress.add_task("pairs", total=pairs)
    while result.planted < pairs:
        generator = Random(f"pairs {seed} {number}")
        desk = Desk(new_sheet(PLANS[number % len(PLANS)], seed + 1, number))
        number += 1
        for tags, graph in generator.sample(desk.diagnosis.pairs(), 10):
            answers, places = desk.with_graph(graph), generator.choice(PLACES)
            marks = desk.mark(answers, places)
            if not seen(marks):
                result.unseen += 1
            elif as_alone(desk, tags, answers, places):
                result.as_alone[tags] += 1
            elif result.planted < pairs:
                result.planted += 1
                result.together += found(marks, tags)
                if pair_found(marks, tags):
                    result.named += 1
                else:
                    result.missed[tags] += 1
        progress.update(task, completed=result.planted)
    return result


@dataclass
class Wrong:
    """Random wrong answers, and what they were accused of."""

    kind: str
    marked: int = 0
    accused: int = 0
    tags: Counter[Tags] = field(default_factory=Counter)

    def add(self, tags: Sequence[str]) -> None:
        self.marked += 1
        self.accused += bool(tags)
        self.tags.update((tag,) for tag in tags)

    def report(self) -> bool:
        share = self.accused / self.marked
        print(f"{self.kind}: {self.marked:,}, accused {share:.3%}; of {_listed(self.tags)}")
        return share <= 0.005


def study_wrong(wrong: int, seed: int, progress: Progress) -> list[Wrong]:
    """Where only a few entries are wrong a slip may be true, so there only mistakes count as accused."""
    everywhere, here_and_there = Wrong("random wrong answers"), Wrong("right but for two or three random entries")
    number = 0
    task = progress.add_task("random wrong answers", total=wrong)
    while everywhere.marked < wrong:
        generator = np.random.default_rng([seed, number])
        desk = Desk(new_sheet(PLANS[number % len(PLANS)], seed + 2, number))
        number += 1
        for _ in range(20):
            for key, matrix in desk.right().items():
                drawn, spoilt = random_wrong(matrix, generator)
                places = int(generator.choice(PLACES))
                if (tags := _tags_of_wrong(desk, {key: drawn}, places)) is not None:
                    everywhere.add(tags)
                if (tags := _tags_of_wrong(desk, {key: spoilt}, places)) is not None:
                    here_and_there.add([tag for tag in tags if tag not in ADVICE])
        progress.update(task, completed=min(everywhere.marked, wrong))
    return [everywhere, here_and_there]


@dataclass
class Carried:
    """Slips carried on in one way, second slips, and random answers after a slip."""

    kind: str
    students: int = 0
    consistent: int = 0
    second: int = 0
    named: int = 0
    random: int = 0
    follows: int = 0
    extra: Fraction = Fraction(0)  # entries that earn something for no reason

    def report(self) -> bool:
        right, named = self.consistent / self.students, self.named / self.second
        print(f"slips carried on {self.kind}: {self.students:,} students, all right or following {right:.2%}")
        print(f"  a second slip later: {self.second:,}, named {named:.2%}")
        print(
            f"  random later answers: {self.random:,}, {self.follows} follow, {float(self.extra):g} entries earn credit"
        )
        return right >= 0.995 and named >= 0.995 and self.follows == 0 and self.extra == 0


def study_carried(kind: str, slips: int, seed: int, progress: Progress) -> Carried:
    """Twenty students to a sheet."""
    result = Carried(kind)
    number = 0
    task = progress.add_task(f"slips {kind}", total=slips)
    while result.students < slips:
        generator = Random(f"carried {kind} {seed} {number}")
        desk = Desk(new_sheet(PLANS[number % len(PLANS)], seed + 3, number))
        number += 1
        for _ in range(20):
            places = generator.choice(PLACES)
            drawn = carried_on(desk, places, CARRIED[kind], generator)
            if drawn is not None and result.students < slips:
                _carry(result, desk, *drawn, places, generator)
        progress.update(task, completed=result.students)
    return result


def _carry(result: Carried, desk: Desk, answers: Matrices, first: int, places: int, generator: Random) -> None:
    """One student: as they are, with a second slip, and with random answers after the first."""
    keys = list(answers)
    marked = _answers(desk.mark(answers, places))
    result.students += 1
    result.consistent += all(answer.verdict in ("right", "follows") for answer in marked[first + 1 :])
    later, slip = generator.randrange(first + 1, len(keys)), generator.choice(("sign", "one-entry", "swapped-entries"))
    second = slipped_matrix(slip, answers[keys[later]], generator)
    if second is not None:
        kept = {key: answers[key] for key in keys[:later]}
        result.second += 1
        result.named += slip in _answers(desk.mark({**kept, keys[later]: second}, places))[later].tags
    drawn = np.random.default_rng(generator.randrange(2**32))
    random = {key: random_wrong(answers[key], drawn)[0] for key in keys[first + 1 :]}
    after = _answers(desk.mark({**{key: answers[key] for key in keys[: first + 1]}, **random}, places))
    alone = _answers(desk.mark(random, places))
    for one, other in list(zip(after, alone, strict=True))[first + 1 :]:
        result.random += 1
        result.follows += one.verdict == "follows"
        result.extra += max(Fraction(0), one.right - other.right)


def _answers(marks: Marks) -> list[AnswerMark]:
    return [answer for part in marks.parts for answer in part.answers]


def _tags_of_wrong(desk: Desk, answers: Matrices, places: int) -> tuple[str, ...] | None:
    """What the one answer is accused of; None where chance made it right."""
    marks = desk.mark(answers, places)
    answer = next(a for part in marks.parts for a in part.answers if a.verdict != "blank")
    return answer.tags if answer.verdict == "wrong" else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sheets", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--wrong", type=int, default=20_000)
    parser.add_argument("--slips", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    sys.exit(study(given.sheets, given.pairs, given.wrong, given.slips, given.seed, given.jobs))
