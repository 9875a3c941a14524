"""Marks as Gradescope's `results.json`: one test for every answer."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from headwork.marking.marks import AnswerMark, Marks, PartMark
from headwork.marking.report import PLACES, finding
from headwork.render.cells import Style
from headwork.render.text import document


def gradescope_json(marks: Marks, seconds: float) -> str:
    """One student's results. Gradescope wants floats; the exact score stands in `extra_data`."""
    tests = [_test(part, answer) for part in marks.parts for answer in part.answers]
    results = {
        "score": float(marks.score),
        "execution_time": round(seconds, 3),
        "output": marks.note or f"A number is right if it is {marks.tolerance}.",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {"score": str(marks.score), "max_score": str(marks.max_score), "tags": list(marks.tags)},
        "tests": [*tests, *(_note(part) for part in marks.parts if not part.answers)],
    }
    return json.dumps(results, indent=2, ensure_ascii=False) + "\n"


def _test(part: PartMark, answer: AnswerMark) -> dict[str, Any]:
    entries = sum(a.entries for a in part.answers)
    each = part.max_score / entries if entries else Fraction(0)
    return {
        "name": f"({part.label}) {answer.name}",
        "number": part.label,
        "score": float(each * answer.right),
        "max_score": float(each * answer.entries),
        "status": "passed" if answer.right == answer.entries else "failed",
        "output": document([finding(answer, Style(PLACES))]).rstrip("\n"),
        "output_format": "text",
        "tags": list(answer.tags),
        "visibility": "visible",
    }


def _note(part: PartMark) -> dict[str, Any]:
    """A part that a person marks."""
    return {
        "name": f"({part.label})",
        "number": part.label,
        "output": " ".join(part.notes),
        "output_format": "text",
        "tags": [],
        "visibility": "visible",
    }
