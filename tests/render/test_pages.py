"""Whole pages: every built-in sheet in every form, and text that tries to be something else."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import unicodedata
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import pytest

from headwork import HeadworkError, solve
from headwork.maths import Letter, Row, Sign
from headwork.render.blocks import Block, Picture, Table
from headwork.render.diagram import picture_of
from headwork.render.html import BLOCKS as HTML
from headwork.render.latex import BLOCKS as LATEX
from headwork.render.markdown import BLOCKS as MARKDOWN
from headwork.render.page import page
from headwork.render.save import DATA, PAGES, rendered
from headwork.render.typst import BLOCKS as TYPST
from headwork.render.typst import LAYOUT, NODES, PIXEL, compiled
from headwork.sheets.load import parse_sheet
from headwork.sheets.shelf import built_in
from headwork.working import Working
from tests.render.conftest import require

Matches = Callable[[str, str], None]
SHEETS = built_in()
HEIGHT, WIDTH = 760, 482  # points of A4 within the margins
NASTY = r"""50% of $x & y_z # {a} ~ ^b \end{document} </script><b>"q"</b> `*_[l](u)_*` | #panic() é ł 中 √2 −1"""


@pytest.mark.parametrize("table", [HTML, LATEX, MARKDOWN, TYPST], ids=["html", "latex", "markdown", "typst"])
def test_every_format_has_every_block(table: dict[type, object]) -> None:
    assert set(table) == set(get_args(Block))


@pytest.mark.parametrize("name", SHEETS)
def test_whole_pages(name: str, workings: dict[str, Working], matches: Matches) -> None:
    working = workings[name]
    matches(rendered(working, ".md"), f"{name}.md")
    matches(rendered(working, ".tex"), f"{name}.tex")
    matches(rendered(working, ".typ"), f"{name}.typ")


@pytest.mark.parametrize("name", SHEETS)
def test_exact_text(name: str, workings: dict[str, Working]) -> None:
    """No −0.00, no 1.0 for 1, no hyphen for a minus sign, no bare underscore where a subscript belongs."""
    page = rendered(workings[name], ".html")
    shown = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)
    numbers = re.findall(r"<mo[^>]*>−</mo><mn>([^<]*)</mn>", shown)
    assert not [n for n in numbers if re.fullmatch(r"0(\.0+)?", n)]
    assert not re.search(r"<mn>-|<mn>[^<]*_|<mi>[^<]*_|<mi>-", shown)
    assert "<mn>1.0</mn>" not in shown
    assert "nan" not in re.findall(r"\w+", shown.lower())


@pytest.mark.parametrize("name", SHEETS)
def test_latex_compiles(name: str, workings: dict[str, Working], tmp_path: Path) -> None:
    """With a real engine, nothing but amsmath and what comes with LaTeX, and no line that runs over the margin."""
    workings[name].save(tmp_path / "page.tex")
    used = re.findall(r"\\usepackage\{(.*?)\}", (tmp_path / "page.tex").read_text("utf-8"))
    assert {*",".join(used).split(",")} <= {"amsmath", "color", "graphicx"}
    log = compiled_latex(tmp_path)
    assert "Overfull" not in log


def compiled_latex(folder: Path) -> str:
    require("pdflatex")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"],
        cwd=folder,
        capture_output=True,
        timeout=120,
        check=False,
    )
    log = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, log[-2000:]
    return log


@pytest.mark.parametrize("name", SHEETS)
def test_pdf_pages_have_ink_inside_their_margins(name: str, workings: dict[str, Working], tmp_path: Path) -> None:
    """Every page is turned into a picture: something stands on it, and nothing in the outermost centimetre."""
    require("typst", "pdftoppm")
    workings[name].save(tmp_path / "page.pdf")
    subprocess.run(["pdftoppm", "-r", "40", "-gray", "page.pdf", "page"], cwd=tmp_path, check=True, timeout=60)
    pages = sorted(tmp_path.glob("page-*.pgm"))
    assert pages
    for picture in pages:
        width, rows = grey(picture.read_bytes())
        margin = 15
        assert any(pixel < 128 for row in rows for pixel in row)
        sides = [pixel for row in rows for pixel in (*row[:margin], *row[width - margin :])]
        edges = [pixel for row in (*rows[:margin], *rows[-margin:]) for pixel in row]
        assert min(sides) > 200
        assert min(edges) > 200


