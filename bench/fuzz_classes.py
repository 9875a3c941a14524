"""Classes for `fuzz.py`: rosters, spreadsheets of answers, points set by hand, gradebooks and earlier marks, as a
teacher has them, and packages for every platform."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from random import Random
from typing import Any

from fuzz_cases import Case
from fuzz_numbers import EXTREME, junk, matrix, small
from fuzz_sheets import hostile_text, name, sheet_table, toml

from headwork.marking.graders import GRADERS

NAMES = ("Ada", "Bob", "ada", "Zoë Müller", "O'Neill, Ann", '"Q"', "=1+1", "李", "a;b", "a\tb", "")
FORMATS = ("text", "html", "md", "tex", "json", "csv", "class", "gradescope", "x")


def marked_class(draw: Random, temper: str) -> Case:
    """A spreadsheet of answers to a sheet, and now and then what goes with one."""
    table = sheet_table(draw, temper == "extreme" and draw.random() < 0.3)
    table["marking"] = rules(draw, temper)
    students = draw.sample(NAMES, draw.randint(1, 4))
    labels = [part["label"] for part in table["part"]]
    asked = [f"{part['label']}.{key}" for part in table["part"] for key in part["find"]]
    rows = [[student, *(written(draw, temper) for _ in asked)] for student in students]
    texts = {"class.csv": sheet_of_cells(draw, ["student", *asked], rows)}
    arguments = ["mark", "sheet.toml", "class.csv", "--jobs", "1"]
    if draw.random() < 0.3:
        arguments += ["--overrides", "by-hand.csv"]
        texts["by-hand.csv"] = by_hand(draw, temper, students, labels)
    kind = draw.choice(["plain", "format", "since", "gradebook", "pages", "template"])
    if kind == "format":
        arguments += ["--format", draw.choice(FORMATS)]
    elif kind == "since":
        arguments += ["--since", "before.csv"]
        texts["before.csv"] = before(draw, temper, students, labels)
    elif kind == "gradebook":
        arguments += ["--gradebook", "grades.csv", "--output", "filled.csv"]
        arguments += draw.choice([[], ["--column", draw.choice(["Sheet", "Drawn", "", name(draw)])]])
        texts["grades.csv"] = gradebook(draw, students)
    elif kind == "pages":
        arguments += ["--pages", "returned"]
    elif kind == "template":
        arguments = ["mark", "sheet.toml", "--template"]
    files = {path: content(draw, temper, text) for path, text in texts.items()}
    return Case(arguments, files | {"sheet.toml": content(draw, "legal", toml(table))})


def rules(draw: Random, temper: str) -> dict[str, Any]:
    found = {
        "tolerance": draw.choice(["last-place", "exact", "2 places", "3 figures", "0.01 + 1%", "1e-40 + 0%"]),
        "credit": draw.choice(["entry", "matrix", "part"]),
        "penalty": draw.choice([0, 1, "1/10", "0.333"]),
        "shape": draw.choice([True, False]),
    }
    if temper == "hostile" and draw.random() < 0.3:
        found[draw.choice([*found, "points", "working_from", "x"])] = junk(draw)
    return {key: found[key] for key in draw.sample([*found], draw.randint(0, len(found)))}


def written(draw: Random, temper: str) -> str:
    """A cell: a matrix, a number, nothing, or what somebody types instead."""
    number = draw.choice(EXTREME) if temper == "extreme" else small
    rows = matrix(draw, draw.randint(1, 4), draw.randint(1, 4), lambda draw: str(number(draw)))
    if temper == "hostile" and draw.random() < 0.4:
        return str(junk(draw))
    whole = "; ".join(" ".join(row) for row in rows)
    return str(draw.choice([whole, whole, str(rows), rows[0][0], "", "-", "50%", "1,5"]))


def by_hand(draw: Random, temper: str, students: Sequence[str], labels: Sequence[str]) -> str:
    rows = [
        [draw.choice([*students, "nobody"]), draw.choice([*labels, "z"]), points(draw, temper), draw.choice(NAMES)]
        for _ in range(draw.randint(0, 3))
    ]
    return sheet_of_cells(draw, ["student", "part", "score", "reason"], rows)


def before(draw: Random, temper: str, students: Sequence[str], labels: Sequence[str]) -> str:
    columns = ["student", "score", "max_score", *labels, "tags", "note"]
    rows = [[student, *(points(draw, temper) for _ in columns[1:])] for student in [*students, "gone"]]
    return sheet_of_cells(draw, columns, rows)


def points(draw: Random, temper: str) -> str:
    return str(junk(draw)) if temper == "hostile" and draw.random() < 0.3 else draw.choice(["0", "1", "2.5", "1/3", ""])


def gradebook(draw: Random, students: Sequence[str]) -> str:
    """As Canvas, Moodle and Gradescope give it."""
    header = draw.choice(
        [
            ["Student", "ID", "SIS Login ID", "Section", "Drawn (123)", "Final Score"],
            ["First name", "Surname", "ID number", "Email address", "Last downloaded from this course"],
            ["Name", "SID", "Email", "Drawn", "Drawn - Max Points"],
            ["x", "y"],
        ]
    )
    rows = [[student, *(draw.choice(["", "7", *NAMES]) for _ in header[1:])] for student in students]
    return sheet_of_cells(draw, header, [["    Points Possible"] * draw.randint(0, 1), *rows])


def sheet_of_cells(draw: Random, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A CSV as spreadsheets save it: any separator, either line end, with or without a mark at the beginning; now and
    then a row is short or long."""
    text = io.StringIO()
    ends = draw.choice(["\n", "\r\n"])
    table = csv.writer(text, delimiter=draw.choice([",", ",", ";", "\t"]), lineterminator=ends)
    table.writerow(header)
    for row in rows:
        table.writerow(draw.choice([row] * 8 + [row[:-1], [*row, "more"]]))
    return draw.choice(["", "", "\ufeff"]) + text.getvalue() + draw.choice(["", ends])


