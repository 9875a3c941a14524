r"""Canvas: a quiz for every sheet in QTI 1.2, a numerical question for every entry.

Canvas takes every answer of a numerical question for a right one, so what mistakes would put there is told to all
whose number is wrong. Nothing follows through: `headwork mark SHEET analysis.csv` on the quiz's student analysis
gives the rest, and finds the entries by the names that their questions begin with.
"""

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from html import escape, unescape
from math import isinf
from urllib.parse import quote

from headwork.marking.graders.boxes import HIDDEN, Box, Boxed, boxed, number_text
from headwork.marking.graders.family import Family
from headwork.marking.graders.fields import Field
from headwork.marking.graders.files import Files
from headwork.marking.graders.paper import Piece, html, name_html, paper

_QTI = (
    '<questestinterop xmlns="http://www.imsglobal.org/xsd/ims_qtiasiv1p2" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://www.imsglobal.org/xsd/'
    'ims_qtiasiv1p2 http://www.imsglobal.org/xsd/ims_qtiasiv1p2p1.xsd">'
)
_META = '<quiz identifier="{ident}" xmlns="http://canvas.instructure.com/xsd/cccv1p0">'
_MANIFEST = '<manifest identifier="{ident}" xmlns="http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1">'
_XML = '<?xml version="1.0" encoding="UTF-8"?>'
_ITEM = """<item ident="{ident}" title="{title}">{about}
<presentation>{words}
<response_str ident="response1" rcardinality="Single"><render_fib{kind}><response_label ident="answer1"/></render_fib>
</response_str></presentation>
<resprocessing><outcomes><decvar maxvalue="100" minvalue="0" varname="SCORE" vartype="Decimal"/></outcomes>
<respcondition continue="No"><conditionvar>{right}</conditionvar>
<setvar action="Set" varname="SCORE">100</setvar></respcondition>{else_}</resprocessing>{feedback}
</item>"""
_ELSE = """
<respcondition continue="Yes"><conditionvar><other/></conditionvar>
<displayfeedback feedbacktype="Response" linkrefid="general_incorrect_fb"/></respcondition>"""
_FEEDBACK = """
<itemfeedback ident="general_incorrect_fb"><flow_mat>{words}</flow_mat></itemfeedback>"""
_HIDDEN = "".join(f'<varequal respident="response1">{escape(text)}</varequal>' for text in HIDDEN)
_INLINE = re.compile(r"\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)


def package(family: Family, name: str) -> Files:
    files: dict[str, bytes] = {}
    resources: list[str] = []
    for sheet, text in family.texts.items():
        ident = f"headwork_{sha256(text.encode()).hexdigest()[:32]}"
        marker = family.marker(sheet)
        title, answers = escape(f"{marker.sheet.title} ({sheet})"), boxed(marker)
        files[f"{ident}/{ident}.xml"] = _written(_quiz(ident, title, paper(marker), answers))
        files[f"{ident}/assessment_meta.xml"] = _written(_about(ident, title, answers))
        resources += _resources(ident)
    head = "<metadata><schema>IMS Content</schema><schemaversion>1.1.3</schemaversion></metadata>"
    whole = [_MANIFEST.format(ident=f"headwork_{name}"), head, "<organizations/>", "<resources>", *resources]
    return {"imsmanifest.xml": _written(iter([*whole, "</resources>", "</manifest>"])), **files}


def _written(lines: Iterator[str]) -> bytes:
    return "\n".join([_XML, *lines, ""]).encode()


def _resources(ident: str) -> list[str]:
    meta = f"{ident}/assessment_meta.xml"
    return [
        f'<resource identifier="{ident}" type="imsqti_xmlv1p2"><file href="{ident}/{ident}.xml"/>'
        f'<dependency identifierref="{ident}_meta"/></resource>',
        f'<resource identifier="{ident}_meta" type="associatedcontent/imscc_xmlv1p1/learning-application-resource" '
        f'href="{meta}"><file href="{meta}"/></resource>',
    ]


def _about(ident: str, title: str, answers: Boxed) -> Iterator[str]:
    """What Canvas wants to know of a quiz. Right answers stay hidden: students may try again."""
    points = sum(box.points for rows in answers.values() for row in rows for box in row)
    yield _META.format(ident=ident)
    yield f"<title>{title}</title>"
    yield "<quiz_type>assignment</quiz_type>"
    yield f"<points_possible>{float(points):.10g}</points_possible>"
    yield "<show_correct_answers>false</show_correct_answers>"
    yield "</quiz>"


def _quiz(ident: str, title: str, pieces: Iterable[Piece], answers: Boxed) -> Iterator[str]:
    yield _QTI
    yield f'<assessment ident="{ident}" title="{title}"><section ident="root_section">'
    for number, piece in enumerate(pieces):
        yield _text(f"{ident}_{number}", html(piece.blocks))
        for field in piece.fields:
            for i, row in enumerate(answers.get((field.part, field.name), ())):
                for j, box in enumerate(row):
                    yield _question(f"{ident}_{field.word}_{i}_{j}", field, box)
    yield "</section></assessment></questestinterop>"


def _text(ident: str, words: str) -> str:
    about = _metadata("text_only_question", "0")
    return f'<item ident="{ident}" title="">{about}<presentation>{_material(words)}</presentation></item>'


def _question(ident: str, field: Field, box: Box) -> str:
    places = re.findall(r"\d+", box.name.partition("[")[2])
    where = f" (row {places[0]}, column {places[1]} of {name_html(field)})" if places else ""
    hidden = isinf(box.right)
    told = "".join(f"<li>If you have {told.value:.4g}: {escape(told.says)}</li>" for told in box.predictions)
    return _ITEM.format(
        ident=ident,
        title=escape(box.name),
        about=_metadata("short_answer_question" if hidden else "numerical_question", f"{float(box.points):.10g}"),
        words=_material(f"<p>{escape(box.part)}.{escape(box.name)}{where}</p>"),
        kind="" if hidden else ' fibtype="Decimal"',
        right=_HIDDEN if hidden else _right(box),
        else_=_ELSE if told else "",
        feedback=_FEEDBACK.format(words=_material(f"<ul>{told}</ul>")) if told else "",
    )


def _right(box: Box) -> str:
    """The number, or near it: Canvas reads its margin off the upper end."""
    low, high = (number_text(float(number_text(box.right)) + side * box.room) for side in (-1, 1))
    near = f'<vargte respident="response1">{low}</vargte><varlte respident="response1">{high}</varlte>'
    return f'<or><varequal respident="response1">{number_text(box.right)}</varequal><and>{near}</and></or>'


def _metadata(kind: str, points: str) -> str:
    each = (("question_type", kind), ("points_possible", points))
    told = "".join(
        f"<qtimetadatafield><fieldlabel>{label}</fieldlabel><fieldentry>{entry}</fieldentry></qtimetadatafield>"
        for label, entry in each
    )
    return f"<itemmetadata><qtimetadata>{told}</qtimetadata></itemmetadata>"


def _material(words: str) -> str:
    return f'<material><mattext texttype="text/html">{escape(_INLINE.sub(_equation, words))}</mattext></material>'


def _equation(found: re.Match[str]) -> str:
    """A formula as Canvas's own editor keeps it."""
    formula = " ".join(unescape(found[1] or found[2]).split())
    shown = escape(formula)
    source = quote(quote(formula, safe=""), safe="")
    told = f'title="{shown}" alt="LaTeX: {shown}" data-equation-content="{shown}"'
    return f'<img class="equation_image" {told} src="/equation_images/{source}">'
