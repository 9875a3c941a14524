"""Marked again, after the key or the rules were corrected: who changes, and where."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.marking.marks import Marks, known_as
from headwork.marking.spreadsheet import as_meant, csv_rows, decimals
from headwork.render.blocks import Block, Paragraph, Table, Title

Before = Mapping[str, Mapping[str, str]]  # student → column → points


def read_before(path: Path) -> Before:
    """The marks of an earlier run, as `--format csv` wrote them."""
    with csv_rows(path) as rows:
        if not {"student", "score"} <= set(rows.fieldnames or ()):
            raise HeadworkError(f"{path} is not what `headwork mark --format csv` writes; give that")
        return {known_as(as_meant(row["student"])): row for row in rows}


def changes_blocks(title: str, since: Path, students: Iterable[Marks]) -> Iterator[Block]:
    """A line for everybody whose points are not what they were."""
    before = read_before(since)
    rows, number, left = [], 0, set(before)
    for marks in students:
        number += 1
        left.discard(known_as(marks.student))
        was = before.get(known_as(marks.student))
        if was is None:
            rows.append((marks.student, "–", decimals(marks.score), "not marked before"))
        elif changed := list(_changed(marks, was)):
            rows.append((marks.student, was["score"], decimals(marks.score), ", ".join(changed)))
    yield Title(f"{title}: what changes")
    yield Paragraph((f"{len(rows):,} of {number:,} students change.",))
    if rows:
        cells = tuple(tuple((cell,) for cell in row) for row in rows)
        yield Table((("student",), ("before",), ("now",), ("where",)), cells, left=1)
    if left:
        gone = ", ".join(before[name]["student"] for name in sorted(left)[:20])
        yield Paragraph((f"Marked before and not now: {gone}{' …' if len(left) > 20 else ''}.",))


def _changed(marks: Marks, was: Mapping[str, str]) -> Iterator[str]:
    """(b) 1 → 2, for every part whose points changed."""
    for part in marks.parts:
        old = was.get(part.label)
        if old != decimals(part.score):
            yield f"({part.label}) {old or '–'} → {decimals(part.score)}"
