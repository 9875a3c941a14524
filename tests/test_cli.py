"""The command line: whole pages, exit codes, and one line for a user's mistake."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mpmath
import pytest
from typer.testing import CliRunner

import headwork
from headwork.cli import COMMANDS, app, asked_for
from headwork.render.json import working_json
from headwork.render.save import rendered
from headwork.sheets.shelf import built_in

GOLDEN = Path(__file__).parent / "golden"


def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The command as a shell would run it."""
    program = "import sys; sys.argv[0] = 'headwork'; from headwork.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100", "TERM": "dumb"},
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def matches(page: str, name: str) -> None:
    """Compare with the page kept under tests/golden; HEADWORK_UPDATE_GOLDEN=1 writes it anew, to be read first."""
    path = GOLDEN / name
    if os.environ.get("HEADWORK_UPDATE_GOLDEN"):
        path.write_text(page, "utf-8")
    assert page == path.read_text("utf-8")


@pytest.mark.parametrize("name", built_in())
def test_the_whole_page_of_every_sheet(name: str) -> None:
    matches(rendered(headwork.solve(name), ".txt"), f"{name}.txt")


def test_the_command_prints_that_page() -> None:
    assert run("solve", "two-heads").stdout == (GOLDEN / "two-heads.txt").read_text("utf-8")


def test_other_pages() -> None:
    matches(run("shapes", "--formula", "multi_head_blocks", "--batch", "B", "--heads", "h").stdout, "shapes.txt")
    matches(run("count", "--tokens", "1024", "--d-model", "512", "--heads", "8").stdout, "count.txt")
    matches(
        run("count", "--convention", "flops", "--kv-heads", "2", "--heads", "4", "--d-model", "8").stdout, "flops.txt"
    )
    matches(run("moments", "--mean", "0", "--variance", "1").stdout, "moments.txt")
    matches(run("prove").stdout, "prove.txt")
    matches(run("prove", "--entries").stdout, "prove-entries.txt")
    matches(run("sheets").stdout, "sheets.txt")
    matches(run("solve", "two-heads", "--part", "c", "--exact").stdout, "exact.txt")


def test_the_arithmetic_of_an_entry() -> None:
    page = run("solve", "two-heads", "--entry", "scores_1[2,1]").stdout
    assert "scores_1[2,1] = 3·2 + 4·1\n" in page
    assert page.rstrip().endswith("= 10")
    page = run("solve", "two-heads", "--entry", "weights_1[1,2]", "--places", "4").stdout
    assert "≈ e^(7.0711) / (e^(2.8284) + e^(7.0711))\n" in page
    assert "≈ 1177 / (16.92 + 1177)\n" in page
    assert "≈ 1177 / 1194\n" in page
    assert "≈ 0.9858" in page


def test_places_and_parts() -> None:
    page = run("solve", "two-heads", "--part", "c", "--places", "6").stdout
    assert "6.943336" in page
    assert "(a)" not in page


def test_json_has_the_documented_schema() -> None:
    page = json.loads(run("solve", "two-heads", "--format", "json").stdout)
    assert page["schema"] == 1
    assert [p["title"] for p in page["problems"]] == ["Warm-up: joining", "A layer with two heads"]
    part = page["problems"][1]["parts"][0]
    assert (part["label"], part["kind"]) == ("a", "value")
    steps = {(s["role"], s["head"]): s for s in part["steps"]}
    assert steps["Q", 1] == {
        "name": "Q_2",
        "role": "Q",
        "head": 1,
        "shape": [2, 2],
        "value": [["2", "1"], ["4", "3"]],
        "exact": [["2", "1"], ["4", "3"]],
    }
    last = page["problems"][1]["parts"][2]["steps"][-1]
    assert (last["role"], last["head"]) == ("output", None)
    first_weight = 1 / (1 + mpmath.exp(6 / mpmath.sqrt(2)))  # scores 4 and 10 in the first row of both heads
    M = mpmath.nstr(7 - 4 * first_weight, 12)  # (w + 3(1 − w)) + (2w + 4(1 − w))
    assert last["value"][0] == [M, f"-{M}"] == ["6.94333585649", "-6.94333585649"]
    scaled = next(s for s in page["problems"][1]["parts"][1]["steps"] if s["role"] == "scaled")
    assert scaled["exact"][0] == ["2√2", "5√2"]


