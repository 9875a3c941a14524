"""What is counted over a class. Students pass one at a time; counts are kept, and as many names as a page can show."""

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt

from headwork.marking.marks import Marks, PartMark
from headwork.marking.similar import Similar

MOST_LISTED = 500  # students on the page
MOST_NAMES = 12  # behind one mistake
BINS = 10  # of the spread


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
