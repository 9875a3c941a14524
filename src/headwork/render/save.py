"""A `Working` into a file: the ending chooses the form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwork.errors import HeadworkError

if TYPE_CHECKING:  # the command line asks here what endings there are
    from headwork.render.blocks import Block
    from headwork.working import Working

# Ending → module and function; each is loaded when a file of its kind is written. A page is made of blocks.
PAGES: Mapping[str, tuple[str, str]] = {
    ".md": ("markdown", "document"),
    ".tex": ("latex", "document"),
    ".typ": ("typst", "document"),
    ".pdf": ("typst", "pdf"),
    ".html": ("html", "document"),
    ".txt": ("text", "document"),
}
WHOLE = (".tex", ".typ", ".pdf")  # formats whose head depends on what follows
# The others read the working itself.
DATA: Mapping[str, tuple[str, str]] = {
    ".ipynb": ("notebook", "working_notebook"),
    ".json": ("json", "working_json"),
    ".svg": ("pictures", "working_svg"),
    ".png": ("pictures", "working_png"),
}
EITHER_WAY = (".json", ".svg", ".png")  # hold closed forms in any case, or no numbers at all


def save(working: Working, path: str | Path, *, exact: bool = False) -> None:
    """Write a working in the form that the path's ending names; Markdown has its pictures in files beside it."""
    ending = checked_ending(path, (*PAGES, *DATA))
    if ending != ".md":
        write(path, [rendered(working, ending, exact=exact)])
        return
    from headwork.render import markdown
    from headwork.render.page import page

    text, pictures = markdown.with_pictures(page(working, exact=exact, **markdown.LAYOUT), Path(path).stem)
    write(path, [text])
    for name, picture in pictures.items():
        write(Path(path).with_name(name), [picture])


def rendered(working: Working, ending: str, *, exact: bool = False) -> Any:
    """The whole file: text, or bytes for .pdf and .png."""
    if ending in EITHER_WAY:
        return _function(*DATA[ending])(working)
    if ending in DATA:
        return _function(*DATA[ending])(working, exact=exact)
    from headwork.render.page import page

    module, name = PAGES[ending]
    laid: Mapping[str, Any] = import_module(f"headwork.render.{module}").LAYOUT
    return _function(module, name)(page(working, exact=exact, **laid))


def streamed(ending: str, blocks: Iterable[Block]) -> Iterator[str | bytes]:
    """Blocks as a document of the format that an ending stands for, piece by piece where the format can."""
    module, name = PAGES[ending]
    yield from [_function(module, name)(blocks)] if ending in WHOLE else _function(module, "streamed")(blocks)


def _function(module: str, name: str) -> Callable[..., Any]:
    made: Callable[..., Any] = getattr(import_module(f"headwork.render.{module}"), name)
    return made


def checked_ending(path: str | Path, endings: Iterable[str]) -> str:
    """The ending of a path, if it is one of these."""
    ending = Path(path).suffix.lower()
    if ending not in endings:
        found = f"'{ending}'" if ending else "a name without an ending"
        raise HeadworkError(f"{path}: nothing is written as {found}; choose from {' '.join(endings)}")
    return ending


def write(path: str | Path, pieces: Iterable[str | bytes]) -> None:
    """Piece by piece: a page of many students is never whole in memory."""
    try:
        with Path(path).open("wb") as file:
            file.writelines(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
    except OSError as error:
        raise HeadworkError(f"cannot write {path}: {error.strerror}; choose another --output") from None
