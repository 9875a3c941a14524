"""The reading in Maxima, run by Maxima, beside the reading in floats."""

import re
import shutil
import subprocess
from dataclasses import replace
from importlib import resources
from math import inf, isnan
from pathlib import Path

import pytest

from headwork.formulas import given
from headwork.graph import Step, in_order
from headwork.marking.graders.maxima import assignments, matrix_text, maxima
from headwork.mistakes.catalogue import CATALOGUE
from headwork.mistakes.make import Plan, new_sheet
from headwork.mistakes.operations import FLOATS
from headwork.mistakes.predict import Variant
from headwork.ops import DivideBy, Given
from headwork.readings.floats import Floats, to_floats
from headwork.sheets.load import load
from headwork.sheets.ready import Ready
from tests.graders.conftest import need

ATTACKS = Path(__file__).parent.parent / "attacks"
PRELUDE = (resources.files("headwork.marking.graders") / "stack.mac").read_text("utf-8")
PLANS = {
    "heads": Plan(tokens=3),
    "blocks": Plan("multi_head_blocks", tokens=3),
    "masked": Plan(tokens=4, mask="causal", biases=True),
    "one head": Plan("single_head", tokens=3, d_model=3),
    "unfolded": Plan(tokens=3, mask="causal"),
}


def run(program: str, folder: Path) -> list[str]:
    """What a program prints, line by line; Debian's Maxima takes half a second to start."""
    need(shutil.which("maxima"), "maxima is missing: apt-get install maxima maxima-share")
    file = folder / "program.mac"
    file.write_text("display2d: false$ linel: 100000$ ratprint: false$\n" + program.replace(";\n", "$\n"), "utf-8")
    done = subprocess.run(
        ["maxima", "--very-quiet", "--batch-string", f'batchload("{file}")$'],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "error" not in done.stdout.lower(), done.stdout[-2000:]
    return [line.strip() for line in done.stdout.splitlines() if line.strip() and not line.startswith("batchload")]


def numbers(printed: str) -> Floats:
    rows = re.findall(r"\[([^\[\]]*)\]", printed)
    return [[float(x) for x in row.split(",")] for row in rows]


@pytest.mark.parametrize("plan", PLANS)
def test_maxima_works_out_the_right_graph_and_every_mistaken_one(plan: str, tmp_path: Path) -> None:
    """Every step of every graph, entry by entry."""
    ready = Ready(replace(new_sheet(PLANS[plan]).problems[0], softmax="safe-steps" if plan == "unfolded" else "whole"))
    graphs = [ready.last, *(graph for mistake in CATALOGUE.values() for graph in mistake.made_in(ready.last))]
    program, wanted = [PRELUDE], []
    given = {step: f"g{i}" for i, step in enumerate(ready.handed)}
    program += [f"{name}: float({matrix_text(ready.handed[step])});" for step, name in given.items()]
    for number, graph in enumerate(graphs):
        names: dict[Step, str] = {s: f"v{number}_{i}" for i, s in enumerate(in_order(graph))}
        meaning, lines = assignments(graph, given, names.__getitem__)
        variant = Variant(graph, FLOATS)
        values = variant.everything({step: to_floats(matrix) for step, matrix in ready.handed.items()})
        worked = [step for step in meaning if not isinstance(step.op, Given)]
        for step, line in zip(worked, lines, strict=True):
            if step in values:  # a mistake may lead to matrices that no longer fit
                program += [line, f"print({names[step]});"]
                wanted.append(values[step])
    printed = run("\n".join(program) + "\n", tmp_path)
    assert len(printed) == len(wanted) > 100
    for line, matrix in zip(printed, wanted, strict=True):
        found = numbers(line)
        assert (len(found), len(found[0])) == (len(matrix), len(matrix[0]))
        for row, right in zip(found, matrix, strict=True):
            for x, y in zip(row, right, strict=True):
                assert x == pytest.approx(y, rel=1e-12, abs=1e-12) or isnan(y) or abs(y) == inf
                assert (x < -1e8) == (y == -inf)  # a very low number is Maxima's −∞


def test_what_is_read_twice_is_written_once(tmp_path: Path) -> None:
    """The gradient of X in three tokens, its norm and its scores: in full it would be twenty million characters."""
    ready = Ready(load(ATTACKS / "package-of-long-formulas" / "sheet.toml").problems[0])
    handed = ready.handed_in(ready.problem.parts[-1])
    given = {step: f"g{i}" for i, step in enumerate(handed)}
    asked = ready.steps["d_X", None]
    text = maxima(asked, given)
    assert len(text) < 5_000
    lines = [f"{name}: float({matrix_text(handed[step])});" for step, name in given.items()]
    (printed,) = run("\n".join([PRELUDE, *lines, f"print({text});"]) + "\n", tmp_path)
    right = Variant(ready.ends, FLOATS).value(asked, {step: to_floats(matrix) for step, matrix in handed.items()})
    for row, wanted in zip(numbers(printed), right, strict=True):
        assert row == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_on_the_way_back_what_is_divided_by_nothing_is_nothing(tmp_path: Path) -> None:
    passed, sums = given("passed", (2, 2)), given("sums", (2, 1))
    step = Step(DivideBy(back=True), (passed, sums), "shares")
    _, lines = assignments(step, {passed: "p", sums: "n"}, lambda step: "v")
    program = [PRELUDE, "p: matrix([3.0,1.0],[2.0,0.0]);", "n: matrix([2.0],[0.0]);", *lines, "print(v);"]
    (printed,) = run("\n".join(program) + "\n", tmp_path)
    assert numbers(printed) == [[1.5, 0.5], [0, 0]]


@pytest.mark.parametrize(
    ("typed", "rows", "columns", "read"),
    [
        ("0.880 1/2; -3 4", 2, 2, "[matrix([22/25,1/2],[-3,4]),matrix([3,-1],[0,0])]"),
        ("[[0.5, 2], [3, -inf]]", 2, 2, "[matrix([1/2,2],[3,-1.0e+9]),matrix([1,0],[0,-1])]"),
        ("  7 ", 1, 1, "[matrix([7]),matrix([0])]"),
        ("", 1, 1, "[]"),
        (" ; ", 1, 1, "[]"),
        ("1 2; 3", 2, 2, "false"),
        ("1 2 3", 1, 2, "false"),
        ("1 oops", 1, 2, "false"),
        ("1 1/0", 1, 2, "false"),
        ("1 .", 1, 2, "false"),
        ("1 1.2.3", 1, 2, "false"),
        ("1 system(1)", 1, 2, "false"),
    ],
)
def test_matrices_as_they_are_typed(typed: str, rows: int, columns: int, read: str, tmp_path: Path) -> None:
    (printed,) = run(f'{PRELUDE}\nprint(hw_read("{typed}", {rows}, {columns}));\n', tmp_path)
    assert printed.replace(" ", "").lower() == read
