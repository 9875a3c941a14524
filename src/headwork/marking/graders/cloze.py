"""Moodle without STACK: one cloze question a sheet, a numerical field for every entry, mistakes as answers worth 0.

Moodle compares one number at a time, so nothing follows through here: `headwork mark SHEET responses.csv` on the
quiz's responses gives the rest.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from html import escape
from math import isinf, lcm

from headwork.marking.graders.boxes import HIDDEN, Box, Boxed, boxed, number_text
from headwork.marking.graders.family import Family
from headwork.marking.graders.files import Files, moodle_html, moodle_quiz, moodle_text
from headwork.marking.graders.paper import html, name_html, paper
from headwork.marking.mark import Marker


def package(family: Family, name: str) -> Files:
    """Moodle XML: a category with a question for every sheet."""
    return moodle_quiz(name, (_question(sheet, family.marker(sheet), family.title) for sheet in family.texts))


def _question(name: str, marker: Marker, title: str) -> str:
    lines = (
        '<question type="cloze">',
        moodle_text("name", f"{escape(marker.sheet.title)} ({escape(name)})"),
        moodle_html("questiontext", "\n".join(_text(name, marker, title))),
        moodle_html("generalfeedback", ""),
        f"<penalty>0</penalty>\n<hidden>0</hidden>\n<idnumber>{escape(name)}</idnumber>\n</question>",
    )
    return "\n".join(lines)


def _text(name: str, marker: Marker, title: str) -> Iterator[str]:
    """The paper, with fields in it. The sheet's name stands on it, so that responses can be marked again; nobody's name
    does, because whoever draws the question reads it."""
    answers = boxed(marker)
    weight = _weights(answers)
    yield _words(f"<p>{escape(title)}, sheet {escape(name)}</p>")
    for piece in paper(marker):
        yield _words(html(piece.blocks))
        for field in piece.fields:
            rows = answers.get((field.part, field.name))
            if rows is None:
                yield f"<p>{name_html(field)}: on paper.</p>"
            else:
                cells = ["".join(f"<td>{_field(box, weight)}</td>" for box in row) for row in rows]
                yield f"<p>{name_html(field)} =</p>\n<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _words(text: str) -> str:
    """Text in which nothing looks like a field."""
    return re.sub(r"\{(?=\d*:)", "&#123;", text)


def _weights(answers: Boxed) -> int:
    """Moodle's weights are whole: what a point is worth in them."""
    return lcm(*(box.points.denominator for rows in answers.values() for row in rows for box in row))


def _field(box: Box, weight: int) -> str:
    points = Fraction(box.points * weight)
    if isinf(box.right):
        return f"{{{points}:SHORTANSWER:{'~'.join(f'={text}' for text in HIDDEN)}}}"
    right = f"={number_text(box.right)}:{number_text(box.room)}"
    mistakes = [
        f"%0%{number_text(told.value)}:{number_text(box.room)}#{_feedback(told.says)}" for told in box.predictions
    ]
    return f"{{{points}:NUMERICAL:{'~'.join([right, *mistakes])}}}"


def _feedback(words: str) -> str:
    """Text inside a field, where } ends it, ~ the answer, # the number."""
    return escape(words, quote=False).replace("~", "∼").replace("#", "\\#").replace("}", "\\}")
