"""`Sheet` to TOML: what `load` reads, written so that a person can go on editing it."""

import json
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from headwork.formulas import SQRT_D_K, formula_named
from headwork.notation import is_vector
from headwork.readings.exact import Entry, Matrix
from headwork.sheets.sheet import Key, Part, Problem, Sheet
from headwork.sheets.written import plain, written_keys


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
    yield f"formula = {_text(problem.formula)}"
    if problem.text:
        yield f"text = {_text(problem.text)}"
    for key, value in (("heads", problem.heads), ("kv_heads", problem.kv_heads)):
        if value is not None:
            yield f"{key} = {value}"
    if formula_named(problem.formula).scaled and problem.scale != SQRT_D_K:
        assert problem.scale != "sqrt(d_k)"
        yield f"scale = {_text('none') if problem.scale is None else number_text(problem.scale)}"
    yield from (f"{key} = {_value(value)}" for key, value in written_keys(problem).items())
    if formula_named(problem.formula).blocks:
        yield f"blocks = {list(problem.blocks) if isinstance(problem.blocks, tuple) else problem.blocks}"
    if problem.softmax != "whole":
        yield f"softmax = {_text(problem.softmax)}"
    yield f"places = {problem.places}"
    yield f"first_index = {problem.notation.first_index}"
    if problem.columns:
        yield 'vectors = "columns"'
    for key, table in (("notation", problem.notation.names), ("sizes", problem.sizes), ("marking", problem.marking)):
        if table:
            yield f"[{prefix}{key}]"
            yield from (f"{_text(name)} = {_value(value)}" for name, value in table.items())
    if problem.given:
        yield f"[{prefix}given]"
        yield from _given(problem.given, problem.notation.first_index)
    for part in problem.parts:
        yield from _part(part, prefix, problem.notation.first_index)


def _part(part: Part, prefix: str, first: int) -> Iterator[str]:
    yield f"[[{prefix}part]]"
    yield f"label = {_text(part.label)}"
    if part.kind != "value":
        yield f"kind = {_text(part.kind)}"
    if part.points is not None:
        yield f"points = {number_text(part.points)}"
    for key, text in (("text", part.text), ("answer", part.answer)):
        if text:
            yield f"{key} = {_text(text)}"
    if part.find:
        yield f"find = [{', '.join(map(_text, part.find))}]"
    for key, number in (("mean", part.mean), ("variance", part.variance)):
        if number is not None:
            yield f"{key} = {number_text(number)}"
    if part.loss:
        yield f"loss = {_text(part.loss)}"
    if part.rate is not None:
        yield f"rate = {number_text(part.rate)}"
    if part.entries:
        yield "entries = true"
    if part.given:
        yield f"[{prefix}part.given]"
        yield from _given(part.given, first)


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
