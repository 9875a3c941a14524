"""A diagram in words: its steps head by head, for formats that do not draw and readers who do not see."""

from headwork.graph import Block
from headwork.inline import inline
from headwork.maths import Maths, Row, Sign, Words
from headwork.readings.shapes import shape_maths, shape_text
from headwork.render.formula import formula
from headwork.working import Diagram, Equation

Section = tuple[str, list[Equation]]


def picture_sections(diagram: Diagram) -> list[tuple[str, list[Maths]]]:
    """("Head 1", its steps) for every head, and then what belongs to none."""
    return [(title, [_arrow(equation) for equation in rows]) for title, rows in sections(diagram)]


def _arrow(equation: Equation) -> Maths:
    return Row((formula(equation), Sign("→"), equation.name.maths, Words(", "), shape_maths(equation.shape)))


def picture_words(diagram: Diagram) -> str:
    """The same as one paragraph, to be read aloud."""
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
        kind = "Block" if isinstance(head, Block) else "Head"
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
