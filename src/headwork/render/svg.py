"""A drawing as SVG: colours of its own where it is a file, those of the page where it stands on one."""

from collections.abc import Callable, Mapping
from html import escape
from itertools import groupby

from headwork.render.colours import FAMILIES, LIGHT, THEMES, variable
from headwork.render.drawing import Drawing, Label, Line, Of, Rect, Shape, runs

FONT = "New Computer Modern, Latin Modern Roman, STIX Two Text, Cambria, Georgia, serif"
SOFT = 'stroke-opacity="0.4" stroke-width="1" stroke-dasharray="4 3"'
TINT = 0.14  # how much of a role's colour its boxes have
Paint = Callable[[str], str]


def svg(drawing: Drawing, theme: str = "") -> str:
    """In the colours of the page around it, or in those of a theme, on paper of its own."""
    paint: Paint = THEMES[theme].__getitem__ if theme else _of_the_page
    size = f'width="{drawing.width:.0f}" height="{drawing.height:.0f}"'
    # A file cannot know what it is laid on: it brings its paper, so that dark ink never stands on a dark slide.
    paper = f'\n<rect {size} fill="{paint("panel" if theme == "light" else "paper")}"/>' if theme else ""
    grouped = groupby(drawing.shapes, key=lambda shape: getattr(shape, "of", None))
    shapes = "\n".join(_group(of, [_shape(shape, paint) for shape in group]) for of, group in grouped)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}" {size} '
        f'role="img" font-family="{FONT}"><title>{escape(drawing.title)}</title><desc>{escape(drawing.words)}</desc>'
        f"{paper}\n{shapes}\n</svg>"
    )


def _of_the_page(colour: str) -> str:
    """Lines take the colour of the text around them; roles that of the style sheet, where there is one."""
    if colour == "ink":
        return "currentColor"
    return f"var({variable(colour)}, {LIGHT[colour] if colour in FAMILIES else 'currentColor'})"


def _group(of: Of | None, shapes: list[str]) -> str:
    """What belongs to one step, so that a page can find it."""
    inside = "\n".join(shapes)
    if of is None:
        return inside
    head = "" if of.head is None else escape(str(of.head))
    return f'<g class="step" data-role="{escape(of.role)}" data-head="{head}">\n{inside}\n</g>'


def _shape(shape: Shape, paint: Paint) -> str:
    if isinstance(shape, Rect):
        return _rect(shape, paint)
    return _line(shape, paint) if isinstance(shape, Line) else _label(shape, paint)


def _rect(rect: Rect, paint: Paint) -> str:
    place = f'x="{rect.x:.1f}" y="{rect.y:.1f}" width="{rect.width:.1f}" height="{rect.height:.1f}"'
    colour, edge = paint(rect.colour or "ink"), f'stroke="{paint("ink")}" stroke-opacity="0.35" stroke-width="0.6"'
    return f"<rect {place} {LOOKS[rect.look](rect, colour, edge)}/>"


LOOKS: Mapping[str, Callable[[Rect, str, str], str]] = {
    "plain": lambda _, c, edge: f'rx="4" fill="{c}" fill-opacity="{TINT}" stroke="{c}" stroke-width="1.2"',
    "source": lambda rect, c, edge: f'rx="{rect.height / 2:.0f}" fill="none" stroke="{c}" stroke-width="1.4"',
    "elsewhere": lambda _, c, edge: f'rx="4" fill="none" stroke="{c}" stroke-width="1.1" stroke-dasharray="3 2"',
    "card": lambda _, c, edge: f'rx="8" fill="none" stroke="{c}" {SOFT}',
    "cell": lambda rect, c, edge: f'fill="{c}" fill-opacity="{rect.share:.3f}" {edge}',
    "hidden": lambda _, c, edge: f'fill="none" {edge} stroke-dasharray="2 2"',
}


def _line(line: Line, paint: Paint) -> str:
    colour = paint(line.colour or "ink")
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in line.points)
    soft = SOFT if line.dashed else 'stroke-width="1.2"'
    drawn = f'<path d="{path}" fill="none" stroke="{colour}" {soft}/>'
    x, y = line.points[-1]
    return drawn + (f'<path d="M{x - 3.5:.1f} {y - 6:.1f}h7l-3.5 6z" fill="{colour}"/>' if line.head else "")


def _label(label: Label, paint: Paint) -> str:
    """Runs, each of which moves the base line from where the one before left it."""
    written, at, size = [], 0.0, label.size
    for run in runs(label.maths):
        move = f' dy="{(at - run.rise) * size:.1f}"' if run.rise != at else ""
        scale = f' font-size="{run.scale * size:.1f}"' if run.scale != 1 else ""
        slanted = ' font-style="italic"' if run.slanted else ""
        at = run.rise
        text = escape(run.text.replace("  ", "\u00a0\u00a0"))  # which would be one space
        written.append(f"<tspan{move}{scale}{slanted}>{text}</tspan>")
    turned = f' transform="rotate(-90 {label.x:.1f} {label.y:.1f})"' if label.turned else ""
    return (
        f'<text x="{label.x:.1f}" y="{label.y:.1f}"{turned} text-anchor="{label.anchor}" font-size="{size:.1f}" '
        f'fill="{paint(label.colour or "ink")}">{"".join(written)}</text>'
    )
