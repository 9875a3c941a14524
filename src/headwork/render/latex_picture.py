r"""A drawing in LaTeX's own `picture`: no package but `color`. Its lines run across and down, as ours do."""

from collections.abc import Iterator

from headwork.render.colours import LIGHT, shares
from headwork.render.drawing import SIZE, Drawing, Label, Line, Rect, Shape
from headwork.render.latex_maths import latex
from headwork.render.svg import TINT

UNIT = 0.62  # points to a unit of a drawing: so letters of 8 points fit as drawn
WIDEST, HIGHEST = 465.0, 600.0  # points across a page, and down it


def latex_picture(drawing: Drawing) -> str:
    """The drawing, in the middle of its line."""
    unit = min(UNIT, WIDEST / drawing.width, HIGHEST / drawing.height)
    size = r"\scriptsize" if unit > 0.9 * UNIT else r"\tiny"
    lines = [line for shape in drawing.shapes for line in _shape(shape, drawing.height, unit)]
    return (
        f"\\begin{{center}}{size}\\setlength{{\\unitlength}}{{{unit:.3f}pt}}%\n"
        f"\\begin{{picture}}({drawing.width:.0f},{drawing.height:.0f})\n" + "\n".join(lines) + "\n"
        "\\end{picture}\\end{center}"
    )


def _shape(shape: Shape, height: float, unit: float) -> Iterator[str]:
    if isinstance(shape, Rect):
        yield from _rect(shape, height, unit)
    elif isinstance(shape, Line):
        yield from _line(shape, height)
    else:
        yield _label(shape, height)


def _colour(colour: str, share: float = 1.0) -> str:
    """So much of a colour on white paper."""
    mixed = (1 - share * (1 - part) for part in shares(LIGHT[colour or "ink"]))
    return rf"\color[rgb]{{{','.join(f'{part:.3f}' for part in mixed)}}}"


def _rect(rect: Rect, height: float, unit: float) -> Iterator[str]:
    left, right = rect.x, rect.x + rect.width
    bottom, top = height - rect.y - rect.height, height - rect.y
    filled = {"plain": TINT, "cell": rect.share}.get(rect.look, 0.0)
    if filled:
        area = rf"\rule{{{rect.width * unit:.2f}pt}}{{{rect.height * unit:.2f}pt}}"
        yield _put(left, bottom, f"{_colour(rect.colour, filled)}{area}")
    middle = f"{(left + right) / 2:.1f},{(bottom + top) / 2:.1f}"
    edge = _colour(rect.colour, 0.4 if rect.look in ("card", "cell", "hidden") else 1.0)
    if rect.look == "source":
        yield rf"\put({middle}){{{edge}\oval({rect.width:.1f},{rect.height:.1f})}}"
    elif rect.look == "elsewhere":
        yield _put(left, bottom, rf"{edge}\dashbox{{3}}({rect.width:.1f},{rect.height:.1f}){{}}")
    else:
        yield _put(left, bottom, rf"{edge}\framebox({rect.width:.1f},{rect.height:.1f}){{}}")


def _line(line: Line, height: float) -> Iterator[str]:
    colour = _colour(line.colour, 0.4 if line.dashed else 1.0)
    for i, ((x, y), (to_x, to_y)) in enumerate(zip(line.points, line.points[1:], strict=False)):
        across, down = to_x - x, to_y - y
        if abs(across) > 2 and abs(abs(across) - abs(down)) < 0.5:  # the stroke through what is hidden
            drawn = rf"\line({1 if across > 0 else -1},{-1 if down > 0 else 1}){{{abs(across):.1f}}}"
        elif abs(across) > abs(down):
            drawn = rf"\line({1 if across > 0 else -1},0){{{abs(across):.1f}}}"
        else:
            pen = "vector" if line.head and i == len(line.points) - 2 else "line"
            drawn = rf"\{pen}(0,{-1 if down > 0 else 1}){{{abs(down):.1f}}}"
            x = to_x
        yield _put(x, height - y, f"{colour}{drawn}")


def _label(label: Label, height: float) -> str:
    text = f"${latex(label.maths).strip()}$"
    smaller = r"\tiny" if label.size < SIZE - 1 else ""
    before, after = {"start": ("", r"\hss"), "middle": (r"\hss", r"\hss"), "end": (r"\hss", "")}[label.anchor]
    placed = rf"\hbox to 0pt{{{before}{_colour(label.colour)}{smaller}{text}{after}}}"
    turned = rf"\rotatebox{{90}}{{{_colour(label.colour)}{smaller}{text}}}"
    return _put(label.x, height - label.y, turned if label.turned else placed)


def _put(x: float, y: float, drawn: str) -> str:
    return rf"\put({x:.1f},{y:.1f}){{{drawn}}}"
