"""PrairieLearn: one question for the whole sheet, because what is typed into another question cannot be seen, and
follow-through needs it. headwork lies in the course's `serverFilesCourse`; `server.py` passes its `data` on to it.

Answers are single lines that may be blank and that the element accepts whatever they hold, so one that cannot be read
takes nothing from the others.
"""

import json
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from headwork.marking.graders.family import Family, packed_family
from headwork.marking.graders.fields import FORM, Field, fields, marked_lines, places_to_type, whole_points
from headwork.marking.graders.files import Files, headwork_files, zipped
from headwork.marking.graders.paper import Piece, html, name_html, paper

Data = dict[str, Any]  # what PrairieLearn hands over and takes back; all of it is written as JSON

_SERVER = '''"""Made by `headwork export`: headwork draws the variant and marks."""

import sys
from pathlib import Path


def _headwork(data):
    library = str(Path(data["options"]["server_files_course_path"]) / "headwork.zip")
    if library not in sys.path:
        sys.path.insert(0, library)
    from headwork.marking.graders import prairielearn

    return prairielearn


def generate(data):
    _headwork(data).generate(data)


def grade(data):
    _headwork(data).grade(data)
'''
_AS_TEXT = 'style="white-space: pre-wrap"'  # what is said has lines of its own


def package(family: Family, name: str) -> Files:
    """The folders of a course: one question, and beside it headwork."""
    question = f"questions/{name}"
    return {
        f"{question}/info.json": _info(family, name),
        f"{question}/question.html": _page(family).encode(),
        f"{question}/server.py": _SERVER.encode(),
        **family.files(f"{question}/sheets"),
        "serverFilesCourse/headwork.zip": zipped(headwork_files()),
    }


def _info(family: Family, name: str) -> bytes:
    """The identifier is made from the name: a corrected sheet is the same question, and nobody's work is lost."""
    told = {
        "uuid": str(uuid5(NAMESPACE_URL, f"headwork:{name}")),
        "title": family.title,
        "topic": "Attention",
        "type": "v3",
        "singleVariant": len(family.texts) == 1,
        "showCorrectAnswer": False,
    }
    return (json.dumps(told, indent=2, ensure_ascii=False) + "\n").encode()


def _page(family: Family) -> str:
    points = whole_points(fields(family.first))
    lines = [f"<pl-question-panel><p>{FORM}.</p></pl-question-panel>"]
    for number, piece in enumerate(paper(family.first)):
        lines.append(f"<pl-question-panel>{{{{{{params.words_{number}}}}}}}</pl-question-panel>")
        lines += (_line(field, points[field.word]) for field in piece.fields)
    return "\n".join(lines) + "\n"


def _line(field: Field, points: int) -> str:
    name = name_html(field).replace('"', "&quot;").replace("{{", "{ {")
    attributes = f'answers-name="{field.word}" label="{name} =" weight="{points}" size="{places_to_type(field)}"'
    said = (
        f"{{{{#feedback.{field.word}}}}}<p {_AS_TEXT}>{{{{feedback.{field.word}}}}}</p>{{{{/feedback.{field.word}}}}}"
    )
    return (
        f'<p><pl-string-input {attributes} allow-blank="true" show-help-text="false"></pl-string-input></p>\n'
        f"<pl-submission-panel>{said}</pl-submission-panel>"
    )


def generate(data: Data) -> None:
    """The sheet that the variant's seed stands for, and its words."""
    family = _family(data)
    name = family.numbered(int(str(data["variant_seed"]), 36))
    words = (_words(piece) for piece in paper(family.marker(name)))
    data["params"] |= {"sheet": name, **{f"words_{number}": text for number, text in enumerate(words)}}


def grade(data: Data) -> None:
    """Marks what was typed, as text: 0.880 claims three places."""
    marker = _family(data).marker(data["params"]["sheet"])
    points = whole_points(fields(marker))
    earned = 0.0
    for line in marked_lines(marker, data["raw_submitted_answers"]):
        word, share = line.field.word, float(line.share)
        data["partial_scores"][word] = {"score": share, "weight": points[word]}
        data["feedback"][word] = line.says
        earned += share * points[word]
    data["score"] = earned / (sum(points.values()) or 1)


def _family(data: Data) -> Family:
    return packed_family(Path(data["options"]["question_path"]) / "sheets")


def _words(piece: Piece) -> str:
    r"""A $ would begin a formula there; ours stand between \( and \)."""
    return html(piece.blocks).replace("$", '<span class="mathjax_ignore">$</span>')
