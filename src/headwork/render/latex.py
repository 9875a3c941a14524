"""The page in LaTeX: compiles as it is, with amsmath and, for pictures and marks, colours."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from headwork.maths import Prose
from headwork.render import blocks as b
from headwork.render.colours import LIGHT, VERDICTS, shares
from headwork.render.diagram import picture_of
from headwork.render.drawing import SIZE, Drawing, Label, Line, Rect, Shape
from headwork.render.latex_maths import aligned, escaped, latex, marked_grid, sentence, unknown
from headwork.render.matrices import printed_width
from headwork.render.svg import TINT

WIDE_CELL = 36  # from here on a table's cell is broken into lines
LAYOUT = {"room": 78, "cell": WIDE_CELL}  # characters that fit on a line of A4
UNIT = 0.62  # points to a unit of a drawing: so letters of 8 points fit as drawn
WIDEST, HIGHEST = 465.0, 600.0  # points across a page, and down it

_PREAMBLE = r"""\documentclass[11pt,a4paper,fleqn]{article}
\usepackage{amsmath}
\setlength{\textwidth}{16.5cm}\setlength{\oddsidemargin}{-0.3cm}
\setlength{\textheight}{24.5cm}\setlength{\topmargin}{-1.6cm}
\setlength{\parindent}{0pt}\setlength{\parskip}{6pt plus 2pt}
\setlength{\mathindent}{1.5em}\setlength{\arraycolsep}{4pt}
\allowdisplaybreaks\sloppy
"""
# Lines to write on, which go on over the page where one ends.
_ROOM = r"""\newcount\lines
\newcommand{\room}[1]{\lines=#1\par\loop\noindent\rule{0pt}{0.7cm}\par\advance\lines by -1 \ifnum\lines>0 \repeat}
"""
_PACKAGES = {
    **dict.fromkeys((r"\checkmark", r"\mathbb"), "amssymb"),
    r"\color[": "color",
    **dict.fromkeys((r"\rotatebox", r"\scalebox"), "graphicx"),
}


def document(blocks: Iterable[b.Block]) -> str:
    """The whole document."""
    body = ""
    for block in blocks:
        # A display belongs to the paragraph before it: an empty line would leave a gap.
        body += ("\n" if isinstance(block, b.Display) else "\n\n") + BLOCKS[type(block)](block)
    room = _ROOM if r"\room{" in body else ""
    needed = ",".join(dict.fromkeys(package for command, package in _PACKAGES.items() if command in body))
    used = f"\\usepackage{{{needed}}}\n" if needed else ""
    return f"{_PREAMBLE}{used}{room}{_declared(body)}\\begin{{document}}\n{body}\n\n\\end{{document}}\n"


def _declared(body: str) -> str:
    """Characters that an engine without Unicode fonts cannot print are printed by their number."""
    if not (missing := unknown(body)):
        return ""
    lines = [rf"\DeclareUnicodeCharacter{{{ord(c):04X}}}{{\texttt{{U+{ord(c):04X}}}}}" for c in missing]
    return "\n".join([r"\ifdefined\Umathcode\else", *lines, r"\fi", ""])


def _prose(prose: Prose) -> str:
    return sentence(prose, escaped)


def _paragraph(paragraph: b.Paragraph) -> str:
    text = _prose(paragraph.text)
    if paragraph.kind in ("note", "aside"):
        return rf"{{\small {text}\par}}"
    if paragraph.kind == "answer":
        return rf"\begin{{quote}}{text}\end{{quote}}"
    return rf"\emph{{Claim.}} {text}" if paragraph.kind == "claim" else text


def _flow(flow: b.Flow) -> str:
    return (
        r"\begin{flushleft}\lineskip=6pt\lineskiplimit=3pt"
        + "\n"
        + " \\quad\n".join(f"${latex(i)}$" for i in flow.items)
        + "\n\\end{flushleft}"
    )


def _display(display: b.Display) -> str:
    rows = [aligned(line, lambda remark: rf"\text{{{_prose(remark)}}}") for line in display.lines]
    return "\\begin{align*}\n" + " \\\\*\n".join(rows) + "\n\\end{align*}"


def _entries(entries: b.Entries) -> str:
    lines = [rf"\hangindent=3em\hangafter=1 ${latex(item)}$\par" for item in entries.items]
    return "{\\small\\raggedright\\parskip=2pt\n" + "\n".join(lines) + "\n}"


def _table(table: b.Table) -> str:
    columns = zip(*table.rows, strict=True)
    kinds = [_column(list(cells), i < table.left) for i, cells in enumerate(columns)]
    rows = [" & ".join(map(_prose, row)) + r" \\" for row in table.rows]
    header = " & ".join(map(_prose, table.header)) + r" \\ \hline"
    lines = "\n".join([header, *rows])
    return (
        f"{{\\small\\renewcommand{{\\arraystretch}}{{1.25}}\n\\begin{{tabular}}{{{''.join(kinds)}}}\n"
        f"{lines}\n\\end{{tabular}}\\par}}"
    )


def _column(cells: list[Prose], flush_left: bool) -> str:
    if max(map(printed_width, cells)) > WIDE_CELL and flush_left:
        return r"p{0.35\textwidth}"
    return "l" if flush_left else "r"


def _marked(marked: b.Marked) -> str:
    def coloured(maths: str, verdict: str) -> str:
        rgb = ",".join(f"{share:.2f}" for share in shares(VERDICTS[verdict]))
        return rf"{{\color[rgb]{{{rgb}}}{maths}}}"

    return rf"\[{marked_grid(marked.rows, coloured)}\]"


def _finding(finding: b.Finding) -> str:
    inside = "\n\n".join(BLOCKS[type(block)](block) for block in finding.inside)
    said = rf"\textbf{{{escaped(finding.name)}}}: {escaped(finding.text)}\par"
    return said + (f"\n\\begin{{quote}}\n{inside}\n\\end{{quote}}" if inside else "")


BLOCKS: Mapping[type[b.Block], Callable[[Any], str]] = {
    b.Title: lambda block: rf"{{\LARGE\bfseries {escaped(block.text)}\par}}",
    b.Heading: lambda block: rf"\section*{{{escaped(block.text)}}}",
    b.Question: lambda block: rf"\medskip\textbf{{({escaped(block.label)})}} {_prose(block.text)}",
    b.Paragraph: _paragraph,
    b.Flow: _flow,
    b.Display: _display,
    b.Entries: _entries,
    b.Table: _table,
    b.Picture: lambda picture: latex_picture(picture_of(picture)),
    b.Heat: lambda heat: latex_picture(picture_of(heat)),
    b.Marked: _marked,
    b.Finding: _finding,
    b.Space: lambda space: rf"\room{{{space.lines}}}",
}


# A drawing in LaTeX's own `picture`: no package but `color`, and `graphicx` for one that is larger than the page, whose
# letters have to shrink with it. Its lines run across and down, as ours do.


def latex_picture(drawing: Drawing) -> str:
    """The drawing, in the middle of its line, smaller where it is larger than the page."""
    share = min(WIDEST / drawing.width, HIGHEST / drawing.height) / UNIT
    smaller, end = (rf"\scalebox{{{share:.3f}}}{{", "}") if share < 1 else ("", "")
    lines = [line for shape in drawing.shapes for line in _shape(shape, drawing.height)]
    return (
        f"\\begin{{center}}\\scriptsize\\setlength{{\\unitlength}}{{{UNIT:.3f}pt}}{smaller}%\n"
        f"\\begin{{picture}}({drawing.width:.0f},{drawing.height:.0f})\n" + "\n".join(lines) + "\n"
        f"\\end{{picture}}{end}\\end{{center}}"
    )


def _shape(shape: Shape, height: float) -> Iterator[str]:
    if isinstance(shape, Rect):
        yield from _rect(shape, height)
    elif isinstance(shape, Line):
        yield from _line(shape, height)
    else:
        yield _label(shape, height)


def _colour(colour: str, share: float = 1.0) -> str:
    """So much of a colour on white paper."""
    mixed = (1 - share * (1 - part) for part in shares(LIGHT[colour or "ink"]))
    return rf"\color[rgb]{{{','.join(f'{part:.3f}' for part in mixed)}}}"


def _rect(rect: Rect, height: float) -> Iterator[str]:
    left, right = rect.x, rect.x + rect.width
    bottom, top = height - rect.y - rect.height, height - rect.y
    filled = {"plain": TINT, "cell": rect.share}.get(rect.look, 0.0)
    if filled:
        area = rf"\rule{{{rect.width * UNIT:.2f}pt}}{{{rect.height * UNIT:.2f}pt}}"
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
