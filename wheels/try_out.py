"""The second half of `make wheels`: each wheel installed where no compiler is, and the suite's quick part run there.

Pythons of this machine get a virtual environment whose PATH holds nothing else. Other versions, and AArch64 under qemu,
come from Debian: a folder with that release's Python and nothing to compile with, made by mmdebstrap, entered by bwrap.

    python wheels/try_out.py DIST [WORD…]     # only the places whose name holds all these words
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent.parent
ROOTS = HERE / "build" / "roots"  # kept: they take minutes to make
TOOLS = ("pytest", "hypothesis", "ml_dtypes")
ENGINE = (
    *("arrays", "backward", "corners", "decode", "errors", "options", "packed", "paged_cache", "partial"),
    *("short_call", "sizes", "threads"),
)
SUITE = [*(f"tests/engine/test_{name}.py" for name in ENGINE), "tests/test_graph.py", "tests/marking/test_mark.py"]
# An emulated machine is some twenty times slower: the suite would take it the better part of an hour. So it tries every
# entry of the kernel once, in every type and on small arrays, with NaN, infinities and strides. What it leaves out are
# drawn cases, long rows and pure Python, which the other places run.
EVERY_ENTRY = [
    "tests/engine/test_arrays.py::test_unaligned_and_strided_data",
    "tests/engine/test_arrays.py::test_the_short_way_and_the_long_way_agree",
    "tests/engine/test_backward.py::test_awkward_sizes[59-97-33-65-float32]",
    "tests/engine/test_backward.py::test_awkward_sizes[200-1-16-16-float64]",
    "tests/engine/test_backward.py::test_awkward_sizes[200-1-16-16-float16]",
    "tests/engine/test_backward.py::test_awkward_sizes[200-1-16-16-bfloat16]",
    "tests/engine/test_corners.py",
    "tests/engine/test_decode.py::test_pools_of_any_strides_are_read_where_they_lie",
    "tests/engine/test_packed.py",
    "tests/engine/test_paged_cache.py::test_a_fork_takes_no_room_until_it_goes_on",
    "tests/engine/test_partial.py::test_merging_in_place",
    "tests/engine/test_partial.py::test_spans_that_share_keys",
    "tests/engine/test_partial.py::test_the_gradients_of_packed_sequences",
    "tests/engine/test_sizes.py::test_log_sum_and_weights",
    "tests/engine/test_sizes.py::test_narrow_keys_and_values_with_wide_queries",
    "tests/engine/test_threads.py::test_packed_batches_too",
]
EMULATED = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
QEMU = Path("/usr/lib/binfmt.d/qemu-aarch64.conf")
ARM = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Place:
    """Where a wheel is tried: a Python of this machine, or one of a Debian release."""

    python: str
    machine: str = "x86_64"
    debian: str = ""
    pure: bool = False

    @property
    def emulated(self) -> bool:
        return self.machine != os.uname().machine

    def __str__(self) -> str:
        kind = "pure" if self.pure else self.machine
        return f"Python {self.python} {kind}" + (f", Debian {self.debian}" if self.debian else "")


PLACES = [
    Place("3.11"),
    Place("3.12"),
    Place("3.13"),
    Place("3.14", debian="forky"),
    Place("3.11", pure=True),
    Place("3.11", "aarch64", "bookworm"),
    Place("3.13", "aarch64", "trixie"),
    Place("3.14", "aarch64", "forky"),
]


def run(*command: str | Path, **options: object) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,  # type: ignore[call-overload]  # env and cwd
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout[-6000:]}\nfailed: {' '.join(map(str, command))}")
    return str(done.stdout)


def wheel_for(place: Place, dist: Path) -> Path:
    compiled = "cp311-cp311" if place.python == "3.11" else "cp312-abi3"
    (wheel,) = dist.glob(f"headwork-*-{'py3-none-any' if place.pure else f'{compiled}-*{place.machine}'}.whl")
    return wheel


def root_of(place: Place) -> Path:
    return ROOTS / f"{place.debian}-{place.machine}"


def made(root: Path) -> bool:
    return (root / "usr" / "bin" / "python3").exists()


def ask_for_tools(places: list[Place]) -> None:
    """End the program where a place cannot be entered: now, and not when all wheels are built."""
    debian = [place for place in places if place.debian]
    wanted = {
        "mmdebstrap": not shutil.which("mmdebstrap") and not all(made(root_of(place)) for place in debian),
        "bubblewrap": not shutil.which("bwrap") and bool(debian),
        "qemu-user-static": not (EMULATED.exists() or QEMU.exists()) and any(place.emulated for place in places),
    }
    missing = [package for package, lacking in wanted.items() if lacking]
    if missing:
        raise SystemExit(f"to try the wheels out: apt-get install {' '.join(missing)}")


def debian_root(place: Place) -> Path:
    """A folder with a Debian release's Python, nothing configured: all that is wanted is to start it."""
    root = root_of(place)
    if not made(root):
        ROOTS.mkdir(parents=True, exist_ok=True)
        # A mirror's copy of a release in the making may be older than the date until which it was said to be valid.
        options = ("--mode=root", "--variant=extract", '--aptopt=Acquire::Check-Valid-Until "false"')
        packages = (
            "--include=python3,python3-venv,ca-certificates,libc-bin,coreutils,dash,base-files,libgcc-s1,libstdc++6"
        )
        run("mmdebstrap", *options, f"--arch={ARM[place.machine]}", packages, place.debian, root)
    # pip reads certificates even where it asks nobody; the package that brings them joins them when it is configured.
    joined = root / "etc" / "ssl" / "certs" / "ca-certificates.crt"
    joined.parent.mkdir(parents=True, exist_ok=True)
    authorities = sorted((root / "usr" / "share" / "ca-certificates").rglob("*.crt"))
    joined.write_bytes(b"".join(path.read_bytes() for path in authorities))
    return root


