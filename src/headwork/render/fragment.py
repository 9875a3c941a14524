"""A line, a problem or a whole working as a notebook shows it: the page's blocks, with the page's style beside them."""

from headwork.render.blocks import Title
from headwork.render.html import block_html, static
from headwork.render.page import shown_blocks
from headwork.working import ProblemWorking

SCOPE = "headwork"  # the style reaches nothing outside an element of this class


def fragment(thing: object) -> str:
    """HTML for a notebook: a fragment, with no script."""
    title = [Title(thing.problem.title)] if isinstance(thing, ProblemWorking) else []
    body = "\n".join(map(block_html, [*title, *shown_blocks(thing)]))
    return f'<div class="{SCOPE}"><style>\n{scoped(static("matrix.css"))}</style>\n{body}\n</div>'


def scoped(style: str) -> str:
    """Every rule under the class: one rule to a line, as the file has them."""
    return "".join(f".{SCOPE} {line}\n" if "{" in line else f"{line}\n" for line in style.splitlines())
