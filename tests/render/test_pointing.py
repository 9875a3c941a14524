"""The HTML page in a real browser: pointed at by mouse and keyboard, offline, without JavaScript, on a phone."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headwork import solve
from headwork.graph import Step
from headwork.inline import inline
from headwork.numbers.digits import to_float
from headwork.ops import Divide, Join, MatMul, Softmax
from headwork.readings.entries import Origin, origin
from headwork.readings.exact import Entry, Hidden, Matrix, exact
from headwork.render.arithmetic import arithmetic_display
from headwork.render.cells import Style, cell
from headwork.render.save import rendered
from headwork.sheets.load import load, parse_sheet
from headwork.sheets.ready import Ready
from headwork.sheets.shelf import built_in
from headwork.working import Equation, Working, arithmetic
from tests.render.conftest import require

STYLE = Style(2)
MASKED = """
formula = "scaled_dot_product"
mask = "causal"
[given]
Q = [[1, 2], [3, 4], [0, 1]]
K = [[1, 0], [0, 1], [1, 1]]
V = [[1], [2], [3]]
[[part]]
find = ["output"]
"""


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The thinking machine, open in a window of a laptop's size."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    solve("thinking-machine").save(path)
    context = browser.new_context(viewport={"width": 1000, "height": 900}, offline=True)
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.goto(path.as_uri())
    yield opened
    assert problems == []
    context.close()


def worked_entries(name: str) -> Iterator[tuple[str, str, Step, Origin]]:
    """Every entry that the page shows worked out: its place, its name, its step, and how the graph says it came."""
    (problem,) = load(name).problems
    ready = Ready(problem)
    meaning: dict[Step, Matrix] = exact(ready.last, ready.handed)
    lines = [line for part in solve(name).problems[0].parts for line in part.lines if isinstance(line, Equation)]
    for number, line in enumerate(lines, 1):
        step = next(s for s in meaning if (s.role, s.head) == (line.role, line.head))
        for i, row in enumerate(meaning[step]):
            for j in range(len(row)):
                shown = str(problem.notation.entry(step, i, j))
                yield f"e{number}-{i}-{j}", shown, step, origin(step, i, j, meaning)


def flat(node: ElementTree.Element) -> str:
    """MathML as one line of text."""
    inside = [flat(child) for child in node]
    if node.tag == "mfrac":
        return f"({inside[0]})/({inside[1]})"
    if node.tag == "msup":
        return f"{inside[0]}^({inside[1]})"
    if node.tag == "msub":
        return f"{inside[0]}_{inside[1]}"
    if node.tag == "msqrt":
        return f"√{''.join(inside)}"
    return (node.text or "") + "".join(inside)


def shown_lines(page: Any) -> list[str]:
    """What the panel says, line by line, spaces aside."""
    lines = page.locator("#panel .line").evaluate_all("all => all.map(div => div.innerHTML)")
    found = []
    for line in lines:
        maths = re.findall(r"<math.*?</math>", line)
        found.append("".join(flat(ElementTree.fromstring(m.replace("&nbsp;", " "))) for m in maths).replace(" ", ""))
    return found


def lit(page: Any) -> set[str]:
    return set(page.locator("mtd.lit").evaluate_all("all => all.map(entry => entry.id)"))


def printed(entry: Entry) -> str:
    return inline(cell(entry, STYLE)[0])


def check(place: str, name: str, step: Step, came: Origin, lines: list[str], lights: set[str]) -> None:
    """The panel against the exact reading."""
    key = place.partition("-")[0]
    assert lights == {f"{key}o{number}-{i}-{j}" for number, i, j in came.places}
    assert lines[0].startswith(name.replace(" ", ""))
    assert not isinstance(came.result, Hidden)
    _, is_exact = cell(came.result, STYLE)
    assert lines[-1].endswith(("=" if is_exact else "≈") + printed(came.result))
    CHECKS[type(step.op)](step, came, [line.removeprefix(name) for line in lines])


def check_product(step: Step, came: Origin, lines: list[str]) -> None:
    """Every factor as printed elsewhere on the page; where all are exact, the printed terms add up exactly."""
    factors = [[printed(x) for x in pair] for pair in came.terms]
    assert lines[0][1:] == "+".join("·".join(f"({t})" if t.startswith("−") else t for t in pair) for pair in factors)
    if all(cell(x, STYLE)[1] for pair in came.terms for x in pair):
        terms = re.findall(r"[+−]?[\d.]+", lines[1].removeprefix("="))
        assert sum(Fraction(t.replace("−", "-")) for t in terms) == came.result


def check_softmax(step: Step, came: Origin, lines: list[str]) -> None:
    """The row's exponents as printed, its exponentials to four figures, and their sum."""
    (own,), summed = came.terms
    assert not isinstance(own, Hidden)
    powers = "+".join(f"e^({printed(s)})" for s in summed)
    assert lines[0] == f"≈(e^({printed(own)}))/({powers})"
    exponents = [to_float(s) for s in (own, *summed) if not isinstance(s, Hidden)]
    above, below = fraction(lines[1])
    for number, exponent in zip([above, *below.split("+")], exponents, strict=True):
        assert math.isclose(logarithm(number), exponent, abs_tol=6e-4)
    _, total = fraction(lines[2])
    assert math.isclose(logarithm(total), max(exponents), abs_tol=0.7)


