"""What if: a mistake of the catalogue planted in the sheet, right and mistaken side by side."""

from collections.abc import Iterator
from html import escape
from math import inf, isnan
from typing import Any

from headwork.errors import HeadworkError
from headwork.graph import Step
from headwork.maths import Holds, Row, Sign
from headwork.mistakes.catalogue import CATALOGUE
from headwork.mistakes.operations import EXACT
from headwork.mistakes.predict import Variant
from headwork.mistakes.rewriting import Mistake
from headwork.readings.exact import Matrix
from headwork.readings.floats import Floats, to_floats
from headwork.render.cells import Style, grid
from headwork.render.html import mathml
from headwork.sheets.ready import Ready
from headwork.web.page import Page

ALIKE = 1e-9  # two numbers this near are the same


def mistakes(page: Page, number: int) -> list[dict[str, Any]]:
    """The mistakes that a problem gives occasion for, each with the ways of making it."""
    ends, sizes = page.ready[number].ends, page.ready[number].sizes
    if not all(isinstance(size, int) for size in (sizes.tokens, sizes.keys, sizes.heads, sizes.d_k, sizes.d_v)):
        return []  # there are no numbers that could come out differently
    found = []
    for tag, mistake in CATALOGUE.items():
        ways = len(mistake.made_in(ends))
        if ways:
            found.append({"tag": tag, "advice": mistake.advice, "ways": _ways(mistake, ways, page.ready[number])})
    return found


def _ways(mistake: Mistake, number: int, ready: Ready) -> list[str]:
    if not mistake.per_head:
        return ["everywhere"] if number == 1 else [f"in the {_ordinal(i)} way" for i in range(1, number + 1)]
    first = ready.problem.notation.first_index
    return ["everywhere", *(f"in head {i + first} alone" for i in range(number - 1))]


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")


def what_if(page: Page, number: int, tag: str, way: int) -> str:
    """Every step from the first that comes out differently: as it should be, and as the mistake makes it."""
    if tag not in CATALOGUE:
        raise HeadworkError(f"there is no mistake '{tag[:40]}'; choose one of the list")
    ready = page.ready[number]
    graphs = CATALOGUE[tag].made_in(ready.ends)
    if not 0 <= way < len(graphs):
        raise HeadworkError(f"{tag} cannot be made here in that way; choose another")
    handed = dict(ready.handed)
    for part in ready.problem.parts:
        handed = {**ready.handed_in(part), **handed}
    said = f'<p class="advice"><b>{escape(tag)}</b>: {escape(CATALOGUE[tag].advice)}</p>'
    right, mistaken = Variant(ready.ends, EXACT), Variant(graphs[way], EXACT, ready.ends)
    there = right.everything(handed)
    try:
        here = mistaken.everything(handed)
    except HeadworkError as error:
        return f"{said}<p>With these numbers nobody gets through with it: {escape(str(error))}. Change some.</p>"
    pairs = [(s, there[s], here.get(m) if (m := mistaken.here(s)) else None) for s in ready.computed() if s in there]
    parted = [(step, good, bad) for step, good, bad in pairs if bad is not None and _apart(good, bad)]
    if not parted:
        return f"{said}<p>With these numbers it makes no difference. Change some, and look again.</p>"
    style = page.style(number)
    return said + "".join(_told(parted, ready)) + "".join(_sides(parted, ready, style))


def _told(parted: list[tuple[Step, Matrix, Matrix]], ready: Ready) -> Iterator[str]:
    notation = ready.problem.notation
    first, (last, good, bad) = parted[0][0], parted[-1]
    yield f"<p>They part first in {mathml(notation.of(first).maths)}. "
    far, name = _apart(good, bad), mathml(notation.of(last).maths)
    shapes = [f"{len(matrix)}×{len(matrix[0])}" for matrix in (bad, good)]
    if shapes[0] != shapes[1]:
        after = "" if last is ready.last else ", and what comes after it no longer fits together"
        yield f"In the end {name} is <b>{shapes[0]}</b> where it should be {shapes[1]}{after}.</p>"
    elif far == inf:
        yield f"In the end {name} has numbers where others are hidden.</p>"
    else:
        yield f"In the end they are up to <b>{far:.4g}</b> apart, in {name}.</p>"


def _sides(parted: list[tuple[Step, Matrix, Matrix]], ready: Ready, style: Style) -> Iterator[str]:
    yield '<div class="sides"><p class="side-title">right</p><p class="side-title">mistaken</p>'
    for step, good, bad in parted:
        name = ready.problem.notation.of(step).maths
        for matrix, other, side in ((good, bad, "right"), (bad, good, "mistaken")):
            shown, exact = grid(matrix, style, holds=Holds(step.role, step.head))
            html = mathml(Row((name, Sign("=" if exact else "≈"), shown)), display=True)
            yield f'<div class="side {side} scroll">{_marked(html, _differing(matrix, other))}</div>'
    yield "</div>"


def _marked(html: str, differing: list[bool]) -> str:
    """The entries that differ, marked: they stand in reading order."""
    first, *cells = html.split("<mtd")
    marked = (f'<mtd class="differs"{c}' if d else f"<mtd{c}" for c, d in zip(cells, differing, strict=True))
    return first + "".join(marked)


def _differing(matrix: Matrix, other: Matrix) -> list[bool]:
    alike = (len(matrix), len(matrix[0])) == (len(other), len(other[0]))
    here, there = to_floats(matrix), to_floats(other)
    places = [(i, j) for i, row in enumerate(here) for j in range(len(row))]
    return [not alike or _distance(here[i][j], there[i][j]) > ALIKE for i, j in places]


def _apart(good: Matrix, bad: Matrix) -> float:
    """The largest distance of two entries; 0 where there is none, infinite where they cannot be compared."""
    if (len(good), len(good[0])) != (len(bad), len(bad[0])):
        return inf
    one: Floats = to_floats(good)
    other: Floats = to_floats(bad)
    far = max(_distance(a, b) for rows in zip(one, other, strict=True) for a, b in zip(*rows, strict=True))
    return far if far > ALIKE else 0.0


def _distance(a: float, b: float) -> float:
    far = 0.0 if a == b else abs(a - b)
    return inf if isnan(far) else far
