"""The empty file of answers to a sheet: every part and every name, nothing filled in."""

from collections.abc import Iterator

from headwork.marking.mark import Marker, ProblemMarker
from headwork.marking.truth import Truth
from headwork.sheets.questions import Asked
from headwork.sheets.sheet import NUMBERS, Sheet


def template_toml(sheet: Sheet) -> str:
    """What a student fills in, as TOML. Shapes are given away only where the sheet allows it (`shape = true`)."""
    return "\n".join(_lines(Marker(sheet))) + "\n"


def _lines(marker: Marker) -> Iterator[str]:
    yield f"# Answers to: {' '.join(marker.sheet.title.split())}"
    yield '# A matrix is written row by row: Q = [["1", "0.25"], ["3", "1/2"]] or Q = "1 0.25; 3 1/2"'
    yield 'student = ""'
    for problem in marker.problems:
        for label, truth in problem.truths.items():
            yield ""
            yield f'["{problem.prefix}{label}"]'
            yield from (_line(problem, truth, question) for question in truth.asked)


def _line(problem: ProblemMarker, truth: Truth, question: Asked) -> str:
    if truth.part.kind == "count":
        return f'"{question.name}" = {{ multiplications = "", additions = "", divisions = "" }}'
    if truth.part.kind in NUMBERS and problem.rules.shape:
        rows = ", ".join("[" + ", ".join('""' for _ in row) + "]" for row in question.entries)
        return f'"{question.name}" = [{rows}]'
    return f'"{question.name}" = ""'