def test_rows_that_stand_as_columns_are_told_as_columns() -> None:
    sheet = """
    formula = "multi_head_blocks"
    vectors = "columns"
    heads = 2
    softmax = "safe-steps"
    around = "post-norm"
    eps = 1
    [given]
    X = [[1, 2], [0, 1]]
    W_Q = [[1, 0], [0, 1]]
    W_K = [[1, 1], [0, 1]]
    W_V = [[1, 0], [2, 1]]
    W_O = [[1, 0], [0, 1]]
    [[part]]
    find = ["normed_1[2]"]
    """
    text = rendered(solve(parse_sheet(sheet, "columns")), ".txt")
    assert isinstance(text, str)
    for told in (
        "Q_1[2] = row 1 of Q[2]   (1×1)",
        "maxima_1[2] = column maxima of scaled_1[2]",
        "sums_1[2] = column sums of exponentials_1[2]",
        "joined[2] = [head_1[2];head_2[2]]   (2×1)",
        "μ_1[2] = column means of R_1[2]",
        "V_1 = column 1 of V   (2×1)",
    ):
        assert told in text
    assert "row sums" not in text


def test_a_prime_of_a_printed_page_belongs_to_its_letter() -> None:
    """As a sign of its own it stood apart, with the number of the head below it."""
    assert [NODES[Letter](Letter(name)) for name in ("Q′", "head′")] == ["italic(Q)'", 'upright("head")\'']


def test_printed_signs_have_the_room_that_they_need() -> None:
    """As strings V ran into the sign after it, and ∘ into the matrices on both sides."""
    printed = [NODES[type(maths)](maths) for maths in (Letter("V"), Sign("∘"), Sign(";"))]
    assert printed == ["italic(V)", "compose", "\\;"]


def test_a_picture_larger_than_a_page_is_made_smaller() -> None:
    """Of two heads the way back is: on A4 what stood above and below was cut off."""
    text = """
formula = "multi_head"
heads = 2
[given]
X = [[1], [0]]
W_Q = [[[1]], [[2]]]
W_K = [[[1]], [[0]]]
W_V = [[[1]], [[1]]]
W_O = [[1], [1]]
[[part]]
label = "a"
kind = "gradient"
loss = "sum"
[[part]]
label = "b"
kind = "diagram"
"""
    shown = page(solve(parse_sheet(text, "back.toml")))
    pictures = [block for block in shown if isinstance(block, Picture) and block.asked]
    heights = [drawing.height * PIXEL for drawing in map(picture_of, pictures)]
    assert min(heights) < HEIGHT < max(heights)
    for picture in pictures:
        found = re.search(r"width: ([\d.]+)pt", TYPST[Picture](picture))
        assert found
        drawing, width = picture_of(picture), float(found[1])
        assert width <= WIDTH
        assert width * drawing.height / drawing.width < HEIGHT


BLOCKS_OF_KEYS = """
formula = "blockwise"
blocks = 3
mask = "causal"
[given]
Q = [[1], [0], [1], [2], [0]]
K = [[1], [0], [1], [2], [0]]
V = [[1], [2], [3], [4], [5]]
[[part]]
label = "a"
find = ["output"]
[[part]]
label = "b"
kind = "count"
[[part]]
label = "c"
kind = "gradient"
loss = "sum"
"""


def test_a_picture_that_nobody_asked_for_fits_on_its_page_too() -> None:
    """Of three blocks of keys it was cut off above and below, and steps were set over it."""
    working = solve(parse_sheet(BLOCKS_OF_KEYS, "blocks.toml"))
    (picture,) = [block for block in page(working) if isinstance(block, Picture)]
    drawing = picture_of(picture)
    source = rendered(working, ".typ")
    shown = re.search(r"#spare\[#filling\[#image.*?width: ([\d.]+)pt", source, re.DOTALL)
    assert shown is not None
    assert drawing.height * float(shown[1]) / drawing.width < HEIGHT < drawing.height * PIXEL


def test_a_printed_table_of_counts_is_not_cut_for_long_names() -> None:
    """Scripts are small in print, and a wide cell is broken into lines: there was a page for each column of numbers."""
    working = solve(parse_sheet(BLOCKS_OF_KEYS, "blocks.toml"))
    printed = [block for block in page(working, **LAYOUT) if isinstance(block, Table)]
    assert [len(table.header) for table in printed] == [7, 7, 7]


def test_in_latex_the_letters_of_a_picture_shrink_with_its_boxes() -> None:
    """They had one size, and in a tall picture lay over one another."""
    source = rendered(solve(parse_sheet(BLOCKS_OF_KEYS, "blocks.toml")), ".tex")
    assert r"\usepackage{color,graphicx}" in source
    assert re.search(r"\\setlength\{\\unitlength\}\{0\.620pt\}\\scalebox\{0\.\d+\}\{", source)


def grey(picture: bytes) -> tuple[int, list[bytes]]:
    """A PGM picture as rows of bytes."""
    header = re.match(rb"P5\s+(\d+)\s+(\d+)\s+255\s", picture)
    assert header
    width, height = int(header[1]), int(header[2])
    pixels = picture[header.end() :]
    return width, [pixels[i * width : (i + 1) * width] for i in range(height)]