def content(draw: Random, temper: str, text: str) -> bytes:
    damaged = temper == "hostile" and draw.random() < 0.3
    return hostile_text(draw, text) if damaged else text.encode("utf-8", "replace")


def roster(draw: Random, temper: str) -> Case:
    """A sheet for everybody on a list."""
    ids = draw.sample(["ada", "bob", "s123", "a.b@c.de", "x" * 64], draw.randint(1, 2))
    if temper == "hostile":
        ids += draw.sample(["", "..", "roster", "ADA", "a/b", "ada", "x" * 65, "é"], draw.randint(0, 2))
    rows = [[each, draw.choice(NAMES)] for each in ids]
    header = draw.choice([["id", "name"], ["ID", "Name"], ["student", "name"], [" id ", "email"]])
    arguments = ["new", "--roster", "roster.csv", "--output", "class"]
    points = ["a=3, b=1/2", "a=2"]
    if temper == "hostile":
        header = draw.choice([header, ["login", "name"], [""], ["id", "id"]])
        points += ["z=1", "a=", "a=1/0", name(draw)]
    arguments += draw.choice([[], ["--points", draw.choice(points)]])
    arguments += draw.choice(
        [[], ["--formula", "single_head", "--heads", "1"], ["--tokens", "2"], ["--mask", "causal"]]
    )
    return Case(arguments, {"roster.csv": content(draw, temper, sheet_of_cells(draw, header, rows))})


def package(draw: Random, temper: str) -> Case:
    """A sheet of any kind, for a platform."""
    table = sheet_table(draw, temper == "extreme") | {"marking": rules(draw, temper)}
    arguments = ["export", "sheet.toml", "--to", draw.choice([*GRADERS])]
    arguments += draw.choice([[], ["--output", draw.choice(["packed", "packed.zip", "packed.xml", ".", "no/where"])]])
    return Case(arguments, {"sheet.toml": content(draw, temper, toml(table))})
