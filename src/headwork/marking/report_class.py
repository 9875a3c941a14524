"""A class: one CSV with a line for every student, and one page with the commonest mistakes first.

Students are taken one at a time; only counts are kept.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape

from headwork.marking.marks import Marks
from headwork.marking.points import points
from headwork.marking.report_html import page
from headwork.mistakes.diagnose import advice

VERDICTS = ("right", "follows", "wrong", "malformed", "blank")


def class_csv(students: Iterable[Marks]) -> Iterator[str]:
    """student, score, max_score, a column for every part, the tags; safe to open in a spreadsheet."""
    for number, marks in enumerate(students):
        if number == 0:
            yield _line(["student", "score", "max_score", *(part.label for part in marks.parts), "tags", "note"])
        scores = [str(part.score) for part in marks.parts]
        yield _line([marks.student, str(marks.score), str(marks.max_score), *scores, " ".join(marks.tags), marks.note])


def _line(cells: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([harmless(cell) for cell in cells])
    return out.getvalue()


def harmless(cell: str) -> str:
    """A text that a spreadsheet would take for a formula gets a ' before it; control characters become spaces.

    >>> harmless("=1+1"), harmless("Ada")
    ("'=1+1", 'Ada')
    """
    plain = re.sub(r"[\x00-\x1f]", " ", cell)
    return f"'{plain}" if plain.lstrip()[:1] in ("=", "+", "-", "@", "|", "%") else plain


@dataclass
class Tally:
    """What is counted over a class."""

    students: int = 0
    unreadable: int = 0
    total: Fraction = Fraction(0)
    most: Fraction = Fraction(0)
    tags: Counter[str] = field(default_factory=Counter)
    answers: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, marks: Marks) -> None:
        self.students += 1
        self.unreadable += bool(marks.note)
        self.total += marks.score
        self.most = max(self.most, marks.max_score)
        self.tags.update(marks.tags)
        for part in marks.parts:
            for answer in part.answers:
                self.answers.setdefault(f"({part.label}) {answer.name}", Counter())[answer.verdict] += 1


def class_page(title: str, students: Iterable[Marks]) -> Iterator[str]:
    """Counts of every tag, the commonest first, and how each answer went."""
    tally = Tally()
    for marks in students:
        tally.add(marks)
    yield from page(title, _body(tally))


def _body(tally: Tally) -> Iterator[str]:
    mean = points(Fraction(round(tally.total / tally.students * 100), 100)) if tally.students else "0"
    yield f"<p>{tally.students:,} students, on average {mean} of {points(tally.most)}"
    yield f"; {tally.unreadable:,} with something that could not be read.</p>\n" if tally.unreadable else ".</p>\n"
    yield "<h2>Mistakes, the commonest first</h2>\n"
    if not tally.tags:
        yield "<p>None was named.</p>\n"
    else:
        yield '<table><tr><th class="n">students<th>consistent with<th>advice</tr>\n'
        for tag, number in tally.tags.most_common():
            yield f'<tr><td class="n">{number:,}<td>{escape(tag)}<td>{escape(advice((tag,)))}</tr>\n'
        yield "</table>\n"
    yield "<h2>Answers</h2>\n<table><tr><th>answer" + "".join(f"<th>{v}" for v in VERDICTS) + "</tr>\n"
    for name, verdicts in tally.answers.items():
        yield f"<tr><td>{escape(name)}" + "".join(f'<td class="n">{verdicts[v]:,}' for v in VERDICTS) + "</tr>\n"
    yield "</table>\n"
