"""Who shares unusual wrong numbers. It is a reason to look at two papers side by side, and nothing more.

A wrong number is unusual if no named mistake explains its answer and few others wrote it in that place. Right numbers,
numbers that follow and common mistakes are shared by everybody who thinks alike, and do not count.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

from headwork.marking.marks import AnswerMark, Marks

LEAST = 4  # numbers shared
SHARE = 0.5  # of the wrong numbers of the one who has fewer
FEW = 4  # students who may share a number that is still unusual
MOST = 1_000  # students that are held against each other, so that the memory stays small

Wrong = tuple[str, str, int, int, str]  # part, answer, row, column, number


@dataclass
class Similar:
    """The wrong numbers of a class, and who wrote them."""

    students: list[tuple[str, int]] = field(default_factory=list)  # name, and how many wrong numbers
    wrote: dict[Wrong, list[int]] = field(default_factory=dict)

    def add(self, marks: Marks) -> None:
        if len(self.students) >= MOST:
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
            if number >= LEAST and number >= SHARE * min(self.students[one][1], self.students[other][1])
        ]
        return sorted(found, key=lambda pair: -pair[2])


def _wrong(marks: Marks) -> Iterator[Wrong]:
    for part in marks.parts:
        for answer in part.answers:
            if answer.verdict == "wrong" and not _explained(answer):
                for i, row in enumerate(answer.rows):
                    yield from (
                        (part.label, answer.name, i, j, text) for j, (text, v) in enumerate(row) if v == "wrong"
                    )


def _explained(answer: AnswerMark) -> bool:
    """Whether a mistake has a name that says where the numbers come from."""
    return any(tag != "one-entry" for tag in answer.tags)
