"""Practice: the sheet with empty grids, marked entry by entry, with hints in steps."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from typing import Any

from headwork.errors import HeadworkError
from headwork.inline import inline
from headwork.marking.mark import Marker
from headwork.marking.marks import AnswerMark
from headwork.marking.one_file import Answers
from headwork.marking.table import Boxes
from headwork.marking.tolerance import read_number
from headwork.numbers.parse import NumberError
from headwork.readings.exact import Matrix
from headwork.render import blocks as b
from headwork.render.cells import Style, cell
from headwork.render.html import block_html
from headwork.render.prose import read_prose
from headwork.sheets.questions import Asked, printed_name, questions
from headwork.sheets.ready import Found
from headwork.sheets.sheet import NUMBERS, Part, Sheet
from headwork.web.page import Page, grid
from headwork.working import Equation

SAID = {
    "right": "right",
    "follows": "follows from your own earlier numbers",
    "wrong": "not right yet",
    "malformed": "cannot be read",
    "blank": "",
}


def practised(page: Page, every: bool) -> Sheet:
    """The sheet as it is practised: as it asks, or with every step on the way asked for."""
    if not every:
        return page.sheet
    problems = []
    for worked in page.worked:
        parts = [_every_step(p.part, p.lines, worked.notation.first_index) for p in worked.parts]
        problems.append(replace(worked.problem, parts=tuple(parts), marking={}))
    return replace(page.sheet, problems=tuple(problems))


def _every_step(part: Part, lines: tuple[Any, ...], first: int) -> Part:
    if part.kind != "value":
        return part
    names = []
    for line in lines:
        if isinstance(line, Equation) and not line.given:
            head = "" if line.head is None else f"_{int(line.head) + first}"
            names.append(f"{line.role}{head}" + ("" if line.row is None else f"[{line.row + first}]"))
    return replace(part, find=tuple(dict.fromkeys(names)) or part.find)


def practice(page: Page, every: bool, worked: int) -> dict[str, Any]:
    """The empty sheet, the first so many of its matrices filled in, and how many there are."""
    sheet = practised(page, every)
    left, total = worked, 0
    made = [f"<header><h1>{escape(sheet.title)}</h1></header>"]
    for number, problem in enumerate(sheet.problems):
        ready = page.ready[number]
        names = page.names[number]
        made.append(f'<section class="problem practice" data-problem="{number}">')
        made += [f"<h2>{number + 1}. {escape(problem.title)}</h2>"] if len(sheet.problems) > 1 else []
        made += [block_html(b.Paragraph(read_prose(problem.text, names)))] if problem.text else []
        made += [f'<div class="beside"><div class="start">{page.givens(number, locked=True)}</div><div class="parts">']
        for part in problem.parts:
            label = _label(sheet, number, part)
            made.append(f'<article class="part" data-part="{escape(label)}">')
            made.append(block_html(b.Question(part.label, read_prose(part.text, names))))
            if part.kind not in NUMBERS:
                made.append('<p class="note">This one is for paper: a person reads it.</p>')
            else:
                asked = questions(part, ready)
                total += len(asked)
                made += list(_grids(page, number, part, label, asked, left))
                left = max(0, left - len(asked))
            made.append("</article>")
        made.append("</div></div></section>")
    return {"html": "\n".join(made), "grids": total}


def _label(sheet: Sheet, number: int, part: Part) -> str:
    return f"{number + 1}.{part.label}" if len(sheet.problems) > 1 else part.label


def _grids(page: Page, number: int, part: Part, label: str, asked: tuple[Asked, ...], left: int) -> Iterator[str]:
    ready = page.ready[number]
    problem = ready.problem
    truth = ready.truth(part)
    originally = next(p for p in problem.parts if p.label == part.label)
    wanted = {question.name for question in questions(originally, ready)}
    style = Style(problem.places)
    for place, question in enumerate(asked):
        found = question.found
        matrix = _asked(found, truth[found.step])
        filled = place < left
        rows = [[inline(cell(x, style)[0]) if filled else "" for x in row] for row in matrix]
        about: dict[str, object] = {
            "practice": "worked" if filled else "open",
            "problem": number,
            "part": label,
            "name": question.name,
            "role": found.step.role,
            "head": found.step.head,
            "asked": str(question.name in wanted).lower(),
        }
        name = printed_name(found, problem.notation)
        corner = (found.row or 0, found.column or 0)
        yield f'<div class="answer-grid">{grid(name.maths, str(name), rows, about, corner=corner, locked=filled)}'
        yield '<p class="verdict" role="status"></p></div>'


def _asked(found: Found, matrix: Matrix) -> Matrix:
    """The whole, a row of it, or one entry."""
    rows = matrix if found.row is None else matrix[found.row : found.row + 1]
    return rows if found.column is None else tuple(row[found.column : found.column + 1] for row in rows)


def marked(marker: Marker, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every answer: what becomes of each of its entries, in words what becomes of all, and the mistake by name."""
    parts = {str(label): _boxes(answers) for label, answers in given.items() if isinstance(answers, dict)}
    marks = marker.mark(Answers("student", parts))
    found: dict[str, dict[str, Any]] = {}
    for part in marks.parts:
        told = parts.get(part.label, {})
        found[part.label] = {answer.name: _told(answer, told.get(answer.name)) for answer in part.answers}
    entries = sum(a.entries for p in marks.parts for a in p.answers)
    verdicts = [v for part in found.values() for one in part.values() for row in one["entries"] for v in row]
    done = verdicts.count("right") + verdicts.count("follows")
    return {"parts": found, "done": done, "of": entries}


def _boxes(answers: Mapping[str, Any]) -> dict[str, Boxes]:
    made = {}
    for name, rows in answers.items():
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise HeadworkError(f"the answer {str(name)[:40]} is not rows of numbers")
        made[str(name)] = Boxes([str(text) for text in row] for row in rows)
    return made


def _told(answer: AnswerMark, boxes: Boxes | None) -> dict[str, Any]:
    entries = [[verdict for _, verdict in row] for row in answer.rows]
    reasons: list[str] = []
    if boxes is not None:
        entries = entries or [["blank" for _ in row] for row in boxes]
        for i, row in enumerate(boxes):
            for j, text in enumerate(row):
                if reason := _no_number(text):
                    entries[i][j] = "nonsense"
                    reasons.append(reason)
    whole = bool(entries) and not any(verdict in ("blank", "nonsense") for row in entries for verdict in row)
    if not whole:
        return {"verdict": "open", "entries": entries, "said": reasons[0] if reasons else "", "tags": []}
    said = [SAID[answer.verdict], answer.message]
    said += [f"consistent with {', or '.join(answer.tags)}: {answer.advice}"] if answer.tags else []
    return {"verdict": answer.verdict, "entries": entries, "said": "; ".join(filter(None, said)), "tags": answer.tags}


def _no_number(text: str) -> str:
    """Why a text is no number; nothing where it is one, or is empty."""
    try:
        if text.strip():
            read_number(text)
    except NumberError as error:
        return str(error)
    return ""
