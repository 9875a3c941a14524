"""A `Working` into a file: the ending chooses the form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.working import Working

# Ending → module and function; each is loaded when a file of its kind is written.
FORMS: Mapping[str, tuple[str, str]] = {
    ".md": ("markdown", "working_markdown"),
    ".tex": ("latex", "working_latex"),
    ".typ": ("typst", "working_typst"),
    ".pdf": ("typst", "working_pdf"),
    ".html": ("html", "working_html"),
    ".ipynb": ("notebook", "working_notebook"),
    ".txt": ("terminal", "working_page"),
    ".json": ("json", "working_json"),
    ".svg": ("pictures", "working_svg"),
    ".png": ("pictures", "working_png"),
}
EITHER_WAY = (".json", ".svg", ".png")  # hold closed forms in any case, or no numbers at all


def save(working: Working, path: str | Path, *, exact: bool = False) -> None:
    """Write a working in the form that the path's ending names."""
    make = form(path)
    write(path, make(working) if _ending(path) in EITHER_WAY else make(working, exact=exact))


def form(path: str | Path) -> Callable[..., str | bytes]:
    """The function that makes a file of this ending."""
    ending = _ending(path)
    if ending not in FORMS:
        found = f"'{ending}'" if ending else "a name without an ending"
        raise HeadworkError(f"{path}: nothing is written as {found}; choose from {' '.join(FORMS)}")
    module, function = FORMS[ending]
    made: Callable[..., str | bytes] = getattr(import_module(f"headwork.render.{module}"), function)
    return made


def _ending(path: str | Path) -> str:
    return Path(path).suffix.lower()


def write(path: str | Path, content: str | bytes) -> None:
    try:
        Path(path).write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise HeadworkError(f"cannot write {path}: {error.strerror}; choose another --output") from None
