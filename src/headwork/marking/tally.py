"""What is counted over a class. Students pass one at a time; counts are kept, and as many names as a page can show."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import sqrt

from headwork.marking.marks import Marks, PartMark

MOST_LISTED = 500  # students on the page
MOST_NAMES = 12  # behind one mistake
BINS = 10  # of the spread

LEAST_SHARED = 4  # unusual wrong numbers that two have in common
SHARE = 0.5  # of the wrong numbers of the one who has fewer
FEW = 4  # students who may share a number that is still unusual
MOST_COMPARED = 1_000  # students that are held against each other, so that the memory stays small

Wrong = tuple[str, str, int, int, str]  # part, answer, row, column, number


@dataclass
class PartTally:
    """One part over a class: how hard it was, and whether it tells the strong from the weak."""

    students: int = 0
    share: float = 0.0  # Σ of what was earned of it, 0 to 1
    _x2: float = 0.0
    _y: float = 0.0
    _y2: float = 0.0
    _xy: float = 0.0

    def add(self, part: PartMark, marks: Marks) -> None:
        """x is the part's share, y the share of everything else."""
        rest = marks.max_score - part.max_score
        x = float(part.score / part.max_score)
        y = float((marks.score - part.score) / rest) if rest else 0.0
        self.students += 1
        self.share += x
        self._x2, self._y, self._y2, self._xy = self._x2 + x * x, self._y + y, self._y2 + y * y, self._xy + x * y

    @property
    def difficulty(self) -> float:
        """The mean share earned: 1 is easy, 0 is hard."""
        return self.share / self.students

    @property
    def discrimination(self) -> float | None:
        """The correlation of the part with all the others; None where one of them is the same for everybody."""
        n = self.students
        within = (self._x2 - self.share**2 / n) * (self._y2 - self._y**2 / n)
        return (self._xy - self.share * self._y / n) / sqrt(within) if within > 1e-9 else None


@dataclass
class Similar:
    """Who shares unusual wrong numbers: a reason to look at two papers side by side, and nothing more.

    A wrong number is unusual if no named mistake explains its answer and few others wrote it in that place. Right
    numbers, numbers that follow and common mistakes are shared by everybody who thinks alike, and do not count.
    """

    students: list[tuple[str, int]] = field(default_factory=list)  # name, and how many wrong numbers
    wrote: dict[Wrong, list[int]] = field(default_factory=dict)

    def add(self, marks: Marks) -> None:
        if len(self.students) >= MOST_COMPARED:
            return
        number, wrong = len(self.students), list(_wrong(marks))
        self.students.append((marks.called, len(wrong)))
        for each in wrong:
            if len(who := self.wrote.setdefault(each, [])) <= FEW:
                who.append(number)

    def pairs(self) -> list[tuple[str, str, int]]:
        """Two students and how many unusual wrong numbers they share, the most first."""
        shared: Counter[tuple[int, int]] = Counter()
        for who in self.wrote.values():
            if 2 <= len(who) <= FEW:
                shared.update(combinations(who, 2))
        found = [
            (self.students[one][0], self.students[other][0], number)
            for (one, other), number in shared.items()
            if number >= LEAST_SHARED and number >= SHARE * min(self.students[one][1], self.students[other][1])
        ]
        return sorted(found, key=lambda pair: -pair[2])


def _wrong(marks: Marks) -> Iterator[Wrong]:
    for part in marks.parts:
        for answer in part.answers:
            if answer.verdict == "wrong" and not answer.named:
                for i, row in enumerate(answer.rows):
                    yield from (
                        (part.label, answer.name, i, j, text) for j, (text, v) in enumerate(row) if v == "wrong"
                    )


@dataclass
class Tally:
    """A class."""

    students: int = 0
    unreadable: int = 0
    total: Fraction = Fraction(0)
    most: Fraction = Fraction(0)
    squares: float = 0.0
    bins: list[int] = field(default_factory=lambda: [0] * BINS)
    listed: list[tuple[str, Fraction, tuple[str, ...]]] = field(default_factory=list)
    tags: Counter[str] = field(default_factory=Counter)
    names: dict[str, list[str]] = field(default_factory=dict)  # behind each mistake
    answers: dict[str, Counter[str]] = field(default_factory=dict)
    parts: dict[str, PartTally] = field(default_factory=dict)
    similar: Similar = field(default_factory=Similar)

    def add(self, marks: Marks) -> None:
        self.students += 1
        self.unreadable += bool(marks.note)
        self.total += marks.score
        self.most = max(self.most, marks.max_score)
        share = float(marks.score / marks.max_score) if marks.max_score else 0.0
        self.squares += share * share
        self.bins[min(BINS - 1, int(share * BINS))] += 1
        if len(self.listed) < MOST_LISTED:
            self.listed.append((marks.called, marks.score, marks.tags))
        for tag in marks.tags:
            self.tags[tag] += 1
            if len(named := self.names.setdefault(tag, [])) < MOST_NAMES:
                named.append(marks.called)
        for part in marks.parts:
            self._part(part, marks)
        self.similar.add(marks)

    def _part(self, part: PartMark, marks: Marks) -> None:
        if part.max_score:
            self.parts.setdefault(part.label, PartTally()).add(part, marks)
        for answer in part.answers:
            self.answers.setdefault(f"({part.label}) {answer.name}", Counter())[answer.verdict] += 1

    @property
    def spread(self) -> float:
        """The standard deviation of the shares earned."""
        mean = float(self.total / self.most / self.students) if self.most and self.students else 0.0
        return sqrt(max(0.0, self.squares / self.students - mean * mean)) if self.students else 0.0
