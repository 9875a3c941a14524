"""The bench as plain files: a folder for any host, which needs none after the first visit, or one file for a disk."""

import base64
import gzip
import hashlib
import json
import os
import re
from collections.abc import Sequence
from importlib import metadata, resources
from pathlib import Path

import headwork
from headwork.errors import HeadworkError
from headwork.sheets.load import load
from headwork.sheets.sheet import Sheet
from headwork.sheets.shelf import built_in, summaries
from headwork.web.archives import AT_ONCE, LOCK, Say, archives
from headwork.web.page import assets, document, view
from headwork.web.pyodide import FILES, VERSION, pyodide
from headwork.web.tables import table_of

FIRST = "two-heads"  # what is open where no sheet of the teacher's own is given
MADE = '<meta name="generator" content="headwork site">'
# Nothing from elsewhere; Python is WebAssembly; a matrix's own style is in its element.
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'"
)
Files = dict[str, bytes]


def write_site(folder: Path, own: Sequence[str] = (), given: Path | None = None, say: Say = lambda _: None) -> Files:
    """Write the bench, the built-in sheets and a teacher's own into a folder; return what was written, by name."""
    _check(folder)
    files = site(own, given, say)
    say(f"writing {folder}")
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            whole = path.with_name(f".{path.name}.part")
            whole.write_bytes(content)
            os.replace(whole, path)
    except OSError as error:
        raise HeadworkError(f"cannot write to {folder}: {error.strerror}; choose another folder") from None
    return files


def site(own: Sequence[str] = (), given: Path | None = None, say: Say = lambda _: None) -> Files:
    """Every file of the site, by name."""
    files = {**sheets(own, say), **python(given, say)}
    page = assets()
    service = page.pop("service.js").decode()
    files |= {**page, "worker.js": files["worker.js"], "LICENCES.txt": licences()}
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    files["index.html"] = first_page(own, f"{MADE}\n{policy}").encode()
    files["service.js"] = _service(service, files).encode()
    return files


def python(given: Path | None, say: Say) -> Files:
    """The worker and what it loads."""
    say(f"fetching Pyodide {VERSION} with npm: once, then it is kept")
    folder = pyodide(given)
    parts = {f"{name}.bin": content for name, content in archives(folder, say).items()}
    return {
        "worker.js": worker(folder).encode(),
        "pyodide.asm.wasm": (folder / "pyodide.asm.wasm").read_bytes(),
        **parts,
    }


def worker(folder: Path) -> str:
    """Pyodide and our own lines as one plain script, for a page from file:// may start no other kind of worker."""
    module = (folder / "pyodide.asm.mjs").read_text("utf-8")
    module = module.replace("import.meta.url", "self.location.href").replace("export default _createPyodideModule;", "")
    loader = re.sub(r"export\s*\{.*", "", (folder / "pyodide.mjs").read_text("utf-8"), flags=re.S)
    loading = re.search(r"export\s*\{\s*(\w+) as loadPyodide", (folder / "pyodide.mjs").read_text("utf-8"))
    assert loading is not None, f"a file whose hash is {FILES['pyodide.mjs']} says what it exports"
    return "\n".join(
        (
            f"// Pyodide {VERSION} (MPL-2.0, see LICENCES.txt; its source is the npm package), then headwork's worker.",
            "self.importScripts = () => { throw new Error('as in a module'); }; // Pyodide refuses what has it",
            f"const LOCK = {json.dumps({**LOCK, 'packages': {}})};",
            f"const VERSION = {json.dumps(headwork.__version__)};",
            f"const createPyodideModule = (() => {{ {module}\nreturn _createPyodideModule; }})();",
            f"const loadPyodide = (() => {{ {loader}\nreturn {loading[1]}; }})();",
            assets()["worker.js"].decode(),
        )
    )


def sheets(own: Sequence[str], say: Say) -> Files:
    """Every sheet worked beforehand: what the page would be told if it asked for it."""
    found = _sheets(own)
    listed = [
        *((name, sheet.summary or sheet.title) for name, sheet in found.items() if name not in built_in()),
        *summaries(),
    ]
    files = {"prepared/sheets.json": _json({"sheets": listed})}
    for name, sheet in found.items():
        say(f"working {name}")
        table = table_of(sheet)
        files[f"prepared/{name}.json"] = _json({"table": table, "html": view(table)})
    return files


def first_page(own: Sequence[str], head: str) -> str:
    """The page with its first sheet in it: a teacher's own, where there is one."""
    name, sheet = next(iter(_sheets(own).items())) if own else (FIRST, load(FIRST))
    return document(table_of(sheet), name, head)


def _sheets(own: Sequence[str]) -> dict[str, Sheet]:
    """By the name that a link opens them with: a file's own, without its ending."""
    found: dict[str, Sheet] = {}
    for given in own:
        name = re.sub(r"[^\w-]+", "-", Path(given).stem)
        if name in found or name in built_in():
            raise HeadworkError(f"two sheets would be called '{name}'; give {given} another file name")
        found[name] = load(given)
    return {**found, **{name: load(name) for name in built_in()}}


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _service(source: str, files: Files) -> str:
    """The service worker knows the files by name, and by a digest that changes with any of them."""
    digest = hashlib.sha256(b"".join(hashlib.sha256(files[name]).digest() for name in sorted(files))).hexdigest()[:12]
    version, names = json.dumps(f"{headwork.__version__} {digest}"), json.dumps(["./", *sorted(files)])
    return f"const VERSION = {version};\nconst FILES = {names};\n{source}"


def _check(folder: Path) -> None:
    """A folder that is somebody's own site is not written over."""
    if folder.exists() and not folder.is_dir():
        raise HeadworkError(f"{folder} is a file; a site is a folder, and --single FILE writes one file")
    index = folder / "index.html"
    if index.exists() and MADE not in index.read_text("utf-8", "replace"):
        raise HeadworkError(f"{index} is there and is not headwork's; choose an empty folder, or a new one inside it")


def licences() -> bytes:
    """Whose work the site carries, and under which licence."""
    own = resources.files("headwork.web") / "licences"
    texts = [("Pyodide " + VERSION, (own / "MPL-2.0.txt").read_text("utf-8"))]
    texts += [("Python's standard library", (own / "PSF-2.0.txt").read_text("utf-8"))]
    texts += [(f"{name} {metadata.version(name)}", _licence(name)) for name in ("mpmath", "sympy")]
    return "\n\n".join(f"{title}\n{'=' * len(title)}\n\n{text.strip()}" for title, text in texts).encode() + b"\n"


def _licence(name: str) -> str:
    """As the package itself brings it."""
    files = [file for file in metadata.files(name) or () if file.name.upper().startswith(("LICENSE", "COPYING"))]
    return "\n\n".join(file.read_text("utf-8") for file in files) or "BSD 3-clause; see the project's page."


# As one file.

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


def single(own: Sequence[str], given: Path | None, say: Say) -> str:
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
