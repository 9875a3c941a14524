"""How pip builds headwork: with the kernel; without it where any step of that fails, which one line then says.

scikit-build-core goes on without CMake only where a command failed, not where one is missing; and its output, of which
the first error is the reason, is not for us to see. So it is called once more from here.
"""

import os
import sys
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

from scikit_build_core import build as scikit
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

# No hook for metadata alone: before the build nobody knows whether the wheel will be one for this machine or for all.
__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

Settings = dict[str, Any] | None


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    name, reason = _with_or_without(scikit.build_wheel, wheel_directory, config_settings, metadata_directory)
    if reason:
        _keep(reason, Path(wheel_directory, name))
    return name


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    return _with_or_without(scikit.build_editable, wheel_directory, config_settings, metadata_directory)[0]


def _with_or_without(
    build: Callable[..., str], directory: str, settings: Settings, metadata_directory: str | None
) -> tuple[str, str]:
    """The name of what was built, and why it is without the kernel if it is so because of an error."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        os.environ["TMPDIR"] = directory  # all that can be written here: the wheel goes there
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        try:
            with _output_to(said):
                return build(directory, settings, metadata_directory), ""
        except (Exception, SystemExit) as error:
            reason = _reason(said, error)
    print(f"headwork: {reason}; attention will run in NumPy", flush=True)
    # A wheel for every Python: what was asked of the compiled one does not fit it.
    pure = {name: value for name, value in (settings or {}).items() if name != "wheel.py-api"}
    return build(directory, {**pure, "wheel.cmake": "false"}, metadata_directory), reason


def _keep(reason: str, wheel: Path) -> None:
    """In the file where `headwork doctor` looks for it: pip shows nothing of a build that succeeds."""
    name, content = "headwork/engine/no_kernel.txt", f"{reason}\n".encode()
    digest = urlsafe_b64encode(sha256(content).digest()).decode().rstrip("=")
    with ZipFile(wheel) as packed:
        held = [(entry, packed.read(entry)) for entry in packed.infolist()]
    with ZipFile(wheel, "w", ZIP_DEFLATED) as packed:
        packed.writestr(name, content)
        for entry, old in held:
            listed = f"{name},sha256={digest},{len(content)}\n" if entry.filename.endswith(".dist-info/RECORD") else ""
            packed.writestr(entry, listed.encode() + old)


@contextmanager
def _output_to(file: IO[str]) -> Iterator[None]:
    """What this process and those it starts print goes to a file, and at the end to where it would have gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, original in enumerate(kept, 1):
            os.dup2(original, number)
            os.close(original)
        file.seek(0)
        print(file.read(), flush=True)


def _reason(said: IO[str], error: BaseException) -> str:
    """The first error of a compiler or of CMake; else what Python says."""
    said.seek(0)
    lines = said.read().splitlines()
    for at, line in enumerate(lines):
        if ": error: " in line:
            return f"the kernel does not compile ({line.partition(': error: ')[2].strip()})"
        if line.startswith("CMake Error"):
            told = takewhile(lambda part: not part or part.startswith(" "), lines[at + 1 :])
            more = " ".join(" ".join(told).split())
            return f"CMake failed ({more[:200] or line.strip()})"
    return f"the kernel could not be built ({str(error) or type(error).__name__})"
