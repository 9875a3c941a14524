"""A sheet as a package for the place where a class hands in: one small file for each, found by its name here."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from headwork.errors import HeadworkError

if TYPE_CHECKING:
    from headwork.marking.graders.family import Family
    from headwork.marking.graders.files import Files

# Name → how the package ends: a zip, one file, or a folder. The module of that name has `package(family, name)`.
GRADERS: Mapping[str, str] = {
    "gradescope": ".zip",
    "otter": "",
    "nbgrader": "",
    "prairielearn": "",
    "openedx": "",
    "cloze": ".xml",
    "canvas": ".zip",
    "stack": ".xml",
}


def export(sheet: str | Path, to: str, output: str | Path | None = None) -> Path:
    """Write the package of a sheet, or of a folder of sheets, for a grader; say where it is."""
    from headwork.marking.graders.family import load_family
    from headwork.marking.graders.files import write
    from headwork.sheets.questions import identifier

    if to not in GRADERS:
        raise HeadworkError(f"there is no grader '{to}'; choose from {', '.join(GRADERS)}")
    family = load_family(sheet)
    name = identifier(Path(sheet).stem) or "sheet"
    make: Callable[[Family, str], Files] = import_module(f"headwork.marking.graders.{to}").package
    path = Path(output) if output is not None else Path(f"{name}-{to}{GRADERS[to]}")
    write(make(family, name), path, GRADERS[to])
    return path
