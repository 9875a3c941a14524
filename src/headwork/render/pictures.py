"""The diagram of a working on its own: SVG, PNG or PDF."""

from pathlib import Path

from headwork.errors import HeadworkError
from headwork.render.colours import THEMES
from headwork.render.diagram import draw
from headwork.render.drawing import Drawing
from headwork.render.save import write
from headwork.render.svg import svg
from headwork.working import Diagram, Working

ENDINGS = (".svg", ".png", ".pdf")


def working_svg(working: Working) -> str:
    return _written(draw(asked_picture(working)), ".svg", "light").decode()


def working_png(working: Working) -> bytes:
    return _written(draw(asked_picture(working)), ".png", "light")


def save_diagram(diagram: Diagram, path: str | Path, *, wide: bool = False, theme: str = "light") -> None:
    """The picture into a file, .svg, .png or .pdf, in the colours of a theme."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise HeadworkError(f"{path}: a picture is written as {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if theme not in THEMES:
        raise HeadworkError(f"there is no theme '{theme}'; choose {' or '.join(THEMES)}")
    write(path, [_written(draw(diagram, wide=wide), ending, theme)])


def _written(drawing: Drawing, ending: str, theme: str) -> bytes:
    """A file of its own, with paper of its own: it looks the same on whatever it is laid."""
    if ending == ".svg":
        return f"{svg(drawing, theme)}\n".encode()
    from headwork.render.typst import drawing_file

    return drawing_file(drawing, ending[1:], theme)


def asked_picture(working: Working) -> Diagram:
    """The diagram that a part asks for, or else the first problem's own picture."""
    asked = [
        line
        for problem in working.problems
        for part in problem.parts
        for line in part.lines
        if isinstance(line, Diagram)
    ]
    pictures = [*asked, *(problem.picture for problem in working.problems if problem.picture is not None)]
    if not pictures:
        raise HeadworkError(f"the sheet '{working.title}' has too few steps to draw; write .md or .html instead")
    return pictures[0]