@pytest.mark.parametrize("name", built_in())
def test_a_part_lists_every_step_it_needed_inputs_first(name: str) -> None:
    page = json.loads(working_json(headwork.solve(name)))
    for problem in page["problems"]:
        for part in problem["parts"]:
            if part["kind"] != "value":
                continue
            for step in part["steps"]:
                rows, columns = step["shape"]
                assert len(step["value"]) == len(step["exact"]) == rows
                assert all(len(row) == columns for row in step["value"])
                assert all(
                    len(x.strip("-0.").replace(".", "").split("e")[0]) <= 12 for row in step["value"] for x in row
                )
                assert all(float(x) == float(Fraction(x)) for row in step["value"] for x in row if x != "-inf")


def test_json_keeps_shapes_in_symbols() -> None:
    page = json.loads(run("solve", "block-matrices", "--part", "c", "--format", "json").stdout)
    step = page["problems"][0]["parts"][0]["steps"][0]
    assert (step["shape"], step["value"]) == (["B", "n", "n"], None)


def test_output_goes_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "page.txt"
    assert run("solve", "two-heads", "--output", str(path)).stdout == ""
    assert path.read_text("utf-8") == (GOLDEN / "two-heads.txt").read_text("utf-8")
    missing = run("solve", "two-heads", "--output", str(tmp_path / "no" / "page.txt"), code=2)
    assert "choose another --output" in missing.stderr


def test_the_way_back_has_shapes_and_costs_too() -> None:
    assert "D         = row sums of weighted  2×1" in run("shapes", "one-step-of-learning").stdout
    counted = run("count", "one-step-of-learning").stdout
    assert "total there" in counted
    assert "total back" in counted


MISTAKES: list[tuple[list[str], str]] = [
    (["solve", "two-haeds"], "there is no sheet 'two-haeds'; did you mean 'two-heads'?"),
    (["solve", "nowhere"], "there is no sheet 'nowhere'; give a path or one of: block-matrices"),
    (["solve", "two-heads", "--part", "z"], "there is no part 'z'; there is a, b, c"),
    (["solve", "two-heads", "--entry", "scores_9[1,1]"], "'scores_9[1,1]' is asked for, but multi_head has only"),
    (["solve", "two-heads", "--entry", "scores_1[1,5]"], "columns go from 1 to 2"),
    (["solve", "two-heads", "--format", "yaml"], "there is no format 'yaml'; choose from text, json"),
    (["shapes", "--formula", "sparse"], "there is no formula 'sparse'; choose from dot_product"),
    (["shapes", "--formula", "multi_haed"], "there is no formula 'multi_haed'; did you mean 'multi_head'?"),
    (["shapes", "--heads", "3", "--d-model", "8"], "d_model = 8 cannot be shared by 3 heads; choose a multiple of 3"),
    (["shapes", "--tokens", "0"], "0 is not a size; give a whole number from 1 on, or a symbol such as n"),
    (["shapes", "--tokens", "__import__('os')"], "is not a size"),
    (["shapes", "--formula", "single_head", "--heads", "2"], "single_head has one head"),
    (["shapes", "--kv-heads", "3", "--heads", "8", "--d-model", "64"], "8 query heads cannot share 3 key"),
    (["count", "--convention", "guess"], "there is no convention 'guess'; choose from by-hand, flops"),
    (["prove", "--claim", "p=np"], "there is no claim 'p=np'; choose blocks, entry, row, shift, blockwise or gradient"),
    (["prove", "two-heads"], "has no part of kind 'prove'"),
    (["moments", "--variance", "-1"], "is negative; give 0 or more"),
    (["moments", "--mean", "x"], "'x' is not a number"),
    (["bench", "--json", "figures.txt"], "figures.txt cannot be written; name a .json file"),
]

