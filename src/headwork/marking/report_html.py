"""Marks as one self-contained page of HTML: no script, no network, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from headwork.marking.marks import AnswerMark, Marks, PartMark
from headwork.marking.points import points
from headwork.marking.report_text import VERDICTS, explained, wrong_entries

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1, h2 { line-height: 1.2 } h2 { border-top: 1px solid #ccc; padding-top: 1rem } ul { padding-left: 1.2rem }
pre { background: #f5f5f2; padding: .5rem .8rem; overflow-x: auto; margin: .3rem 0 } .right, .follows { color: #17692e }
.wrong { color: #a3231f } .malformed, .blank { color: #6b5900 } table { border-collapse: collapse }
td, th { padding: .2rem .8rem .2rem 0; text-align: left } td.n { text-align: right }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } pre { background: #242424 }
.right, .follows { color: #7fd494 } .wrong { color: #ff9d97 } .malformed, .blank { color: #e0c65c } }
"""


def page(title: str, body: Iterable[str]) -> Iterator[str]:
    """A page, piece by piece."""
    yield f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>\n'
    yield f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>\n<h1>{escape(title)}</h1>\n'
    yield from body
    yield "</html>\n"


def students_html(title: str, students: Iterable[Marks]) -> Iterator[str]:
    """Every student's report under one another."""
    return page(title, (line for marks in students for line in _student(marks)))


def _student(marks: Marks) -> Iterator[str]:
    yield f"<h2>{escape(marks.student)}: {points(marks.score)} of {points(marks.max_score)}</h2>\n"
    if marks.note:
        yield f"<p>{escape(marks.note)}</p>\n"
    for part in marks.parts:
        yield from _part(part)
    yield f"<p>A number is right if it is {escape(marks.tolerance)}.</p>\n"


def _part(part: PartMark) -> Iterator[str]:
    score = f" {points(part.score)} of {points(part.max_score)}" if part.max_score else ""
    yield f"<h3>({escape(part.label)}){score}</h3>\n"
    yield from (f"<p>{escape(note)}</p>\n" for note in part.notes)
    if part.answers:
        yield "<ul>" + "".join(_answer(answer) for answer in part.answers) + "</ul>\n"


def _answer(answer: AnswerMark) -> str:
    verdict = f'<span class="{answer.verdict}">{VERDICTS[answer.verdict]}</span>'
    lines = "\n".join(escape(line) for line in explained(answer, 4))
    below = f"<pre>{lines}</pre>" if lines else ""
    return f"<li><b>{escape(answer.name)}</b>: {verdict}{escape(wrong_entries(answer))}{below}</li>"
