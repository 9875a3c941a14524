"""The command `doctor`: what was chosen on this machine and why, and what is missing."""

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import headwork
from headwork.extras import EXTRAS, how_to_install


def doctor() -> None:
    """Say what headwork runs on here: kernel, CPU, threads, packages found, and what each missing one would add."""
    from headwork.cli.terminal import show, width
    from headwork.render.blocks import Table, Title
    from headwork.render.text import pieces

    tables = [
        Table(((title,), ("",)), tuple(((name,), (found,)) for name, found in rows), left=2)
        for title, rows in (("this machine", _machine()), ("package", _packages()))
    ]
    show(pieces([Title(f"headwork {headwork.__version__}"), *tables], width()))


def _machine() -> Iterator[tuple[str, str]]:
    from headwork.engine.backend import backend

    chosen = backend()
    yield "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    yield "attention runs", f"in the kernel for {chosen.cpu}" if chosen.native else f"in NumPy: {chosen.reason}"
    yield "threads", f"{chosen.threads}, by {chosen.runtime}"
    for name in ("HEADWORK_CPU", "HEADWORK_THREADS"):
        if name in os.environ:
            yield name, f"set to {os.environ[name]}"


def _packages() -> Iterator[tuple[str, str]]:
    for package, (_, adds) in EXTRAS.items():
        try:
            yield package, f"{version(package)}: {adds}"
        except PackageNotFoundError:
            yield package, f"missing; it would add {adds} ({how_to_install(package)})"
