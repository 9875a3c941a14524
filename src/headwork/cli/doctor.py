"""The command `doctor`: what was chosen on this machine and why, and what is missing."""

import os
from collections.abc import Iterator

import typer

import headwork
from headwork.extras import EXTRAS, ways_to_install


def doctor() -> None:
    """Say what headwork runs on here, and what is missing. It names what each missing package would add."""
    from headwork.cli.terminal import show, width
    from headwork.render.blocks import Table, Title
    from headwork.render.text import pieces

    packages = list(_packages())
    tables = [
        Table(_prose(header), tuple(map(_prose, rows)), left=len(header))
        for header, rows in (
            (("this machine", ""), _machine()),
            (("package", "version", "extra", "what it adds"), packages),
        )
    ]
    missing = [package for package, found, *_ in packages if found == "missing"]
    show(pieces([Title(f"headwork {headwork.__version__}"), *tables], width()))
    if missing:
        typer.echo("\nExtras bring what is missing:")
        for where, command in ways_to_install(*missing):
            typer.echo(f"\n{where}:\n{command}" if where else command)  # in one line, however long: it will be copied


def _prose(cells: tuple[str, ...]) -> tuple[tuple[str], ...]:
    return tuple((cell,) for cell in cells)


def _machine() -> Iterator[tuple[str, str]]:
    import platform

    from headwork.engine.backend import backend

    chosen = backend()
    yield "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    if not chosen.native:
        yield "attention runs", f"in NumPy: {chosen.reason}"
        return
    why = _asked("HEADWORK_CPU") or "the widest vectors it has for this CPU"
    yield "attention runs", f"in the kernel for {chosen.cpu}: {why}"
    why = _asked("HEADWORK_THREADS") or _asked("OMP_NUM_THREADS") or "one for every CPU that this process may use"
    yield "threads", f"{chosen.threads}, by {chosen.runtime}: {why}"


def _asked(name: str) -> str:
    return f"as {name} asks" if os.environ.get(name) else ""


def _packages() -> Iterator[tuple[str, str, str, str]]:
    from importlib.metadata import PackageNotFoundError, version

    for package, (extra, adds) in EXTRAS.items():
        try:
            yield package, version(package), extra, adds
        except PackageNotFoundError:
            yield package, "missing", extra, adds
