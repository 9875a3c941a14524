"""Matrices as grids of inputs: what is given, and what a reader fills in."""

from collections.abc import Mapping, Sequence
from html import escape

from headwork.maths import Maths
from headwork.render.mathml import mathml


def grid(name: Maths, called: str, rows: Sequence[Sequence[str]], about: Mapping[str, object]) -> str:
    """A name, "=", and an input for every entry. `about` are the data attributes by which it is found."""
    data = "".join(f' data-{key}="{escape(str("" if value is None else value))}"' for key, value in about.items())
    label = escape(called)
    body = "".join(
        "<tr>" + "".join(_cell(label, text, i, j) for j, text in enumerate(row)) + "</tr>" for i, row in enumerate(rows)
    )
    return (
        f'<div class="matrix"><span class="name">{mathml(name)}<span aria-hidden="true"> =</span></span>'
        f'<table class="cells" role="grid" aria-label="{label}"{data}><tbody>{body}</tbody></table></div>'
    )


def _cell(label: str, text: str, i: int, j: int) -> str:
    size = max(2, len(text))
    return (
        f'<td role="gridcell"><input data-row="{i}" data-column="{j}" value="{escape(text)}" size="{size}" '
        f'aria-label="{label}, row {i + 1}, column {j + 1}" autocomplete="off" spellcheck="false"></td>'
    )
