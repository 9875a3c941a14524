"""Pyodide, the Python that runs in a browser: fetched by name from its npm package, once, and checked byte for byte."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from headwork.errors import HeadworkError

VERSION = "314.0.7"
# What is used of the package, and its SHA-256.
FILES = {
    "pyodide.mjs": "6f1d60f7bf529beb300f0f47983c921d3982363640ba20af0e38efdddbc66109",
    "pyodide.asm.mjs": "f7cdc8ece80678ceb712f8e65ebe6d3a83203a180c399865f49612a051693635",
    "pyodide.asm.wasm": "cc36e3cab04fdfc9a63ff13eb52eae2b911bf46c025cc7b281f394bd3de1d5e6",
    "python_stdlib.zip": "fa1957e5777068fc4f7437f96d860ae2fbe9c19732ba06c84e004ec16dd7dd7a",
}
INSTEAD = f"or unpack the npm package pyodide {VERSION} yourself and give its folder with --pyodide"
SLOWEST = 600  # seconds for seven megabytes


def cache() -> Path:
    """Where this user's programs keep what they can make again."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headwork"


def pyodide(given: Path | None = None) -> Path:
    """A folder with Pyodide's files, each the one we know: the given one, the one fetched before, or fetched now."""
    if given is not None:
        _check(given)
        return given
    kept = cache() / f"pyodide-{VERSION}"
    if not all(_is(kept / name, digest) for name, digest in FILES.items()):
        _fetch(kept)
    return kept


def program(name: str, why: str) -> str:
    """The path of a program that must be installed."""
    found = shutil.which(name)
    if found is None:
        raise HeadworkError(f"{name} is needed {why}, and is not installed; install Node.js, which brings node and npm")
    return found


def _is(path: Path, digest: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _check(folder: Path) -> None:
    for name, digest in FILES.items():
        if not (folder / name).is_file():
            raise HeadworkError(f"{folder} has no {name}; --pyodide wants the npm package pyodide {VERSION}, unpacked")
        if not _is(folder / name, digest):
            raise HeadworkError(
                f"{folder / name} is not the file of pyodide {VERSION}, or was changed: its SHA-256 differs from the "
                "one we know; unpack the npm package of exactly that version"
            )


def _fetch(kept: Path) -> None:
    """Into the cache, all or nothing."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        desk = Path(folder)
        _unpack(_packed_by_npm(desk), desk / "pyodide")
        _check(desk / "pyodide")
        for name in FILES:  # one by one: another process may be doing the same
            kept.mkdir(exist_ok=True)
            os.replace(desk / "pyodide" / name, kept / name)


def _packed_by_npm(desk: Path) -> Path:
    """The package as npm hands it over, from wherever npm is told to take packages."""
    npm = program("npm", "to fetch Pyodide")
    command = [npm, "pack", f"pyodide@{VERSION}", "--silent", "--ignore-scripts", "--pack-destination", str(desk)]
    try:
        done = subprocess.run(command, cwd=desk, capture_output=True, text=True, timeout=SLOWEST, check=False)
    except subprocess.TimeoutExpired:
        raise HeadworkError(f"npm did not fetch Pyodide in {SLOWEST} seconds; try again, {INSTEAD}") from None
    found = next(desk.glob("pyodide-*.tgz"), None)
    if done.returncode or found is None:
        said = " ".join((done.stderr or done.stdout).split())[:300] or "nothing"
        raise HeadworkError(
            f"npm could not fetch pyodide {VERSION} (it said: {said}); check the network and what "
            f"`npm config get registry` says, {INSTEAD}"
        )
    return found


def _unpack(package: Path, folder: Path) -> None:
    folder.mkdir()
    with tarfile.open(package) as tar:
        for name in FILES:
            try:
                file = tar.extractfile(f"package/{name}")
            except KeyError:
                file = None
            if file is not None:
                (folder / name).write_bytes(file.read())
