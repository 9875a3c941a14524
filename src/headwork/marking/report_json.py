"""Marks as JSON, schema 1.

{"schema": 1, "students": [{"student", "score", "max_score", "note"?, "parts": [{"label", "score", "max_score",
 "notes"?, "answers": [{"name", "verdict": "right|follows|wrong|malformed|blank", "entries_wrong": [[row, column]],
 "tags": [], "advice", "message"?}]}]}]}

Scores are numbers where they are whole and text such as "7/2" where not, so that totals stay exact. Rows and columns
are counted as the sheet counts them.
"""

import json
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from headwork.marking.marks import AnswerMark, Marks, PartMark

SCHEMA = 1


def class_json(students: Iterable[Marks]) -> Iterator[str]:
    """The whole class piece by piece: nothing is held back until the end."""
    yield f'{{"schema": {SCHEMA}, "students": ['
    for number, marks in enumerate(students):
        yield ("," if number else "") + "\n" + json.dumps(marks_table(marks), ensure_ascii=False)
    yield "\n]}\n"


def marks_table(marks: Marks) -> dict[str, Any]:
    return {
        "student": marks.student,
        "score": number(marks.score),
        "max_score": number(marks.max_score),
        **({"note": marks.note} if marks.note else {}),
        "parts": [_part(part) for part in marks.parts],
    }


def number(score: Fraction) -> int | str:
    return int(score) if score.denominator == 1 else str(score)


def _part(part: PartMark) -> dict[str, Any]:
    return {
        "label": part.label,
        "score": number(part.score),
        "max_score": number(part.max_score),
        **({"notes": list(part.notes)} if part.notes else {}),
        "answers": [_answer(answer) for answer in part.answers],
    }


def _answer(answer: AnswerMark) -> dict[str, Any]:
    return {
        "name": answer.name,
        "verdict": answer.verdict,
        "entries_wrong": [list(place) for place in answer.entries_wrong],
        "tags": list(answer.tags),
        "advice": answer.advice,
        **({"message": answer.message} if answer.message else {}),
    }