def emulate() -> None:
    """AArch64 programs start by themselves once the system knows who runs them."""
    if not EMULATED.exists():
        if not EMULATED.with_name("register").exists():
            run("mount", "-t", "binfmt_misc", "none", EMULATED.parent)
        EMULATED.with_name("register").write_text(QEMU.read_text())


def entered(place: Place, work: Path) -> tuple[list[str], dict[str, str]]:
    """What to put before a command so that it runs in the place, and its environment; `work` keeps its name there."""
    env = {"PATH": f"{work}/env/bin", "HOME": str(work), "COLUMNS": "100", "LANG": "C.UTF-8"}
    if not place.debian:
        return [], env
    if place.emulated:
        emulate()
    root = debian_root(place)
    (root / str(work).lstrip("/")).mkdir(parents=True, exist_ok=True)
    inside = ["bwrap", "--bind", str(root), "/", "--bind", str(work), str(work), "--proc", "/proc", "--dev", "/dev"]
    return [*inside, "--chdir", str(work), "--unshare-pid", "--"], env | {"PATH": f"{work}/env/bin:/usr/bin:/bin"}


def fetch(place: Place, wheel: Path, into: Path) -> None:
    """Everything the wheel and the suite need, for a place that has no network: nothing that must be compiled."""
    platforms = [f"--platform=manylinux_{glibc}_{place.machine}" for glibc in ("2_28", "2_27", "2_17")]
    version = ["--python-version", place.python, "--implementation", "cp", "--only-binary=:all:"]
    stable = [f"--abi={abi}" for abi in (f"cp{place.python.replace('.', '')}", "abi3", "none")]
    run(sys.executable, "-m", "pip", "download", "-q", "-d", into, *platforms, *version, *stable, wheel, *TOOLS)


def python_of(place: Place) -> str | None:
    """The place's Python, if it has one that starts: a name on PATH may lead to a version that was never installed."""
    if place.debian:
        return f"/usr/bin/python{place.python}"
    found = shutil.which(f"python{place.python}")
    if found is None:
        return None
    # Itself, not pyenv's stand-in, which asks the environment for a version: a place has an environment of its own.
    itself = subprocess.run([found, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
    return itself.stdout.strip() if itself.returncode == 0 else None


def installed(place: Place, wheel: Path, work: Path, python: str) -> float:
    """Make an environment, install the wheel into it, then what the suite needs; the seconds that the wheel took."""
    before, env = entered(place, work)
    run(*before, python, "-m", "venv", work / "env", env=env | ({} if place.debian else {"PATH": os.environ["PATH"]}))
    pip = [*before, str(work / "env/bin/python"), "-m", "pip", "install", "-q", "--only-binary=:all:"]
    if place.debian:
        fetch(place, wheel, work / "fetched")
        pip += ["--no-index", "--find-links", str(work / "fetched")]
        pip += ["--no-compile"] if place.emulated else []  # SymPy alone would take minutes
        wheel = Path(shutil.copy(wheel, work))
    else:
        index = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
        env |= {"HOME": os.environ.get("HOME", "")} | index
    start = time.perf_counter()
    run(*pip, wheel, env=env)
    seconds = time.perf_counter() - start
    run(*pip, *TOOLS, env=env)
    return seconds


def suite(place: Place, work: Path) -> str:
    """What pytest says last of the suite's quick part, run against the installed package."""
    before, env = entered(place, work)
    for name in ("tests", "bench", "wheels", "pyproject.toml"):
        source = HERE / name
        shutil.copytree(source, work / name) if source.is_dir() else shutil.copy(source, work)
    chosen = EVERY_ENTRY if place.emulated else SUITE
    tests = [*before, str(work / "env/bin/python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
    return run(*tests, env=env, cwd=work).strip().splitlines()[-1]


def try_out(place: Place, dist: Path) -> str:
    """A line that tells how it went; what goes wrong ends the program."""
    wheel, python = wheel_for(place, dist), python_of(place)
    if python is None:
        return f"{place}: not on this machine, not tried"
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        seconds = installed(place, wheel, work, python)
        before, env = entered(place, work)
        chosen = run(*before, work / "env/bin/python", "-c", CHOSEN, env=env, cwd=work).strip()
        if chosen.startswith("numpy") != place.pure:
            raise SystemExit(f"{place}: attention runs in {chosen}")
        return f"{place}: {wheel.name} installed in {seconds:.0f} s, {chosen}; {suite(place, work)}"


CHOSEN = """
from headwork.engine import backend
found = backend()
print(found.cpu, "by", found.threads, found.runtime, found.reason)
"""


if __name__ == "__main__":
    chosen = [place for place in PLACES if all(word in str(place) for word in sys.argv[2:])]
    ask_for_tools(chosen)
    for somewhere in chosen:
        print(try_out(somewhere, Path(sys.argv[1]).resolve()), flush=True)
