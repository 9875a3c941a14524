"""The files of a package: Moodle's XML, and headwork itself, a copy that needs no compiler and no package index."""

from __future__ import annotations

import io
import marshal
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from html import escape
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from typing import TYPE_CHECKING

from headwork.errors import HeadworkError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable  # which Python 3.10, where graders run the copy, keeps elsewhere

Files = Mapping[str, bytes]  # path → content; what starts with #! is made executable
REQUIRES = ("sympy",)  # what marking imports beside itself
_KEPT = (".py", ".toml", ".css", ".js", ".mac")


def moodle_quiz(name: str, questions: Iterable[str]) -> Files:
    """Questions in a category of their own, as Moodle takes them."""
    category = f'<question type="category"><category><text>$course$/top/{escape(name)}</text></category></question>'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<quiz>", category, *questions, "</quiz>", ""]
    return {f"{name}.xml": "\n".join(lines).encode()}


def moodle_text(tag: str, text: str) -> str:
    return f"<{tag}><text>{text}</text></{tag}>"


def moodle_html(tag: str, text: str) -> str:
    inside = f"<![CDATA[{text.replace(']]>', ']]&gt;')}]]>" if text else ""
    return f'<{tag} format="html"><text>{inside}</text></{tag}>'


def headwork_files() -> dict[str, bytes]:
    """headwork's own source: all of it but the compiled kernel, which is for one Python on one machine."""
    return dict(_walk(resources.files("headwork"), "headwork"))


def _walk(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _walk(entry, f"{name}/{entry.name}")
        elif entry.is_file() and entry.name.endswith(_KEPT):
            yield f"{name}/{entry.name}", entry.read_bytes()


def compiled(files: Files) -> Files:
    """The same with every module's byte code beside it, for a grader that imports from a zip and keeps nothing: that
    halves what an import takes. A Python of another version than ours passes it over and compiles the source."""
    never_checked = (1).to_bytes(4, "little")  # a .pyc told by its source's hash and not held to it, as PEP 552 has it
    head = MAGIC_NUMBER + never_checked
    codes = {
        f"{name}c": head + source_hash(content) + marshal.dumps(compile(content, name, "exec", dont_inherit=True))
        for name, content in files.items()
        if name.endswith(".py")
    }
    return {**files, **codes}


def wheel() -> tuple[str, bytes]:
    """The same as a wheel for any Python, with its name: what a grader can install that has no package index."""
    name = f"headwork-{_version()}+pure"
    files = headwork_files()
    requires = "".join(f"Requires-Dist: {package}\n" for package in REQUIRES)
    about = f"{name}.dist-info"
    files[f"{about}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: headwork\nVersion: {_version()}+pure\n{requires}".encode()
    )
    files[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: headwork\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{file},sha256={_hash(content)},{len(content)}\n" for file, content in sorted(files.items()))
    files[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n".encode()
    return f"{name}-py3-none-any.whl", zipped(files)


def _version() -> str:
    try:
        return version("headwork").partition("+")[0]
    except PackageNotFoundError:
        return "0"  # run from the source tree


def _hash(content: bytes) -> str:
    return urlsafe_b64encode(sha256(content).digest()).decode().rstrip("=")


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