# What would be ignored is refused: the option and, as the reason gives it, what it does not go with.
SHEET = "'two-heads' is a sheet and has its own"
IGNORED: list[tuple[str, str]] = [
    ("shapes two-heads --tokens 5", f"--tokens cannot be honoured here: {SHEET}"),
    ("shapes two-heads --formula dot_product", f"--formula cannot be honoured here: {SHEET}"),
    ("draw two-heads --heads 7", f"--heads cannot be honoured here: {SHEET}"),
    ("draw two-heads --biases", f"--biases cannot be honoured here: {SHEET}"),
    ("count two-heads --convention flops", f"--convention cannot be honoured here: {SHEET}"),
    ("count two-heads --item-bytes 2", f"--item-bytes cannot be honoured here: {SHEET}"),
    ("count two-heads --plot plot.svg", f"--plot cannot be honoured here: {SHEET}"),
    ("count --tokens 8 --plot plot.svg", "--tokens cannot be honoured here: a plot runs through"),
    ("prove query-key-value --tokens 3", "--tokens cannot be honoured here: 'query-key-value' is a sheet"),
    ("prove --claim row --heads 3", "--heads cannot be honoured here: --claim row is about one step"),
    ("prove --claim entry --left dot_product", "--left cannot be honoured here: --claim entry"),
    ("moments query-key-value --seed 3", "--seed cannot be honoured here: 'query-key-value' is a sheet"),
    ("moments --variance 0 --seed 3", "--seed cannot be honoured here: with variance 0 nothing is drawn"),
    ("moments --d-k 4 --plot plot.svg", "--d-k cannot be honoured here: a plot shows q·k for many widths"),
    ("shapes --formula dot_product --d-model 8", "dot_product has no d_model; leave d_model = 8 out"),
    ("shapes --formula scaled_dot_product --biases", "scaled_dot_product has no biases"),
    ("count --formula single_head --kv-heads 2", "single_head has no kv_heads"),
    ("solve two-heads --format json --output page.html", "page.html is no name for json, which ends in .json"),
    ("solve two-heads --format text --output page.json", "page.json is no name for text, which ends in .txt"),
    ("solve two-heads --format json --answers-only", "--answers-only cannot be honoured here: JSON holds every step"),
    ("solve two-heads --output page.json --fade 1", "--fade cannot be honoured here: JSON holds every step"),
    ("solve two-heads --format json --places 3", "--places cannot be honoured here: JSON holds 12 figures"),
    ("solve two-heads --output page.svg --exact", "--exact cannot be honoured here: page.svg is a picture"),
    ("solve two-heads --output page.png --blank", "--blank cannot be honoured here: page.png is a picture"),
    ("solve two-heads --exact --places 3", "--places cannot be honoured here: --exact rounds nothing"),
    ("solve two-heads --entry Q_1[1,1] --blank", "--blank cannot be honoured here: of one entry nothing is left"),
    ("solve two-heads --blank --fade 1", "three different pages; choose one"),
    ("mark two-heads ada.toml --format html --output ada.json", "ada.json is no name for html, which ends in .html"),
    ("new --output sheets --formula single_head --heads 3", "--heads cannot be honoured here: single_head has one"),
]


