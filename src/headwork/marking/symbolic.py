"""Shapes and counts: answers in letters, compared exactly."""

import re
from fractions import Fraction
from typing import Any

from headwork.errors import HeadworkError
from headwork.marking.algebra import same
from headwork.marking.answered import Answered
from headwork.marking.marks import AnswerMark, Verdict
from headwork.marking.table import Malformed, is_blank
from headwork.readings.counts import BY_HAND, counts
from headwork.sheets.questions import Asked
from headwork.sheets.ready import Ready

COUNTED = ("multiplications", "additions", "divisions")
# In a text: multiplications: n*n*d_k, additions: n*n*(d_k - 1)
_COUNT = re.compile(r"""["']?([a-z]+)["']?\s*[:=]\s*["']?([^,;:="'{}]+)""")


def mark_symbolic(kind: str, question: Asked, answered: Answered, ready: Ready) -> AnswerMark:
    """A shape, such as "n×d/h", or the operations of a step, such as { multiplications = "n*n*d_k" }."""
    right = _shape(question, ready) if kind == "shape" else _count(question, ready)
    try:
        raw = answered.take(question)
        if is_blank(raw):
            return AnswerMark(question.name, "blank", len(right), Fraction(0))
        given = _sizes(raw, len(right)) if kind == "shape" else _operations(raw, list(right))
        wrong = [i for i, (name, size) in enumerate(right.items()) if not same(given.get(name, "0"), size)]
    except HeadworkError as error:
        return AnswerMark(question.name, "malformed", len(right), Fraction(0), message=str(error))
    places = tuple((1, i + 1) for i in wrong)
    verdict: Verdict = "wrong" if wrong else "right"
    return AnswerMark(question.name, verdict, len(right), Fraction(len(right) - len(wrong)), places)


def _shape(question: Asked, ready: Ready) -> dict[str, Any]:
    return {str(i): size for i, size in enumerate(ready.shape[question.found.step])}


def _sizes(raw: Any, number: int) -> dict[str, str]:
    """ "2×3", "2x3", [2, 3]."""
    sizes = raw if isinstance(raw, list) else re.split(r"\s*[×x]\s*", str(raw)[:400])
    if len(sizes) != number:
        raise Malformed(f"has {len(sizes)} length(s); write every one, such as 2×3 or B×n×d")
    return {str(i): str(size) for i, size in enumerate(sizes)}


def _count(question: Asked, ready: Ready) -> dict[str, Any]:
    count = counts(ready.ends, BY_HAND)[question.found.step]
    each = {name: getattr(count, name) for name in COUNTED}
    return {name: size for name, size in each.items() if size != 0} or each


def _operations(raw: Any, names: list[str]) -> dict[str, str]:
    if isinstance(raw, str):
        raw = dict(_COUNT.findall(raw))
    if not isinstance(raw, dict) or not raw:
        raise Malformed(f"must be a table of {', '.join(COUNTED)}, such as {{ {names[0]} = 'n*d' }}")
    if unknown := [name for name in raw if name not in COUNTED]:
        raise Malformed(f"holds '{str(unknown[0])[:40]}'; counted are {', '.join(COUNTED)}")
    return {name: str(size) for name, size in raw.items() if not is_blank(size)}
