"""Sources in, an archive of compiled modules out. Runs inside Pyodide, for only its own Python makes its .pyc.

Line tables are flattened (every instruction is on its function's first line), for nobody reads them in a page: they are
half of what is left of a module after compression.
"""

import ast
import io
import zipfile
from collections.abc import Iterable, Iterator
from types import CodeType

EPOCH = (1980, 1, 1, 0, 0, 0)  # the same sources give the same archive
_FURTHEST = 8  # instructions in one entry of a line table
_NO_COLUMNS = 13  # the kind of entry that has a line and no columns


def flat(code: CodeType) -> CodeType:
    """The same code with every instruction on its first line, and the code within it likewise."""
    whole, rest = divmod(len(code.co_code) // 2, _FURTHEST)
    entries = [_FURTHEST] * whole + [rest] * bool(rest)
    table = b"".join(bytes((0x80 | _NO_COLUMNS << 3 | length - 1, 0)) for length in entries)
    inner = tuple(flat(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_linetable=table, co_consts=inner)


def compiled(source: bytes, name: str) -> bytes:
    """A .pyc that Python takes as it is, without looking for its source."""
    from importlib._bootstrap_external import _code_to_hash_pyc  # type: ignore[attr-defined]  # py_compile's own way

    code = compile(source, name, "exec", dont_inherit=True, optimize=2)
    return bytes(_code_to_hash_pyc(flat(code), bytes(8), checked=False))


def packed(files: Iterable[tuple[str, bytes]]) -> bytes:
    """An archive of the files, modules compiled; stored, for what compresses it whole does it better."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        for name, content in sorted(files):
            module = name.endswith(".py")
            entry = zipfile.ZipInfo(f"{name}c" if module else name, EPOCH)
            out.writestr(entry, compiled(content, name) if module else content)
    return archive.getvalue()


def imported(source: bytes, package: str) -> Iterator[str]:
    """Every name that a module may import, wherever in it: `from a import b` gives a and a.b."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def imports_of(files: Iterable[tuple[str, bytes]]) -> list[str]:
    """What the modules of a package import, itself included."""
    modules = [(path, source) for path, source in files if path.endswith(".py")]
    return sorted(
        {name for path, source in modules for name in imported(source, path.rpartition("/")[0].replace("/", "."))}
    )


def needed(library: dict[str, bytes], roots: Iterable[str], left_out: Iterable[str]) -> dict[str, bytes]:
    """The modules of the standard library that these lead to, those inside functions too, less some."""
    homes = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in library}
    kept: dict[str, bytes] = {}
    never = set(left_out)
    waiting = list(roots)
    while waiting:
        parts = waiting.pop().split(".")
        for module in (".".join(parts[: i + 1]) for i in range(len(parts))):
            path = homes.get(module)
            if path is None or path in kept or never & {module, parts[0]}:
                continue
            kept[path] = library[path]
            package = module if path.endswith("/__init__.py") else module.rpartition(".")[0]
            waiting += imported(library[path], package)
    return kept


def contents(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        return {name: source.read(name) for name in source.namelist() if not name.endswith("/")}


def package(archive: bytes) -> tuple[bytes, list[str]]:
    """A package's archive, and what it imports."""
    files = contents(archive)
    return packed(files.items()), imports_of(files.items())


def standard_library(archive: bytes, roots: Iterable[str], left_out: Iterable[str]) -> tuple[bytes, list[str]]:
    """What of the standard library these names and Pyodide's own start need."""
    import sys

    library = {name: source for name, source in contents(archive).items() if name.endswith(".py")}
    kept = needed(library, [*roots, *sys.modules], left_out)
    return packed(kept.items()), sorted(kept)
