"""What `make wheels` sends out, as far as it is seen quickly: it compiles for two CPUs itself, and emulates one."""

import subprocess
import sys
import tarfile
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import build
import pytest
import try_out

from headwork import engine
from tests.engine.test_native_source import needs

ROOT = Path(__file__).parent.parent
NAMES = [
    "headwork-0.1.0-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    "headwork-0.1.0-cp312-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    "headwork-0.1.0-cp311-cp311-manylinux2014_aarch64.manylinux_2_17_aarch64.whl",
    "headwork-0.1.0-cp312-abi3-manylinux2014_aarch64.manylinux_2_17_aarch64.whl",
    "headwork-0.1.0-py3-none-any.whl",
]


def tracked(*folders: str) -> set[str]:
    said = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=False)
    if said.returncode:
        pytest.skip("not a checkout: git does not know its files")
    return set(said.stdout.splitlines())


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked: all that a wheel is made of."""
    needs("scikit_build_core")
    folder = tmp_path_factory.mktemp("sdist")
    code = f"import sys; sys.path.insert(0, 'native'); import build_backend; build_backend.build_sdist({str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    return unpacked


def test_the_sdist_holds_what_is_built_and_nothing_that_was(source: Path) -> None:
    held = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    asked = tracked("src", "native", "wheels", "pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md")
    assert not asked - held
    assert not [name for name in held if name.endswith((".so", ".pyc")) or name.startswith((".ci", "bench", ".venv"))]


def test_a_wheel_without_the_kernel_from_the_sdist(source: Path, tmp_path: Path) -> None:
    """Installed alone in a folder, with the packages that are here, it solves a sheet and computes in NumPy."""
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), "-C", "wheel.cmake=false"]
    build.run(sys.executable, "-m", "pip", "wheel", *options, source)
    (wheel,) = tmp_path.glob("headwork-*-py3-none-any.whl")
    with ZipFile(wheel) as packed:
        names = set(packed.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = Parser().parsestr(packed.read(metadata).decode())
        packed.extractall(tmp_path / "site")
    package = {name.removeprefix("src/") for name in tracked("src")}
    assert {name for name in names if name.startswith("headwork/")} == package
    assert told["Requires-Python"] == ">=3.11"
    assert "headwork works multi-head attention out" in str(told.get_payload())
    code = (
        "import headwork, headwork.engine; print(headwork.__file__, headwork.__version__, "
        "headwork.engine.backend().cpu, headwork.solve('dot-product').problems[0]['output'].shape)"
    )
    env = {"PYTHONPATH": str(tmp_path / "site"), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith(str(tmp_path / "site")), done.stderr
    assert f"{told['Version']} numpy" in done.stdout


@pytest.mark.parametrize("place", try_out.PLACES, ids=str)
def test_every_place_tries_the_wheel_that_pip_would_take(place: try_out.Place, tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).touch()
    wheel = try_out.wheel_for(place, tmp_path).name
    if place.pure:
        assert wheel.endswith("py3-none-any.whl")
    else:
        assert place.machine in wheel
        assert ("cp311" if place.python == "3.11" else "abi3") in wheel


def test_every_wheel_is_tried_and_every_python_has_one() -> None:
    made = {(target.machine, target.tag) for target in build.TARGETS}
    tried = {(p.machine, "cp311-cp311" if p.python == "3.11" else "cp312-abi3") for p in try_out.PLACES if not p.pure}
    assert made == tried
    assert {place.python for place in try_out.PLACES} == {"3.11", "3.12", "3.13", "3.14"}


def test_the_compiler_is_not_asked_for_lists_of_what_is_included(tmp_path: Path) -> None:
    """With one zig compiles anew what it remembers: each kernel twice. All else comes through as it is."""
    (tmp_path / "c++").write_text(f'#!/bin/sh\n{build.WITHOUT_LISTS}printf "%s\\n" "$@"\n')
    given = ["-DX=1 2", "-MD", "-MT", "x.o", "-MF", "x y.d", "-o", "x.o", "-c", "x.cpp"]
    assert build.run("sh", tmp_path / "c++", *given).splitlines() == ["-DX=1 2", "-o", "x.o", "-c", "x.cpp"]


def test_what_a_build_lacks_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"cp311-cp311 needs Python 3\.11 with its headers \(python3\.11-dev\)"):
        build.interpreter(build.TARGETS[0])
    with pytest.raises(SystemExit, match=r"cp312-abi3 needs Python 3\.12 or a later one"):
        build.interpreter(build.TARGETS[1])


def test_a_python_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`which python3.12` finds pyenv's stand-in, and the message must not deny it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "python3.13").write_text("#!/bin/sh\necho 'pyenv: python3.13: command not found' >&2\nexit 127\n")
    (tmp_path / "python3.13").chmod(0o755)
    with pytest.raises(
        SystemExit, match=r"on PATH\.\n.*python3\.13 does not start: pyenv: python3\.13: command not found$"
    ):
        build.interpreter(build.TARGETS[1])


def test_what_is_missing_is_told_before_anything_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An hour later nobody would be there to read it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("ROOTS", "EMULATED", "QEMU"):
        monkeypatch.setattr(try_out, name, tmp_path / "nowhere")
    with pytest.raises(SystemExit, match=r"apt-get install mmdebstrap bubblewrap qemu-user-static$"):
        try_out.ask_for_tools(try_out.PLACES)
    try_out.ask_for_tools([place for place in try_out.PLACES if not place.debian])
    monkeypatch.setattr(build, "WORK", tmp_path / "work")
    with pytest.raises(SystemExit, match=r"needs Python 3\.11"):
        build.build_all(tmp_path / "dist", build.TARGETS)
    assert not list(tmp_path.iterdir())


def test_a_name_that_leads_to_no_python_is_no_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As pyenv leaves for the versions that are installed but not chosen."""
    monkeypatch.setenv("PATH", str(tmp_path))
    place = try_out.Place("3.12")
    for code, found in ((127, None), (0, "/versions/3.12/bin/python3.12")):
        (tmp_path / "python3.12").write_text(f"#!/bin/sh\necho /versions/3.12/bin/python3.12\nexit {code}\n")
        (tmp_path / "python3.12").chmod(0o755)
        assert try_out.python_of(place) == found, "the Python itself: the name asks for variables that a place lacks"


def test_the_suite_that_is_run_in_a_place_exists() -> None:
    assert all((ROOT / name).is_file() for name in try_out.SUITE)


def test_an_emulated_machine_tries_every_entry_of_the_kernel() -> None:
    """What it tries is there, is part of what the others try, and calls all that the engine computes."""
    tried = [name.partition("[")[0].partition("::") for name in try_out.EVERY_ENTRY]
    assert {file for file, _, _ in tried} <= set(try_out.SUITE)
    sources = {file: (ROOT / file).read_text("utf-8") for file, _, _ in tried}
    assert all(f"def {test}(" in sources[file] for file, _, test in tried if test)
    computes = {name for name in engine.__all__ if name.islower()} - {"backend", "quantize"}
    assert not [name for name in computes if not any(f"{name}(" in source for source in sources.values())]
