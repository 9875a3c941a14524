"""The files of a package, and headwork itself among them: a copy that needs no compiler and no package index."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from headwork.errors import HeadworkError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable  # which Python 3.10, where graders run the copy, keeps elsewhere

Files = Mapping[str, bytes]  # path → content; what starts with #! is made executable
REQUIRES = ("numpy", "sympy")  # what marking imports beside itself
# What marking does without: the kernel, other people's frameworks, the bench.
_LEFT_OUT = ("engine", "torch", "web", "inspecting", "__pycache__")
_KEPT = (".py", ".toml", ".css")


def headwork_files(under: str = "") -> dict[str, bytes]:
    """headwork's own source, as much as marking needs."""
    return {f"{under}{name}": content for name, content in _walk(resources.files("headwork"), "headwork")}


def _walk(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir() and entry.name not in _LEFT_OUT:
            yield from _walk(entry, f"{name}/{entry.name}")
        elif entry.is_file() and entry.name.endswith(_KEPT):
            yield f"{name}/{entry.name}", entry.read_bytes()


def zipped(files: Files) -> bytes:
    """The same files give the same bytes, whenever they are packed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if files[name].startswith(b"#!") else 0o644) << 16
            archive.writestr(entry, files[name])
    return out.getvalue()


def write(files: Files, output: Path, ending: str) -> None:
    """A zip, one file, or a folder, as the ending has it."""
    try:
        if ending == ".zip":
            output.write_bytes(zipped(files))
        elif ending:
            (content,) = files.values()
            output.write_bytes(content)
        else:
            for name, content in files.items():
                path = output / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    except OSError as error:
        raise HeadworkError(f"cannot write {output}: {error.strerror}; choose another --output") from None