def fraction(line: str) -> tuple[str, str]:
    """What stands above and below the bar."""
    found = re.fullmatch(r"≈\((.*)\)/\((.*)\)", line)
    assert found is not None, line
    return found[1], found[2]


def logarithm(number: str) -> float:
    """Of 4.371·10^(47), without leaving the range of floats."""
    mantissa, _, power = number.rstrip(")").partition("·10^(")
    return math.log(float(mantissa)) + (int(power.replace("−", "-")) * math.log(10) if power else 0)


def check_division(step: Step, came: Origin, lines: list[str]) -> None:
    ((number, _),) = came.terms
    assert lines[0] == f"=({printed(number)})/(√3)"


def check_join(step: Step, came: Origin, lines: list[str]) -> None:
    assert lines[0].startswith("=an")


CHECKS = {MatMul: check_product, Softmax: check_softmax, Divide: check_division, Join: check_join}


def test_every_entry_by_mouse(page: Any) -> None:
    """Pointing at an entry shows its arithmetic, as the exact reading has it, and lights up where it came from."""
    seen = 0
    for place, name, step, came in worked_entries("thinking-machine"):
        page.locator(f"#{place}").scroll_into_view_if_needed()
        page.hover(f"#{place}", force=True)
        check(place, name, step, came, shown_lines(page), lit(page))
        seen += 1
    assert seen == page.locator("mtd.pointable").count() == 92
    page.mouse.move(2, 2)
    assert page.locator("#panel").is_hidden()
    assert lit(page) == set()


def test_every_entry_by_keyboard(page: Any) -> None:
    """Tab stops once at every matrix; the arrow keys go to each of its entries, and say the same as the mouse."""
    page.mouse.move(2, 2)
    page.evaluate("document.activeElement.blur()")
    entries = {place: (name, step, came) for place, name, step, came in worked_entries("thinking-machine")}
    visited = set()
    page.locator("#e1-0-0").focus()
    while True:
        at = page.evaluate("document.activeElement.id")
        if at not in entries:
            break
        for place in walk(page, entries):
            name, step, came = entries[place]
            check(place, name, step, came, shown_lines(page), lit(page))
            visited.add(place)
        page.keyboard.press("Tab")
    assert visited == set(entries)


def walk(page: Any, entries: dict[str, Any]) -> Iterator[str]:
    """Through a matrix as one reads: right along each row, back, and down."""
    start = page.evaluate("document.activeElement.id")
    key = start.partition("-")[0]
    rows = max(int(p.split("-")[1]) for p in entries if p.startswith(f"{key}-")) + 1
    columns = max(int(p.split("-")[2]) for p in entries if p.startswith(f"{key}-")) + 1
    for i in range(rows):
        for j in range(columns):
            place = page.evaluate("document.activeElement.id")
            assert place == f"{key}-{i}-{j}"
            yield place
            if j + 1 < columns:
                page.keyboard.press("ArrowRight")
        for _ in range(columns - 1):
            page.keyboard.press("ArrowLeft")
        if i + 1 < rows:
            page.keyboard.press("ArrowDown")


def test_a_click_pins_and_escape_lets_go(page: Any) -> None:
    page.click("#e1-0-0")
    pinned = shown_lines(page)
    page.hover("#e1-1-2", force=True)
    assert shown_lines(page) == pinned
    assert "Pinned" in page.locator("#panel").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#panel").is_hidden()
    page.hover("#e1-1-1", force=True)
    assert shown_lines(page) != pinned


def test_a_masked_entry_says_why(browser: Any, tmp_path: Path) -> None:
    context = browser.new_context(offline=True)
    opened = context.new_page()
    solve(parse_sheet(MASKED, "masked")).save(tmp_path / "page.html")
    opened.goto((tmp_path / "page.html").as_uri())
    reason = "Hidden: the mask keeps token 1 from reading key 2, which comes later."
    for place in ("#e3-0-1", "#e4-0-1"):  # the masked scores, and the weights
        opened.hover(place, force=True)
        assert reason in opened.locator("#panel").inner_text()
    opened.hover("#e4-1-1", force=True)
    assert "Hidden" not in opened.locator("#panel").inner_text()
    context.close()


@pytest.mark.parametrize("name", built_in())
def test_the_page_asks_for_nothing(name: str, browser: Any, workings: dict[str, Working], tmp_path: Path) -> None:
    """One request: the file itself. And on a phone nothing is wider than the screen."""
    workings[name].save(tmp_path / "page.html")
    context = browser.new_context(viewport={"width": 390, "height": 844})
    opened = context.new_page()
    requests: list[str] = []
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto((tmp_path / "page.html").as_uri())
    opened.wait_for_load_state("networkidle")
    assert [url for url in requests if not url.startswith("data:")] == [(tmp_path / "page.html").as_uri()]
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


