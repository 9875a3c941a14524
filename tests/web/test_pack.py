"""What is compiled for the browser runs as its source does; what a build lacks is said before anything is written."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headwork.cli import app
from headwork.errors import HeadworkError
from headwork.web.pack import compiled, flat, imported, needed, package, standard_library
from headwork.web.pyodide import FILES, VERSION, pyodide
from headwork.web.site import MADE, write_site

SOURCE = b'''"""Said."""
import json
def outer(n):
    """Doubles."""
    def inner(k):
        total = 0
        for i in range(k):
            total += i if i % 2 else -i
        return [total * x for x in range(3)]
    try:
        return inner(n), 1 / n
    except ZeroDivisionError:
        return json.dumps({"n": n})
'''


def test_code_without_its_lines_runs_the_same() -> None:
    said: list[object] = []
    lines: list[set[int | None]] = []
    for code in (compile(SOURCE, "m.py", "exec"), flat(compile(SOURCE, "m.py", "exec"))):
        names: dict[str, Any] = {}
        exec(code, names)
        said.append([names["outer"](n) for n in range(20)])
        lines.append({line for _, _, line in names["outer"].__code__.co_lines()})
    assert said[0] == said[1]
    assert (len(lines[0]) > 3, lines[1]) == (True, {3})


def test_an_archive_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("packed_for_a_test/__init__.py", "from .part import VALUE\n")
        out.writestr("packed_for_a_test/part.py", "import json, os.path\nVALUE = 7\n")
        out.writestr("packed_for_a_test/data.toml", "a = 1")
    content, names = package(archive.getvalue())
    assert names == ["json", "os.path", "packed_for_a_test.part", "packed_for_a_test.part.VALUE"]
    assert package(archive.getvalue())[0] == content, "the same sources give the same archive"
    (tmp_path / "packed.zip").write_bytes(content)
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    import packed_for_a_test  # type: ignore[import-not-found]  # made two lines above

    assert packed_for_a_test.VALUE == 7
    assert packed_for_a_test.__cached__ is None or packed_for_a_test.__file__.endswith(".pyc")


def test_every_import_is_followed_wherever_it_stands() -> None:
    library = {
        "a.py": b"def f():\n    import b.c\n",
        "b/__init__.py": b"",
        "b/c.py": b"from . import d\nfrom ..e import x\n",
        "b/d.py": b"import never",
        "e.py": b"",
        "never.py": b"",
        "alone.py": b"",
    }
    assert set(imported(library["b/c.py"], "b")) == {"b", "b.d", "e", "e.x"}
    assert set(needed(library, ["a"], ["never"])) == {"a.py", "b/__init__.py", "b/c.py", "b/d.py", "e.py"}


def test_the_standard_library_is_what_python_itself_has_loaded() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("json/__init__.py", "")  # loaded by whoever runs this
        out.writestr("no_such_module_of_python.py", "")
    assert standard_library(archive.getvalue(), [], [])[1] == ["json/__init__.py"]
    assert compiled(b"1", "m.py")[4] == 1, "unchecked: nobody looks for a source"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing in its cache and no programs but those put into `bin`."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def program(folder: Path, name: str, body: str) -> None:
    path = folder / "bin" / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("npm", "said"),
    [
        (None, "npm is needed to fetch Pyodide, and is not installed; install Node.js"),
        ("echo no such registry >&2; exit 1", "it said: no such registry"),
        ("exit 0", f"npm could not fetch pyodide {VERSION}"),
    ],
)
def test_what_cannot_be_fetched_is_said_and_nothing_is_written(bare: Path, npm: str | None, said: str) -> None:
    if npm is not None:
        program(bare, "npm", npm)
    result = CliRunner().invoke(app, ["site", str(bare / "out"), "--single", str(bare / "bench.html")])
    assert isinstance(result.exception, HeadworkError)
    assert said in str(result.exception)
    assert not (bare / "out").exists()
    assert not (bare / "bench.html").exists()
    assert [path for path in (bare / "cache").rglob("*") if path.is_file()] == []


def test_a_package_that_was_tampered_with_is_refused(bare: Path) -> None:
    """From a folder, and from npm."""
    folder = bare / "package"
    folder.mkdir()
    with pytest.raises(HeadworkError, match=r"has no pyodide\.mjs; --pyodide wants the npm package"):
        pyodide(folder)
    for name in FILES:
        (folder / name).write_text("not what it was")
    with pytest.raises(
        HeadworkError, match=r"is not the file of pyodide 314\.0\.7, or was changed: its SHA-256 differs"
    ):
        pyodide(folder)
    shutil.make_archive(str(bare / "pyodide-0"), "gztar", bare, "package")
    program(bare, "npm", f"/bin/cp {bare}/pyodide-0.tar.gz pyodide-0.tgz")
    with pytest.raises(HeadworkError, match="its SHA-256 differs"):
        pyodide()
    assert not (bare / "cache" / "headwork" / f"pyodide-{VERSION}").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a folder for the site, or --single FILE"),
        (["file"], "file is a file; a site is a folder"),
        (["theirs"], "is there and is not headwork's; choose an empty folder"),
        (["--single", "bench.pdf"], "bench.pdf is no name for a page"),
        (["--single", "dir.html"], "dir.html is a folder"),
    ],
)
def test_a_wrong_place_is_refused_before_anything_is_fetched(
    bare: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(bare)
    Path("file").touch()
    Path("theirs").mkdir()
    Path("dir.html").mkdir()
    Path("theirs", "index.html").write_text("my own page")
    result = CliRunner().invoke(app, ["site", *arguments])
    assert isinstance(result.exception, HeadworkError)
    assert said in str(result.exception)
    assert Path("theirs", "index.html").read_text() == "my own page"


def test_a_sheet_of_ones_own_is_read_before_anything_is_fetched(bare: Path) -> None:
    for name, said in [("two-heads.toml", "two sheets would be called 'two-heads'"), ("none.toml", "none.toml")]:
        if name == "two-heads.toml":
            (bare / name).write_text('formula = "dot_product"')
        with pytest.raises(HeadworkError, match=said):
            write_site(bare / "out", [str(bare / name)])
    assert not (bare / "out").exists()


def test_a_site_is_written_again_over_itself(bare: Path) -> None:
    """Ours is known by its mark; without npm it then fails for another reason."""
    (bare / "out").mkdir()
    (bare / "out" / "index.html").write_text(MADE)
    with pytest.raises(HeadworkError, match="npm is needed"):
        write_site(bare / "out")
    assert os.listdir(bare / "out") == ["index.html"]
