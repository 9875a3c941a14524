"""What the command line does with a page: adapt it, save it."""

from __future__ import annotations

from pathlib import Path

from headwork.errors import HeadworkError
from headwork.working import Working


def adapted(working: Working, blank: bool, fade: int | None, answers_only: bool) -> Working:
    """The working as it is, or as one of the three things to hand out."""
    if blank + (fade is not None) + answers_only > 1:
        raise HeadworkError("--blank, --fade and --answers-only are three different pages; choose one")
    if not blank and fade is None and not answers_only:
        return working
    from headwork.render import papers

    if fade is not None:
        return papers.fade(working, fade)
    return papers.blank(working) if blank else papers.answers_only(working)


def save_page(working: Working, output: Path, exact: bool) -> None:
    from headwork.render.save import save

    save(working, output, exact=exact)


def save_sheet_picture(sheet: str, output: Path) -> None:
    """The diagram that a sheet asks for, or else its first problem's picture."""
    from headwork.render.pictures import asked_picture, save_diagram
    from headwork.solving import solve

    save_diagram(asked_picture(solve(sheet)), output)
