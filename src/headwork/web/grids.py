"""Matrices as grids of inputs: what is given, and what a reader fills in."""

from collections.abc import Mapping, Sequence
from html import escape

from headwork.maths import Maths
from headwork.render.colours import family
from headwork.render.mathml import mathml


def grid(
    name: Maths,
    called: str,
    rows: Sequence[Sequence[str]],
    about: Mapping[str, object],
    *,
    corner: tuple[int, int] = (0, 0),
    locked: bool = False,
) -> str:
    """A name, "=", and an input for every entry. `about` are the data attributes by which it is found; `corner` is the
    row and column of the first entry; what is `locked` can be read and not changed."""
    data = "".join(f' data-{key}="{escape(str("" if value is None else value))}"' for key, value in about.items())
    label, close = escape(called), " readonly></td>" if locked else "></td>"
    role = family(str(about.get("role", "")))
    kind = f"cells role-{role}" if role else "cells"
    body = ""
    for i, row in enumerate(rows):
        cells = (_cell(label, text, i, j, corner) + close for j, text in enumerate(row))
        body += f"<tr>{''.join(cells)}</tr>"
    return (
        f'<div class="matrix"><span class="name">{mathml(name)}<span aria-hidden="true"> =</span></span>'
        f'<table class="{kind}" role="grid" aria-label="{label}"{data}><tbody>{body}</tbody></table></div>'
    )


def _cell(label: str, text: str, i: int, j: int, corner: tuple[int, int]) -> str:
    """Up to where its tag is closed."""
    return (
        f'<td role="gridcell"><input data-row="{i + corner[0]}" data-column="{j + corner[1]}" value="{escape(text)}" '
        f'size="{max(2, len(text))}" aria-label="{label}, row {i + 1}, column {j + 1}" autocomplete="off" '
        'spellcheck="false"'
    )
