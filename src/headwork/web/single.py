"""The bench as one file: it opens from a disk, without a network."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path

from headwork.errors import HeadworkError
from headwork.web.archives import AT_ONCE, Say
from headwork.web.page import assets
from headwork.web.site import MADE, Files, first_page, licences, python, sheets

PREFIX = "bench/"  # a module inside the file is imported by a name, for it has no address that others could be beside
_IMPORT = re.compile(r'((?:from|import)\s*\(?\s*)"\./([\w.-]+)"')
_LINKED = re.compile(r'<link rel="stylesheet" href="([\w.-]+)">')
_SCRIPT = re.compile(r'<script type="module" src="([\w.-]+)"></script>')


def write_single(path: Path, own: Sequence[str] = (), given: Path | None = None, say: Say = lambda _: None) -> int:
    """Write the bench, the built-in sheets and a teacher's own into one file; return how many bytes it has."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise HeadworkError(f"{path} is no name for a page, which ends in .html")
    if path.is_dir():
        raise HeadworkError(f"{path} is a folder; --single wants the name of a file")
    content = single(own, given, say).encode()
    say(f"writing {path}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise HeadworkError(f"cannot write {path}: {error.strerror}; choose another place") from None
    return len(content)


def single(own: Sequence[str] = (), given: Path | None = None, say: Say = lambda _: None) -> str:
    """The page with everything in it."""
    page, files = first_page(own, MADE), assets()
    page = _LINKED.sub(lambda link: f"<style>\n{files[link[1]].decode()}</style>", page)
    page = _SCRIPT.sub(
        lambda script: f'{_modules(files)}\n<script type="module">import "{PREFIX}{script[1]}";</script>', page
    )
    held = {**sheets(own, say), **python(given, say)}
    notice = licences().decode().replace("--", "- -")
    kept = "\n".join(_script(name, content) for name, content in held.items())
    return page.replace("</body>", f"{kept}\n</body>") + f"<!--\n{notice}-->\n"


def _modules(files: Files) -> str:
    """Every module as data under its name: a page from a disk may import nothing else."""
    found = {PREFIX + name: _module(source) for name, source in files.items() if name.endswith(".js")}
    return f'<script type="importmap">{json.dumps({"imports": found})}</script>'


def _module(source: bytes) -> str:
    text = _IMPORT.sub(rf'\1"{PREFIX}\2"', source.decode())
    return f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"


def _script(name: str, content: bytes) -> str:
    """A file in base 85, a quarter longer than it is; what xz has not compressed, gzip does."""
    compressed = name.endswith(".bin")
    plain = " data-plain" if compressed and name.removesuffix(".bin") not in AT_ONCE else ""
    text = base64.b85encode(content if compressed else gzip.compress(content, 9, mtime=0)).decode().replace("<", ",")
    return f'<script type="text/plain" data-file="{name}"{plain}>{text}</script>'