@pytest.mark.parametrize("ending", [e for e in (*PAGES, *DATA) if e not in (".png", ".pdf", ".ipynb")])
def test_saving_twice_gives_the_same_file(ending: str, workings: dict[str, Working], tmp_path: Path) -> None:
    one, other = tmp_path / "one" / f"page{ending}", tmp_path / "other" / f"page{ending}"
    one.parent.mkdir()
    other.parent.mkdir()
    workings["thinking-machine"].save(one)
    solve("thinking-machine").save(other)
    assert one.read_bytes() == other.read_bytes()


def test_an_unknown_ending_lists_the_known_ones(workings: dict[str, Working], tmp_path: Path) -> None:
    with pytest.raises(HeadworkError, match=r"nothing is written as '\.docx'; choose from \.md \.tex"):
        workings["two-heads"].save(tmp_path / "page.docx")
    with pytest.raises(HeadworkError, match="a name without an ending"):
        workings["two-heads"].save(tmp_path / "page")


def nasty() -> Working:
    """A sheet whose every text tries to be a command."""
    sheet = parse_sheet(
        'formula = "dot_product"\n[given]\nQ = [[1]]\nK = [[1]]\nV = [[1]]\n[[part]]\nfind = ["output"]', "x"
    )
    (problem,) = sheet.problems
    part = dataclasses.replace(problem.parts[0], label='"<&', text=NASTY, answer=NASTY)
    problem = dataclasses.replace(problem, title=NASTY, text=NASTY, parts=(part,))
    return solve(dataclasses.replace(sheet, title=NASTY, problems=(problem, problem)))


def test_text_stays_text_in_html() -> None:
    page = rendered(nasty(), ".html")
    assert "<b>&quot;q" not in page
    assert "</script><b>" not in page
    seen = Text()
    seen.feed(page)
    assert (
        seen.text.count('</script><b>"q"</b>') == 9
    )  # the title, and twice a heading, a text, a question and an answer


class Text(HTMLParser):
    """What a reader of the page sees, outside of style and script."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.inside = "", ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        self.text += data if self.inside not in ("style", "script", "title") else ""


def test_text_stays_text_in_latex(tmp_path: Path) -> None:
    (tmp_path / "page.tex").write_text(rendered(nasty(), ".tex"), "utf-8")
    compiled_latex(tmp_path)


def test_text_stays_text_in_pdf(tmp_path: Path) -> None:
    require("typst", "pdftoppm")
    nasty().save(tmp_path / "page.pdf")
    shown = subprocess.run(["pdftotext", "page.pdf", "-"], cwd=tmp_path, capture_output=True, check=True, timeout=60)
    assert "#panic()" in shown.stdout.decode()


def test_text_stays_text_in_markdown() -> None:
    page = rendered(nasty(), ".md")
    assert "<b>" not in page.replace(r"\<b\>", "")
    assert r"\[l\](u)" in page


def test_text_stays_text_in_notebooks(tmp_path: Path) -> None:
    """It is in the cells that are read, as text, and in none that runs."""
    require("nbformat")
    nasty().save(tmp_path / "page.ipynb")
    cells = json.loads((tmp_path / "page.ipynb").read_text("utf-8"))["cells"]
    read, run = (["".join(c["source"]) for c in cells if c["cell_type"] == kind] for kind in ("markdown", "code"))
    assert sum("panic" in source for source in read) == 7  # the title, and twice a heading, the texts, an answer
    assert not any("<b>" in source.replace(r"\<b\>", "") for source in read)
    assert run
    assert not any("panic" in source for source in run)


def test_json_and_text_are_forms_too(workings: dict[str, Working], tmp_path: Path) -> None:
    workings["two-heads"].save(tmp_path / "page.json")
    assert json.loads((tmp_path / "page.json").read_text("utf-8"))["title"] == "Two heads"
    workings["two-heads"].save(tmp_path / "page.txt")
    golden = Path(__file__).parent.parent / "golden" / "two-heads.txt"
    assert (tmp_path / "page.txt").read_text("utf-8") == golden.read_text("utf-8")


def test_a_sum_of_one_term_is_written_once() -> None:
    """With a residual's gradient alone in it the term is the value already."""
    shown = str(solve(Path(__file__).parent.parent / "attacks" / "sum-of-one-term" / "sheet.toml"))
    assert "≈ ⎡ 4.09  6.33⎤\n" in shown
    assert "6.33⎤ ≈" not in shown


def test_every_mathematical_sign_can_be_printed() -> None:
    """Typst takes some for commands: a root, or ℘ for part of a name."""
    require("typst")
    signs = [chr(code) for code in range(0x80, 0x1F000) if unicodedata.category(chr(code)) == "Sm"]
    formulas = [Row((Sign(sign), Letter("x"), Sign(sign))) for sign in signs]
    assert compiled("\n".join(f"${NODES[Row](formula)}$" for formula in formulas), "pdf")
