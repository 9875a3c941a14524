"""The diagram of a working on its own, as SVG or PNG."""

from collections.abc import Callable
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.render.diagram import draw
from headwork.render.save import write
from headwork.working import Diagram, Working


def working_svg(working: Working) -> str:
    return diagram_svg(asked_picture(working))


def working_png(working: Working) -> bytes:
    return diagram_png(asked_picture(working))


def diagram_svg(diagram: Diagram) -> str:
    """A file of its own, legible on light and on dark."""
    return draw(diagram).svg(alone=True) + "\n"


def diagram_png(diagram: Diagram) -> bytes:
    from headwork.render.typst import drawing_png

    return drawing_png(draw(diagram))


def save_diagram(diagram: Diagram, path: str | Path) -> None:
    """The picture into a file, .svg or .png."""
    forms: dict[str, Callable[[Diagram], str | bytes]] = {".svg": diagram_svg, ".png": diagram_png}
    ending = Path(path).suffix.lower()
    if ending not in forms:
        raise HeadworkError(f"{path}: a picture is written as .svg or .png")
    write(path, [forms[ending](diagram)])


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
