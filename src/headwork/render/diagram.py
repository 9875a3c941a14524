"""The picture of a graph: boxes are operations, arrows are matrices with their shapes.

Everything is read off the `Diagram`: which steps there are, what each rests on and which head it belongs to. In the
wide form heads stand side by side; in the tall one under one another, the first step by step and the others, which
differ in nothing but their number, with their projections and one box for the rest.
"""

from headwork.render.arrangement import Arrangement
from headwork.render.drawing import Drawing
from headwork.render.picture_text import picture_words
from headwork.render.stacking import stacked
from headwork.working import Diagram

MARGIN = 8.0
PAGE = 870.0  # what fits on a page from side to side


def draw(diagram: Diagram, *, wide: bool = False) -> Drawing:
    arrangement = Arrangement(diagram, wide=wide)
    picture = stacked(arrangement.blocks(), (), arrangement.wiring)
    shapes = [shape.moved(MARGIN, MARGIN) for shape in picture.shapes()]
    width, height = picture.width + 2 * MARGIN, picture.height + 2 * MARGIN
    return Drawing("Attention, step by step", picture_words(diagram), width, height, shapes)


def fitting(diagram: Diagram) -> Drawing:
    """The wide form where a page has room for it, else the tall one."""
    picture = draw(diagram, wide=True)
    return picture if picture.width <= PAGE else draw(diagram)