@pytest.mark.parametrize("name", built_in())
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    name: str, scheme: str, browser: Any, workings: dict[str, Working], tmp_path: Path
) -> None:
    require("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    workings[name].save(tmp_path / "page.html")
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    opened = context.new_page()
    opened.goto((tmp_path / "page.html").as_uri())
    if opened.locator("mtd.pointable").count():
        opened.locator("mtd.pointable").first.focus()
    found = Axe().run(opened).response["violations"]
    assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []
    context.close()


def test_without_javascript_everything_stands_there(browser: Any, tmp_path: Path) -> None:
    """Titles, questions, formulas and numbers; only the pointing is missing."""
    working = solve("two-heads")
    working.save(tmp_path / "page.html")
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto((tmp_path / "page.html").as_uri())
    assert opened.locator("h1").inner_text() == "Two heads"
    assert opened.locator(".question").count() == 4
    assert opened.locator("mtable").count() > 30
    assert opened.locator("mtable").first.bounding_box()["height"] > 20
    assert opened.locator("#panel").count() == 0
    context.close()


def test_matrices_have_brackets_on_both_sides(page: Any) -> None:
    """They are drawn by the style sheet, so look at the pixels: ink at the left and right edge, none missing."""
    box = page.evaluate(
        "(() => { const s = getComputedStyle(document.querySelector('mtable.grid'));"
        " return [s.borderLeftWidth, s.borderRightWidth, s.backgroundImage]; })()"
    )
    assert float(box[0].removesuffix("px")) >= 1
    assert float(box[1].removesuffix("px")) >= 1
    assert box[2].count("linear-gradient") == 4


def test_size() -> None:
    assert len(rendered(solve("thinking-machine"), ".html").encode()) < 400_000


def test_a_large_sheet_stays_a_page() -> None:
    """Too large to be followed by hand, it is shown without the pointing; a smaller one beside it keeps it."""
    wide = [[1] * 40 for _ in range(40)]
    sheet = f'formula = "dot_product"\n[given]\nQ = {wide}\nK = {wide}\nV = {wide}\n[[part]]\nfind = ["scores"]'
    page = rendered(solve(parse_sheet(sheet, "wide")), ".html")
    assert len(page.encode()) < 1_000_000
    assert 'id="how"' not in page


def test_fractions_in_the_panel_do_not_overlap(page: Any) -> None:
    """Line under line: each starts where the one above has ended."""
    weights = page.locator('.grid[data-role="weights"] mtd.pointable').first
    weights.click()
    boxes = page.locator("#panel .right math").evaluate_all(
        "all => all.map(formula => formula.getBoundingClientRect()).map(box => [box.top, box.bottom])"
    )
    page.keyboard.press("Escape")
    assert len(boxes) == 4
    assert all(above[1] <= below[0] for above, below in pairwise(boxes))


def test_the_page_says_that_entries_can_be_pointed_at(page: Any) -> None:
    assert "Point at a number" in page.locator(".hint").inner_text()


def test_what_is_cut_off_has_a_shadow_at_its_edge(browser: Any, tmp_path: Path) -> None:
    """A table of counts on a phone: seen to go on, light and dark, and scrolled to its end no more."""
    solve("dot-product").save(tmp_path / "page.html")
    for theme in ("light", "dark"):
        context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme=theme)
        opened = context.new_page()
        opened.goto((tmp_path / "page.html").as_uri())
        tables = opened.locator(".scroll:has(table)").all()
        (wide, *_) = [table for table in tables if table.evaluate("box => box.scrollWidth > box.clientWidth")]
        shadowed = wide.screenshot()
        wide.evaluate("box => { box.style.background = 'none' }")
        assert wide.screenshot() != shadowed
        context.close()


@pytest.mark.parametrize("name", ["sum-of-one-term", "one-step-of-learning", "growing-cache"])
def test_no_line_of_arithmetic_stands_there_twice(name: str) -> None:
    """A sum of one term names where its number stands, and does not write it twice."""
    attack = Path(__file__).parent.parent / "attacks" / name / "sheet.toml"
    for problem in solve(load(str(attack) if attack.exists() else name)).problems:
        style = Style(problem.problem.places)
        equations = [
            line for part in problem.parts for line in part.lines if isinstance(line, Equation) and line.worked
        ]
        for equation in equations:
            assert equation.value is not None
            for i, row in enumerate(equation.value):
                for j in range(len(row)):
                    shown = arithmetic_display(arithmetic(equation.origin(i, j), problem.notation), style)
                    lines = ["".join(map(inline, line.pieces)) for line in shown.lines]
                    assert len(set(lines)) == len(lines), (equation.role, lines)
