"""Question papers, faded papers and keys: what is left out is nowhere on the page."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from headwork import solve
from headwork.render.json import working_json
from headwork.render.papers import answers_only, blank, fade
from headwork.render.save import DATA, PAGES, rendered
from headwork.sheets.load import parse_sheet
from headwork.sheets.shelf import built_in
from headwork.working import Equation, Room, Unfilled, Working
from tests.render.conftest import require
from tests.test_cli import run

Matches = Callable[[str, str], None]
WRITTEN = (".txt", ".md", ".tex", ".typ", ".html")


@pytest.mark.parametrize("ending", WRITTEN)
def test_a_question_paper_holds_no_answer(ending: str, workings: dict[str, Working]) -> None:
    page = rendered(blank(workings["thinking-machine"]), ending)
    assert "Project the two words" in page
    assert "1.3" in page  # what is given stays
    for number in ("436.4", "1002.16", "155.96", "19.60", "10⁻⁶²"):
        assert number not in page
        assert number not in working_json(blank(workings["thinking-machine"]))


@pytest.mark.parametrize("name", built_in())
def test_every_part_gets_room(name: str, workings: dict[str, Working]) -> None:
    for problem in blank(workings[name]).problems:
        for part in problem.parts:
            line = part.lines[-1]  # after what is handed over
            assert isinstance(line, Room)
            assert line.lines >= 4
            assert (part.steps, part.answers, part.part.answer) == ((), (), "")


def test_fading_works_the_first_steps_and_empties_the_rest(workings: dict[str, Working]) -> None:
    whole = [line for part in workings["thinking-machine"].problems[0].parts for line in part.lines]
    for steps in range(len(whole) + 1):
        faded = [line for part in fade(workings["thinking-machine"], steps).problems[0].parts for line in part.lines]
        assert faded[:steps] == whole[:steps]
        assert all(isinstance(line, Unfilled) for line in faded[steps:])
        assert len(faded) == len(whole)


def test_a_faded_page_keeps_names_and_shapes(workings: dict[str, Working], matches: Matches) -> None:
    page = rendered(fade(workings["two-heads"], 3), ".txt")
    matches(page, "two-heads-faded.txt")
    assert "2.97" not in page


def test_what_is_handed_over_is_part_of_the_question(workings: dict[str, Working]) -> None:
    page = rendered(fade(workings["block-matrices"], 0), ".txt")
    assert "weights = ⎡1    0  ⎤   as given (2×2)" in page
    assert "0.5" in page


def test_the_key_holds_answers_and_no_steps(workings: dict[str, Working], matches: Matches) -> None:
    page = rendered(answers_only(workings["two-heads"]), ".txt")
    matches(page, "two-heads-key.txt")
    assert "scores_1" not in page.replace("weights_1·V_1", "")
    (key,) = [part.lines for part in answers_only(workings["two-heads"]).problems[1].parts if part.part.label == "c"]
    assert [line.role for line in key if isinstance(line, Equation)] == ["output"]


def test_the_key_of_single_entries_and_rows(workings: dict[str, Working]) -> None:
    page = rendered(answers_only(workings["query-key-value"]), ".txt")
    assert "z_3,3 = −20" in page
    assert "8·(−3)" not in page
    assert "−7.94066" in page
    assert "E[q·k] = D·μ²" in page
    assert "E[q_i·k_i]" not in page


@pytest.mark.parametrize("name", built_in())
@pytest.mark.parametrize(
    "change", [blank, answers_only, lambda working: fade(working, 2)], ids=["blank", "key", "fade"]
)
def test_every_sheet_in_every_form(
    name: str, change: Callable[[Working], Working], workings: dict[str, Working], tmp_path: Path
) -> None:
    require("typst", "nbformat")
    for ending in (*PAGES, *DATA):
        if ending not in (".svg", ".png"):  # a picture has no blanks
            change(workings[name]).save(tmp_path / f"page{ending}")
            assert (tmp_path / f"page{ending}").stat().st_size > 100


def test_options_of_the_command(tmp_path: Path) -> None:
    page = run("solve", "two-heads", "--blank").stdout
    assert "2.97" not in page
    assert re.search(r"\n{5}", page)
    assert "____" in run("solve", "two-heads", "--fade", "1").stdout
    assert "scaled" not in run("solve", "two-heads", "--answers-only").stdout
    refused = run("solve", "two-heads", "--blank", "--fade", "1", code=2)
    assert "choose one" in refused.stderr


@pytest.mark.parametrize("ending", [".md", ".tex", ".html"])
def test_the_command_saves_by_ending(ending: str, tmp_path: Path, workings: dict[str, Working]) -> None:
    run("solve", "two-heads", "--output", str(tmp_path / f"page{ending}"))
    (tmp_path / "same").mkdir()
    workings["two-heads"].save(tmp_path / "same" / f"page{ending}")
    assert (tmp_path / f"page{ending}").read_bytes() == (tmp_path / "same" / f"page{ending}").read_bytes()


def test_exact_pages(tmp_path: Path) -> None:
    """Roots as roots and fractions as fractions."""
    run("solve", "two-heads", "--exact", "--output", str(tmp_path / "page.tex"))
    page = (tmp_path / "page.tex").read_text("utf-8")
    assert r"2\sqrt{2}" in page
    assert r"\frac{1}{1 + e^{-3\sqrt{2}}}" in page


def test_draw(tmp_path: Path) -> None:
    run("draw", "--heads", "3", "--output", str(tmp_path / "block.svg"))
    run("draw", "block-matrices", "--output", str(tmp_path / "sheet.svg"))
    run("draw", "thinking-machine", "--output", str(tmp_path / "other.svg"))
    contents = {path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert len(contents) == 3
    assert all("<svg" in content for content in contents)


PAPER = """
title = "Two"
formula = "dot_product"
places = 3
notation = { scores = "M" }
given = { Q = [[1, 2]], K = [[3, 4], [0, 1]], V = [[1], [2]] }
marking = { points = { b = "3/2" } }
part = [{ label = "a", text = "Find M.", find = ["scores"] }, { label = "b", find = ["output"] }]
"""


def test_a_question_paper_has_room_for_a_name_and_says_points_and_places() -> None:
    paper = blank(solve(parse_sheet(PAPER, "two.toml")))
    text = rendered(paper, ".txt")
    assert re.search(r"Name _+  Date _+  Points _+ of 2\.5", text)
    assert "Round to 3 decimal places." in text
    assert "(a) Find M. (1 point)" in text
    assert "(b) Find head. (3/2 points)" in text
    assert "Find $M$." in rendered(paper, ".tex")  # a name, though nothing of it is worked out


def test_the_points_of_a_part_stand_on_its_question_paper_once() -> None:
    text = rendered(blank(solve("encoder-block")), ".txt")
    assert re.search(r"Points _+ of 6", text)
    assert text.count("(2 points)") == 3
    assert "1 point)" not in text


def test_room_to_write_goes_on_over_the_page(tmp_path: Path, workings: dict[str, Working]) -> None:
    """A question with a page of room stands where it comes, not on a page of its own."""
    require("typst", "pdftoppm")  # pdftotext comes with it
    (tmp_path / "paper.pdf").write_bytes(rendered(blank(workings["two-heads"]), ".pdf"))
    command = ["pdftotext", "-l", "1", "paper.pdf", "-"]
    first = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=60).stdout.decode()
    assert "Find the queries" in first


BACK = """
title = "Back"
formula = "single_head"
[given]
X = [[1, 0], [0, 1]]
W_Q = [[1, 0], [0, 1]]
W_K = [[1, 1], [0, 1]]
W_V = [[1], [2]]
[[part]]
label = "a"
given = { weights = [[1, 0], ["1/4", "3/4"]] }
find = ["head_output"]
[[part]]
label = "b"
kind = "gradient"
loss = "half-squares"
target = [[7], [8]]
rate = "0.1"
find = ["W_V", "X"]
[[part]]
label = "c"
kind = "shape"
"""


def test_a_question_paper_hands_over_what_a_part_gives_and_says_what_it_asks() -> None:
    """The target and the weights to go on from were left out, and a part without a text asked for nothing."""
    shown = str(rendered(blank(solve(parse_sheet(BACK, "back.toml"))), ".txt"))
    for line in (
        "(a) Find head. (1 point)",
        "weights = ⎡1     0   ⎤   as given (2×2)",
        "target = ⎡7⎤   as given (2×1)",
        "(c) Find the shapes. (1 point)",
    ):
        assert line in shown
    asked = "Find dW_V, dX and W_V,new, for L half the squared distance from the output to the target, with η = 1/10."
    assert asked in " ".join(shown.split())
    summed = BACK.replace('"half-squares"\ntarget = [[7], [8]]', '"sum"')
    paper = str(rendered(blank(solve(parse_sheet(summed, "back.toml"))), ".txt"))
    assert "for L the sum of all entries of the output" in paper
    assert not re.search("doutput|dhead", paper)
