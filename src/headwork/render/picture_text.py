"""A diagram in words: its steps head by head, for formats that do not draw and readers who do not see."""

from __future__ import annotations

from headwork.readings.shapes import shape_text
from headwork.render.formula_text import formula_text
from headwork.render.maths import Maths
from headwork.render.reading import read_maths
from headwork.working import Diagram, Equation


def picture_lines(diagram: Diagram) -> list[tuple[str, list[Maths]]]:
    """("head 1", its steps) for every head, and then what belongs to none."""
    return [
        (title, [read_maths(f"{made} → {name}, {shape}") for made, name, shape in rows])
        for title, rows in _sections(diagram)
    ]


def picture_words(diagram: Diagram) -> str:
    """The same as one paragraph, to be read aloud."""
    sections = []
    for title, rows in _sections(diagram):
        steps = "; ".join(f"{made} gives {name}, {shape}" for made, name, shape in rows)
        sections.append(f"{title}: {steps}." if title else f"{steps}.")
    return " ".join(sections)


def _sections(diagram: Diagram) -> list[tuple[str, list[tuple[str, str, str]]]]:
    drawn = [e for e, sources in zip(diagram.rows, diagram.sources, strict=True) if _worked(e, sources)]
    heads = [head for head in dict.fromkeys(e.head for e in drawn) if head is not None]
    sections = [("", [e for e in drawn if e.head is None and not _after_heads(e)])]
    for head in heads:
        rows = [e for e in drawn if e.head == head]
        sections.append((f"Head {rows[0].name.subscripts[-1]}", rows))
    sections.append(("", [e for e in drawn if e.head is None and _after_heads(e)]))
    return [(title, [_said(e) for e in rows]) for title, rows in sections if rows]


def _worked(equation: Equation, sources: tuple[int, ...]) -> bool:
    return equation.op is not None and len(sources) == len(equation.operands) and not equation.name.transposed


def _after_heads(equation: Equation) -> bool:
    return equation.role in ("joined", "output", "output_before_bias")


def _said(equation: Equation) -> tuple[str, str, str]:
    return formula_text(equation), str(equation.name), shape_text(equation.shape)
