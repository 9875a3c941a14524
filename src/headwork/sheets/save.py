"""`Sheet` to TOML: what `load` reads, written so that a person can go on editing it."""

import json
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from headwork.notation import is_vector
from headwork.readings.exact import Entry, Matrix
from headwork.sheets.sheet import Key, Problem, Sheet
from headwork.sheets.written import part_table, plain, problem_table

HEADINGS = ("notation", "sizes", "marking")


def sheet_toml(sheet: Sheet) -> str:
    """The sheet as a file: one problem at the top level, several under [[problem]]."""
    lines = [f"title = {_text(sheet.title)}"]
    if sheet.summary:
        lines.append(f"summary = {_text(sheet.summary)}")
    if len(sheet.problems) == 1 and sheet.problems[0].title == sheet.title:
        lines += _problem(sheet.problems[0], "")
    else:
        for problem in sheet.problems:
            lines += ["", "[[problem]]", f"title = {_text(problem.title)}", *_problem(problem, "problem.")]
    return "\n".join(lines) + "\n"


def _problem(problem: Problem, prefix: str) -> Iterator[str]:
    first = problem.notation.first_index
    yield from _keys(problem_table(problem), prefix)
    if problem.given:
        yield f"[{prefix}given]"
        yield from _given(problem.given, first)
    for part in problem.parts:
        yield f"[[{prefix}part]]"
        yield from _keys(part_table(part), prefix)
        if part.given:
            yield f"[{prefix}part.given]"
            yield from _given(part.given, first)


def _keys(table: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """A key to a line, and what people add lines to under headings."""
    yield from (f"{key} = {_value(value)}" for key, value in table.items() if key not in HEADINGS)
    for key in filter(table.__contains__, HEADINGS):
        yield f"[{prefix}{key}]"
        yield from (f"{_text(name)} = {_value(value)}" for name, value in table[key].items())


def _given(given: Mapping[Key, Matrix], first: int) -> Iterator[str]:
    """A matrix on a line; the matrices of all heads in one list when none is missing."""
    for role in dict.fromkeys(role for role, _ in given):
        heads = [head for r, head in given if r == role and head is not None]
        if (role, None) in given:
            yield f"{role} = {_vector_or_matrix(role, given[role, None])}"
        if heads and sorted(heads) == list(range(len(heads))):
            matrices = ",\n  ".join(_vector_or_matrix(role, given[role, head]) for head in sorted(heads))
            yield f"{role} = [\n  {matrices},\n]"
        else:
            yield from (f"{role}_{head + first} = {_vector_or_matrix(role, given[role, head])}" for head in heads)


def _vector_or_matrix(role: str, matrix: Matrix) -> str:
    return _row(matrix[0]) if is_vector(role) else _matrix(matrix)


def _matrix(matrix: Matrix) -> str:
    return f"[{', '.join(_row(row) for row in matrix)}]"


def _row(row: tuple[Entry, ...]) -> str:
    return f"[{', '.join(number_text(entry) for entry in row)}]"


def number_text(entry: Entry) -> str:
    """3, "0.25", "1/3", "2*sqrt(3)/3": whole numbers bare, all else as text that is read back exactly."""
    return _value(plain(entry))


def _value(value: Any) -> str:
    """What a table of ours may hold."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | date):
        return str(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_text(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return _text(str(value))


def _text(text: str) -> str:
    """A TOML string: JSON's escapes are TOML's, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