@pytest.mark.parametrize(("line", "message"), IGNORED, ids=[line for line, _ in IGNORED])
def test_an_option_that_cannot_be_honoured_is_refused(line: str, message: str, tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, line.replace("--output ", f"--output {tmp_path}/").split())
    assert isinstance(outcome.exception, headwork.HeadworkError), outcome.output
    assert message in str(outcome.exception).replace(f"{tmp_path}/", "")
    assert outcome.stdout == ""
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "line",
    [
        *("shapes --tokens 5", "draw --heads 7 --d-model 14", "count --convention flops --item-bytes 2"),
        *("prove --claim row --tokens 3", "moments --variance 0", "moments --seed 3", "solve two-heads --exact"),
        *("solve two-heads --entry Q_1[1,1] --answers-only", "solve two-heads --format json --part c"),
        *("solve two-heads --format json --output page.json", "solve two-heads --format text --output p.txt"),
    ],
)
def test_the_same_option_where_it_can_be_honoured(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = CliRunner().invoke(app, line.split())
    assert outcome.exit_code == 0, outcome.exception


def test_the_version_has_one_place() -> None:
    """pyproject.toml, by way of what was installed."""
    assert run("--version").stdout == f"headwork {headwork.__version__}\n"
    assert headwork.__version__ == version("headwork")


def test_the_module_is_the_command() -> None:
    said = subprocess.run([sys.executable, "-m", "headwork", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"headwork {headwork.__version__}\n"


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[" ".join(a) for a, _ in MISTAKES])
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], message: str) -> None:
    done = run(*arguments, code=2)
    assert message in done.stderr
    assert done.stderr.startswith("headwork: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_unequal_pair_ends_with_exit_code_1() -> None:
    assert "They differ" in run("prove", "--left", "dot_product", "--right", "scaled_dot_product", code=1).stdout


def test_no_line_about_a_command_is_cut_short() -> None:
    """In a terminal of 80 columns the list of commands, the first that a stranger sees, has whole sentences."""
    listed = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output.partition("Commands:\n")[2].splitlines()
    assert len(listed) == len(COMMANDS)
    assert not [line for line in listed if not line.endswith(".") or line.endswith("..")]


@pytest.mark.parametrize("command", [command.__name__ for command in COMMANDS])
def test_every_command_explains_itself(command: str) -> None:
    usage = run(command, "--help").stdout.splitlines()[0]
    assert usage.startswith(f"Usage: headwork {command}")
    assert "[[" not in usage
    assert "…" not in usage


@pytest.mark.parametrize(
    ("command", "sheet", "words"),
    [
        ("shapes", "two-heads", "M          = joined·W_O         2×2"),
        ("count", "two-heads", "Operations in all:"),
        ("prove", "query-key-value", "∎"),
        ("moments", "query-key-value", "the only s > 0 that makes this 1"),
    ],
)
def test_every_reading_takes_a_sheet(command: str, sheet: str, words: str) -> None:
    assert words in run(command, sheet).stdout


def test_a_reader_that_leaves_early_is_no_error() -> None:
    program = "import sys; sys.argv[0] = 'headwork'; from headwork.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "solve", "block-matrices"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("command", [command.__name__ for command in COMMANDS])
def test_a_command_made_ready_alone_is_the_same_as_among_all(command: str) -> None:
    alone = asked_for([command, "--help"])
    assert len(alone.registered_commands) == 1
    assert CliRunner().invoke(alone, [command, "--help"]).output == CliRunner().invoke(app, [command, "--help"]).output


@pytest.mark.parametrize("words", [[], ["--help"], ["--version"], ["no-such-command"], ["--part", "solve"]])
def test_whatever_is_no_command_sees_them_all(words: list[str]) -> None:
    assert asked_for(words) is app


def test_a_working_is_indexed_by_name() -> None:
    working = headwork.solve("two-heads")
    assert working["Q", 1] is not None
    assert working["Q_1"].value == working["Q", 1].value
    with pytest.raises(KeyError, match="'masked' is not worked out here; there is"):
        working["masked"]
    with pytest.raises(KeyError, match="there is"):
        working["Q", 7]
    with pytest.raises(KeyError, match="is not worked out here; did you mean 'head_output_1'"):
        working["head_ouput", 1]
    with pytest.raises(headwork.HeadworkError, match="unknown role 'dW_Q'; did you mean 'd_W_Q'"):
        working["dW_Q"]
    names: list[Any] = [str(step.name) for step in working.problems[1].parts[2].steps]
    assert names[-1] == "M"


def test_doctor_says_what_runs_and_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from headwork import extras
    from headwork.engine.backend import backend

    monkeypatch.setenv("HEADWORK_THREADS", "2")
    monkeypatch.setitem(extras.EXTRAS, "no-such-package", ("pages", "nothing"))
    page = CliRunner().invoke(app, ["doctor"]).output
    chosen = backend()
    assert (f"in the kernel for {chosen.cpu}" if chosen.native else f"in NumPy: {chosen.reason}") in page
    assert not chosen.native or "as HEADWORK_THREADS asks" in page
    assert re.search(rf"torch +{re.escape(version('torch'))} +torch +the same attention on tensors", page)
    assert re.search(r"no-such-package +missing +pages +nothing", page)
    told, _, ways = page.partition("Extras bring what is missing:\n")
    assert not chosen.native or max(map(len, told.splitlines())) <= 100  # a reason may be longer
    assert re.search(r"^in a checkout of headwork:\n\S.* install '\.\[([a-z]+,)*pages]'$", ways, re.M)
    assert re.search(r"^elsewhere:\n\S.* install .*\bno-such-package$", ways, re.M), "to be copied: one line"
