"""Open edX: one problem, whose check function asks headwork in the course's `python_lib.zip`.

The script of a problem runs whenever somebody looks at it, with a second of a CPU at most: so it holds every sheet's
words ready, and headwork is imported by the check alone. capa puts variables ($name) into the finished page.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from headwork.marking.graders.family import Family
from headwork.marking.graders.fields import FORM, Field, fields, marked_lines, places_to_type, whole_points
from headwork.marking.graders.files import Files, compiled, headwork_files, zipped
from headwork.marking.graders.paper import html, name_html, paper

_SCRIPT = """
{words}

def check(expect, answers, seed):
    from headwork.marking.graders.openedx import checked
    return checked({sheets}, seed, answers)
"""


def package(family: Family, name: str) -> Files:
    """A folder: the problem's XML, and headwork as the library of the course, the same for every problem."""
    return {f"{name}.xml": _problem(family).encode(), "python_lib.zip": zipped(compiled(headwork_files()))}


def _problem(family: Family) -> str:
    papers = [list(paper(family.marker(sheet))) for sheet in family.texts]
    points = whole_points(fields(family.first))
    words: list[list[str]] = [[] for _ in papers]  # by sheet: what stands before the lines of each piece
    body = [f"<p>{FORM}.</p>"]
    for number, pieces in enumerate(zip(*papers, strict=True)):
        for own, piece in zip(words, pieces, strict=True):
            own.append(_no_variables(html(piece.blocks)))
        body.append(f"<div>$hw_words_{number}</div>")
        body += (_line(field, points[field.word]) for field in pieces[0].fields)
    names = ", ".join(f"hw_words_{number}" for number in range(len(words[0])))
    drawn = f"{names}, = {_python(words)}[seed % {len(papers)}]"
    script = _SCRIPT.format(words=drawn, sheets=_python(dict(family.texts)))
    total = float(sum(field.points for field in fields(family.first)))
    about = f'display_name="{escape(family.title)}" weight="{total:.10g}"'
    lines = [
        f'<problem {about} rerandomize="{"per_student" if len(papers) > 1 else "never"}" showanswer="never">',
        f'<script type="loncapa/python">{escape(script, quote=False)}</script>',
        '<customresponse cfn="check" cfn_extra_args="seed">',
        *body,
        "</customresponse>",
        "</problem>",
    ]
    return "\n".join(lines) + "\n"


def _line(field: Field, points: int) -> str:
    name = name_html(field).replace('"', "&quot;")
    return f'<textline label="{name} =" size="{places_to_type(field)}" points="{points}"/>'


def _no_variables(text: str) -> str:
    """Words in which no $ begins the name of a variable: an invisible character stands behind it."""
    return text.replace("$", "$\u2060")


def _python(value: Any) -> str:
    """Python source without an ampersand, which capa would take for the start of &lt; and its like."""
    return repr(value).replace("&", "\\x26")


def checked(sheets: Mapping[str, str], seed: int, answers: str | Sequence[str]) -> dict[str, Any]:
    """What capa asks of a check function: for every line whether it is right, what it earns, what is to be said."""
    family = Family(sheets)
    marker = family.marker(family.numbered(seed))
    typed = [answers] if isinstance(answers, str) else answers
    lines = {field.word: text for field, text in zip(fields(marker), typed, strict=True)}
    return {"overall_message": "", "input_list": list(_inputs(marked_lines(marker, lines)))}


def _inputs(lines: Any) -> Iterator[dict[str, Any]]:
    for line in lines:
        ok: bool | str = line.share == 1 or (line.share > 0 and "partial")
        said = "<br/>".join(escape(text) for text in line.says.splitlines())
        yield {"ok": ok, "msg": said, "grade_decimal": float(line.share)}
