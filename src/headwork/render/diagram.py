"""The picture of a graph, drawn and in words: boxes are operations, arrows are matrices with their shapes.

Everything is read off the `Diagram`: which steps there are, what each rests on and which head it belongs to. In the
wide form heads stand side by side; in the tall one under one another, the first step by step and the others, which
differ in nothing but their number, with their projections and one box for the rest.
What it takes to draw is loaded when something is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwork.graph import KeyBlock
from headwork.inline import inline
from headwork.readings.shapes import shape_text
from headwork.render.blocks import Heat, Picture
from headwork.render.formula import formula
from headwork.working import Diagram, Equation

if TYPE_CHECKING:
    from headwork.render.drawing import Drawing

MARGIN = 8.0
PAGE = 870.0  # what fits on a page from side to side
Section = tuple[str, list[Equation]]


def picture_of(block: Picture | Heat) -> Drawing:
    """The drawing that a page has for a diagram or a heat map."""
    if isinstance(block, Picture):
        return fitting(block.diagram)
    from headwork.render.heat import heat_map

    return heat_map(block.equation, block.first_index, block.tokens, block.keys)


def fitting(diagram: Diagram) -> Drawing:
    """The wide form where a page has room for it, else the tall one."""
    picture = draw(diagram, wide=True)
    return picture if picture.width <= PAGE else draw(diagram)


def draw(diagram: Diagram, *, wide: bool = False) -> Drawing:
    from headwork.render.arrangement import Arrangement
    from headwork.render.drawing import Drawing
    from headwork.render.stacking import stacked

    arrangement = Arrangement(diagram, wide=wide)
    picture = stacked(arrangement.blocks(), (), arrangement.wiring)
    shapes = [shape.moved(MARGIN, MARGIN) for shape in picture.shapes()]
    width, height = picture.width + 2 * MARGIN, picture.height + 2 * MARGIN
    return Drawing("Attention, step by step", picture_words(diagram), width, height, shapes)


# In words: step by step, head by head, for formats that do not draw and readers who do not see.


def picture_words(diagram: Diagram) -> str:
    """One paragraph, to be read aloud."""
    spoken = []
    for title, rows in sections(diagram):
        steps = "; ".join(f"{inline(formula(e))} gives {e.name}, {shape_text(e.shape)}" for e in rows)
        spoken.append(f"{title}: {steps}." if title else f"{steps}.")
    return " ".join(spoken)


def sections(diagram: Diagram) -> list[Section]:
    """What comes before the heads, every head, and what comes after them."""
    drawn = [e for e, sources in zip(diagram.rows, diagram.sources, strict=True) if _worked(e, sources)]
    heads = [head for head in dict.fromkeys(e.head for e in drawn) if head is not None]
    after = _after_heads(diagram)
    found: list[Section] = [("", [e for e in drawn if e.head is None and e not in after])]
    for head in heads:
        rows = [e for e in drawn if e.head == head]
        kind = "Block" if isinstance(head, KeyBlock) else "Head"
        found.append((f"{kind} {rows[0].name.subscripts[-1]}", rows))
    found.append(("", [e for e in drawn if e in after]))
    return [(title, rows) for title, rows in found if rows]


def _worked(equation: Equation, sources: tuple[int, ...]) -> bool:
    return not equation.given and len(sources) == len(equation.operands) and not equation.name.transposed


def _after_heads(diagram: Diagram) -> list[Equation]:
    """What belongs to no head and rests on one."""
    rests: list[bool] = []
    for equation, sources in zip(diagram.rows, diagram.sources, strict=True):
        worked = not equation.given
        rests.append(worked and (equation.head is not None or any(rests[source] for source in sources)))
    return [e for e, resting in zip(diagram.rows, rests, strict=True) if resting and e.head is None]
