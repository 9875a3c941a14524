"""The Python that a page needs, as archives: the standard library, mpmath, headwork's teaching half, and SymPy apart.

Each is compiled by Pyodide's own Python under node and kept in the user's cache under a name that its sources give it,
so only what changed is compiled again.
"""

import gzip
import hashlib
import io
import json
import lzma
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import headwork
from headwork.errors import HeadworkError
from headwork.web.pyodide import VERSION, cache, program

# Of headwork, what no page asks for.
NOT_IN_A_PAGE = (
    *("engine", "torch", "jax", "inspecting", "cli", "testing.py", "layer_on_page.py", "looking", "marking/graders"),
    *("web/static", "web/answering.py", "web/serve.py", "web/pyodide.py", "web/archives.py", "web/site.py"),
    *("web/pack.py", "readings/values.py"),
)
PHYSICS = ("biomechanics", "continuum_mechanics", "control", "hep", "mechanics", "optics", "quantum", "vector")
# Of SymPy, what nothing of ours leads to.
NOT_OF_SYMPY = (
    *("categories", "codegen", "crypto", "diffgeom", "holonomic", "liealgebras", "parsing/autolev", "parsing/c"),
    *("parsing/fortran", "parsing/latex", "sandbox", "stats", "testing", "unify", "vector", "tensor/array/expressions"),
    *("utilities/_compilation", *(f"physics/{field}" for field in PHYSICS)),
)
TESTS = {"tests", "benchmarks"}
# Of the standard library, what is imported for things that no page does: processes, networks, terminals.
NOT_OF_PYTHON = (
    *("_android_support", "_ios_support", "_pydatetime", "_pydecimal", "_pyio", "_pyrepl", "argparse", "cProfile"),
    *("cmd", "code", "doctest", "email", "ftplib", "gettext", "http", "mimetypes", "multiprocessing", "netrc"),
    *("optparse", "pdb", "platform", "plistlib", "profile", "pstats", "pty", "pydoc", "rlcompleter", "socketserver"),
    *("ssl", "tarfile", "tty", "unittest", "urllib", "webbrowser", "xml"),
)
# Modules that Python's own C code imports, which no source says.
BY_PYTHON_ITSELF = ("_pylong", "_strptime", "encodings.ascii", "encodings.latin_1", "encodings.idna", "zipimport")
LOCK = {"info": {"abi_version": "2026_0", "arch": "wasm32", "platform": "emscripten_5_0_3", "python": "3.14.2"}}
AT_ONCE = ("python", "headwork")  # what an edit needs; mpmath and SymPy come when something asks for them
Files = dict[str, bytes]
Say = Callable[[str], None]


def archives(pyodide: Path, say: Say) -> dict[str, bytes]:
    """Name → archive, compressed as the page takes it: what it starts with by gzip, which a browser undoes while Python
    starts, the rest by xz."""
    sources = {"headwork": _headwork(), "mpmath": _package("mpmath"), "sympy": _package("sympy", NOT_OF_SYMPY)}
    wanted = {name: _Job("package", name, _stored(files), {}) for name, files in sources.items()}
    _make([job for job in wanted.values() if not job.made()], pyodide, say)
    library = (pyodide / "python_stdlib.zip").read_bytes()
    imported = {name for job in wanted.values() for name in job.imports()} & _modules(library)
    options = {"roots": sorted(imported | set(BY_PYTHON_ITSELF)), "left_out": list(NOT_OF_PYTHON)}
    python = _Job("standard_library", "python", library, options)
    _make([python] if not python.made() else [], pyodide, say)
    return {name: job.content() for name, job in {"python": python, **wanted}.items()}


