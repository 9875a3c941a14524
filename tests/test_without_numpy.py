"""The teaching half needs no NumPy: sheets, pages, new sheets, mistakes and marking run where there is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headwork.sheets.shelf import built_in
from tests.test_imports import imported, modules, room, source

# Arrays belong to the engine and the frameworks, to somebody's code, to a layer's page, and to one reading.
WITH_NUMPY = ("headwork.readings.values", "headwork.layer_on_page")
HEADWORK = """
import sys
sys.modules["numpy"] = None
from typer.testing import CliRunner
from headwork.cli import app
run = lambda *words: CliRunner().invoke(app, words)
"""
ENDINGS = (".md", ".tex", ".typ", ".html", ".txt", ".ipynb", ".json", ".svg")


@pytest.mark.parametrize(
    "module", [m for m in modules() if room(m) not in ("engine", "torch", "jax", "inspecting", "looking")]
)
def test_no_module_imports_it(module: str) -> None:
    found = {other.partition(".")[0] for other in imported(source(module))}
    assert module in WITH_NUMPY or "numpy" not in found


def without_numpy(*commands: list[str]) -> list[tuple[int, str]]:
    """Exit code and output of every command, run in one process that cannot import NumPy."""
    program = f"{HEADWORK}import json\ndone = [run(*words) for words in {list(commands)!r}]\n"
    program += "print(json.dumps([(r.exit_code, r.output + repr(r.exception)) for r in done]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [(code, output) for code, output in json.loads(done.stdout.splitlines()[-1])]


def test_every_page_is_made_without_it(tmp_path: Path) -> None:
    commands = [["solve", name] for name in built_in()]
    commands += [["solve", "two-heads", "--output", str(tmp_path / f"page{ending}")] for ending in ENDINGS]
    commands += [["draw", "two-heads", "--output", str(tmp_path / "picture.svg")]]
    commands += [[reading] for reading in ("shapes", "count", "moments", "prove")]
    for command, (code, output) in zip(commands, without_numpy(*commands), strict=True):
        assert code == 0, (command, output)


def test_answers_to_a_new_sheet_are_marked_without_it(tmp_path: Path) -> None:
    """A made sheet, a wrong matrix that is nobody's mistake, so that pairs are tried too, and a mistake with a name."""
    sheet, answers, heads = str(tmp_path / "sheet-1.toml"), tmp_path / "answers.csv", tmp_path / "heads.json"
    answers.write_text("student,a.Q_1,b.scores_1\nAda,9 8 7; 1 2 3; 5 5 1,1 2 3; 4 5 6; 7 8 10\n")
    heads.write_text('{"1.a": {"joined": [[1, 2, 5, 6], [3, 4, 7, 9]]}}')
    commands = [
        ["new", "--output", str(tmp_path), "--count", "1"],
        ["mark", sheet, str(answers)],
        ["mark", sheet, str(answers), "--format", "html"],
        ["mark", "two-heads", str(heads)],
    ]
    (made, first), *marked = without_numpy(*commands)
    assert made == 0, first
    assert [code for code, _ in marked] == [0, 0, 0], marked
    assert "Ada" in marked[0][1]
    assert "one-entry" in marked[2][1]


def test_that_those_tests_can_fail(tmp_path: Path) -> None:
    code_file = tmp_path / "code.py"
    code_file.write_text("def f(q, k, v):\n    return v\n")
    ((code, output),) = without_numpy(["inspect", f"{code_file}:f"])
    assert code != 0
    assert "numpy" in output
