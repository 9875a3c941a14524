"""Which code works attention out here: the compiled kernel for this CPU, or NumPy.

`HEADWORK_CPU` names one (`baseline`, `avx2`, `avx512`, `avx512_bf16`, `amx` or `numpy`), `HEADWORK_THREADS` how many
threads it uses; both are read when this module is first imported.
"""

import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

from headwork.errors import HeadworkError

CPUS = ("baseline", "avx2", "avx512", "avx512_bf16", "amx", "numpy")
MOST_THREADS = 4096  # more than any machine has, and safe to hand on


@dataclass(frozen=True)
class Backend:
    """What works attention out: `cpu` is an instruction set or "numpy", `reason` why it is not the kernel."""

    cpu: str
    threads: int
    runtime: str
    reason: str = ""

    @property
    def native(self) -> bool:
        return self.cpu != "numpy"


def backend() -> Backend:
    """What `attention` runs on: `Backend(cpu="avx2", threads=2, runtime="openmp", reason="")`."""
    if kernel is None:
        return Backend("numpy", 1, "numpy", REASON)
    return Backend(kernel.cpu(), DEFAULT_THREADS or kernel.threads(), kernel.thread_runtime())


def _load() -> tuple[ModuleType | None, str]:
    wanted = os.environ.get("HEADWORK_CPU", "")
    if wanted and wanted not in CPUS:
        raise HeadworkError(f"HEADWORK_CPU is {wanted!r}. Choose {', '.join(CPUS)}, or leave it unset.")
    if wanted == "numpy":
        return None, "HEADWORK_CPU asks for NumPy"
    try:
        _native = import_module("headwork.engine._native")
    except ImportError as error:
        reason = f"no compiled kernel: {_why_not(error)}"
        if wanted:
            raise HeadworkError(f"HEADWORK_CPU is {wanted!r}, but there is {reason}.") from None
        return None, reason
    if wanted and not _native.use_cpu(wanted):
        raise HeadworkError(
            f"HEADWORK_CPU is {wanted!r}, which this machine cannot run. Leave it unset: the best is chosen."
        )
    return _native, ""


def _why_not(error: ImportError) -> str:
    """What the build left on record, or what can be said without it."""
    record = Path(__file__).with_name("no_kernel.txt")
    if record.is_file():
        return record.read_text("utf-8").strip()
    if isinstance(error, ModuleNotFoundError):
        return "this wheel came without one, or its build failed (pip install -v says why)"
    return str(error)


def _threads() -> int:
    given = os.environ.get("HEADWORK_THREADS", "")
    if not given:
        return 0
    if not given.isdecimal() or len(given) > 4 or not 1 <= int(given) <= MOST_THREADS:
        short = given if len(given) <= 20 else f"{given[:20]}…"
        raise HeadworkError(f"HEADWORK_THREADS is {short!r}. Give a whole number of threads, 1 to {MOST_THREADS}.")
    return int(given)


kernel, REASON = _load()
DEFAULT_THREADS = _threads()
AHEAD = kernel is not None and kernel.linear_is_ahead()  # of the products that NumPy and torch bring