class _Job:
    """One archive to be made, or made before: its name says what went into it."""

    def __init__(self, call: str, name: str, source: bytes, options: dict[str, Any]) -> None:
        self.call, self.name, self.source, self.options = call, name, source, options
        code = _beside("pack.py").read_bytes()
        parts = [source, json.dumps([options, name in AT_ONCE], sort_keys=True).encode(), code, VERSION.encode()]
        self.key = (
            f"{name}-{hashlib.sha256(b''.join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:24]}"
        )

    @property
    def _kept(self) -> Path:
        return cache() / "archives" / f"{self.key}.bin"

    def made(self) -> bool:
        return self._kept.is_file() and self._kept.with_suffix(".json").is_file()

    def content(self) -> bytes:
        return self._kept.read_bytes()

    def imports(self) -> list[str]:
        return [str(name) for name in json.loads(self._kept.with_suffix(".json").read_text("utf-8"))]

    def keep(self, archive: Path, names: Path) -> None:
        """Compressed, in the cache; the archive last, for it says that all is there."""
        content = archive.read_bytes()
        if self.name in AT_ONCE:
            content = gzip.compress(content, 9, mtime=0)
        else:
            content = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
        archive.write_bytes(content)
        self._kept.parent.mkdir(parents=True, exist_ok=True)
        os.replace(names, self._kept.with_suffix(".json"))
        os.replace(archive, self._kept)


def _make(jobs: list[_Job], pyodide: Path, say: Say) -> None:
    """Let Pyodide compile what the cache does not have."""
    if not jobs:
        return
    node = program("node", "to compile Python for the browser")
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        desk = Path(folder)
        written = [_written(job, desk) for job in jobs]
        task = {"pyodide": str(pyodide.resolve()), "lock": {**LOCK, "packages": {}}, "program": str(_beside("pack.py"))}
        (desk / "job.json").write_text(json.dumps({**task, "jobs": written}), "utf-8")
        for job, (archive, names) in zip(jobs, _run(node, desk, written, jobs, say), strict=True):
            job.keep(archive, names)


def _written(job: _Job, desk: Path) -> dict[str, Any]:
    source = desk / f"{job.name}.zip"
    source.write_bytes(job.source)
    places = {"source": str(source), "archive": str(desk / f"{job.name}.out"), "names": str(desk / f"{job.name}.json")}
    return {"call": job.call, "options": job.options, **places}


def _run(
    node: str, desk: Path, written: list[dict[str, Any]], jobs: list[_Job], say: Say
) -> Iterator[tuple[Path, Path]]:
    """Archive and names of each job, as they are made."""
    command = [node, str(_beside("pack.mjs")), str(desk / "job.json")]
    with (
        (desk / "said").open("w") as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process,
    ):
        assert process.stdout is not None
        for job, places in zip(jobs, written, strict=True):
            say(f"compiling {job.name} for the browser: once, then it is kept")
            if not process.stdout.readline().strip():
                last = " ".join((desk / "said").read_text("utf-8", "replace").split())[-300:]
                raise HeadworkError(
                    f"node could not compile {job.name} for the browser (it said: {last}); it takes Node.js 20 or newer"
                )
            yield Path(places["archive"]), Path(places["names"])


def _headwork() -> Files:
    """The teaching half and its data."""
    return _files(Path(headwork.__file__).parent, NOT_IN_A_PAGE, (".py", ".toml", ".css", ".js", ".svg"))


def _package(name: str, left_out: tuple[str, ...] = ()) -> Files:
    """A pure-Python package as it is installed here, without its tests."""
    root = Path(str(import_module(name).__file__)).parent
    return _files(root, left_out, (".py",))


def _files(root: Path, left_out: tuple[str, ...], endings: tuple[str, ...]) -> Files:
    """The files of a package by their path from its parent, without those folders and modules."""
    found: Files = {}
    for path in sorted(root.rglob("*")):
        within = path.relative_to(root)
        above = {within.as_posix(), *(parent.as_posix() for parent in within.parents)}
        if path.suffix in endings and not above & set(left_out) and not set(within.parts) & TESTS and path.is_file():
            found[f"{root.name}/{within.as_posix()}"] = path.read_bytes()
    return found


def _modules(library: bytes) -> set[str]:
    """The names of a library's modules."""
    with zipfile.ZipFile(io.BytesIO(library)) as archive:
        paths = [name.removesuffix(".py") for name in archive.namelist() if name.endswith(".py")]
    return {path.removesuffix("/__init__").replace("/", ".") for path in paths}


def _stored(files: Files) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        for name, content in sorted(files.items()):
            out.writestr(zipfile.ZipInfo(name), content)
    return archive.getvalue()


def _beside(name: str) -> Path:
    """A file of this package as a path that another program can open."""
    return Path(str(resources.files("headwork.web") / name))
