"""A line, a problem or a whole working as a notebook shows it: the page's blocks, with the page's style beside them."""

from headwork.render.blocks import Block, Title
from headwork.render.cells import Style
from headwork.render.html import block_html, static
from headwork.render.layout import Layout
from headwork.render.page import layout_of, line_blocks, page, problem_blocks
from headwork.working import Line, ProblemWorking, Working

SCOPE = "headwork"  # the style reaches nothing outside an element of this class


def fragment(thing: object) -> str:
    """HTML for a notebook: a fragment, with no script."""
    body = "\n".join(block_html(block) for block in _blocks(thing))
    return f'<div class="{SCOPE}"><style>\n{scoped(static("matrix.css"))}</style>\n{body}\n</div>'


def _blocks(thing: object) -> list[Block]:
    if isinstance(thing, Working):
        return list(page(thing))
    if isinstance(thing, ProblemWorking):
        return [Title(thing.problem.title), *problem_blocks(thing, layout_of(thing))]
    assert isinstance(thing, Line)
    return list(line_blocks(thing, Layout(Style())))


def scoped(style: str) -> str:
    """Every rule under the class: one rule to a line, as the file has them."""
    return "".join(f".{SCOPE} {line}\n" if "{" in line else f"{line}\n" for line in style.splitlines())
