"""Sheets, answers and command lines, legal, extreme and hostile: no traceback, no crash, nothing over 2 s.

    python bench/fuzz.py --count 100000 --seed 1

Every case runs through the command line's `main`, in this process, in a folder of its own. It must end with exit code
0 and what was asked for; with 1 where a proof fails; or with 2 and one message. What goes wrong is printed with its
number (`--case 17` runs that one alone) and its files are kept; mended, it belongs in tests/attacks/.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz_cases import Case
from fuzz_draws import KINDS, TEMPERS, case
from fuzz_sheets import toml_value
from typer.main import get_command

from headwork import cli

SECONDS = 2.0  # of the processor, which do not depend on who else is at work
WAITING = 60  # seconds on the clock, for what waits instead of working
MEMORY = 4 << 30
KEPT = Path("fuzz-found")
INSIDE = "input(s), not"  # of a step that was made wrong, which nobody but its maker can mend


class OutOfTime(BaseException):
    """The case took too long. Not an Exception: nothing may catch it on the way."""


@dataclass(frozen=True)
class Outcome:
    """How a case ended; `wrong` is empty when all is well."""

    code: int | None
    seconds: float
    output: str  # standard output and standard error
    wrong: str = ""


def run(found: Case) -> Outcome:
    """A case, run in the current folder."""
    for path, content in found.files.items():
        Path(path).write_bytes(content)
    out, err = io.StringIO(), io.StringIO()
    code: int | None = None
    wrong = ""
    start = time.process_time()
    try:
        with limited(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), arguments(found.arguments):
            cli.main()
    except SystemExit as end:
        code = 0 if end.code is None else int(end.code)
    except OutOfTime as limit:
        wrong = f"more than {limit}\n{traceback.format_exc(limit=-6)}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        wrong = traceback.format_exc(limit=-8)
    seconds = time.process_time() - start
    said = out.getvalue(), err.getvalue()
    return Outcome(code, seconds, "".join(said), wrong or amiss(found, code, *said))


def amiss(found: Case, code: int | None, out: str, err: str) -> str:
    """What is wrong with an ending that was in time."""
    if code == 2:
        ours = err.startswith(("headwork: ", "Usage: ")) and INSIDE not in err
        return "" if ours else f"exit code 2 with {err[:200]!r}"
    if code == 1:
        return "" if found.arguments[0] == "prove" else f"exit code 1 with {err[:200]!r}"
    if code != 0:
        return f"exit code {code}"
    options = dict(zip(found.arguments, found.arguments[1:], strict=False))
    written = options.get("--output") or options.get("--plot")
    if not out and not (written and Path(written).exists()) and found.arguments[:1] != ["draw"]:
        return "exit code 0, but nothing came of it"
    if options.get("--format") == "json" and not written:
        json.loads(out)
    return ""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """A time limit that ends whatever runs inside."""

    def stop(signalled: int, _: Any) -> None:
        worked = signalled == signal.SIGPROF
        raise OutOfTime(f"{SECONDS} s of the processor" if worked else f"{WAITING} s on the clock")

    # What is raised in a callback of the collector (Hypothesis has one) is lost: without them the limit always ends it.
    callbacks, gc.callbacks[:] = gc.callbacks[:], []
    signal.signal(signal.SIGPROF, stop)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(WAITING)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        gc.callbacks[:] = callbacks


@contextlib.contextmanager
def arguments(given: list[str]) -> Iterator[None]:
    before = sys.argv
    sys.argv = ["headwork", *given]
    try:
        yield
    finally:
        sys.argv = before


@contextlib.contextmanager
def own_folder() -> Iterator[None]:
    """An empty folder to work in, removed afterwards; and the commands made ready once, which takes 15 ms."""
    before, ready = cli.asked_for, get_command(cli.app)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        try:
            cli.asked_for = lambda _: ready  # type: ignore[assignment, return-value]  # called alike
            yield
        finally:
            cli.asked_for = before


def warm_up() -> None:
    """The plotting library and its fonts, loaded once: they take a second, whatever is plotted."""
    run(Case(["moments", "--plot", "plot.svg"]))
    clear()


def clear() -> None:
    """The folder as it was before the case."""
    for entry in os.scandir():
        shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)


def forget(done: int) -> None:
    """A case answers for its own garbage: the collector does not walk over what thousands before it left in caches,
    which takes half a second. Now and then it does, outside of any case."""
    if done % 200 == 0:
        gc.unfreeze()
        gc.collect()
    gc.freeze()


def fuzz(
    seed: int, numbers: range, only: tuple[str | None, str | None] = (None, None), kept: Path | None = None
) -> tuple[list[str], Counter[str]]:
    """Run cases; return what was wrong with each that was, and how many there were of which kind and ending."""
    wrong: list[str] = []
    tally: Counter[str] = Counter()
    slowest: tuple[float, str] = (0.0, "")
    begun = time.monotonic()
    show = kept is not None
    with own_folder():
        warm_up()
        for done, number in enumerate(numbers, 1):
            kind, temper, found = case(seed, number, *only)
            forget(done)
            outcome = run(found)
            label = f"case {number} ({temper} {kind}): headwork {' '.join(found.arguments)}"[:300]
            tally[f"{kind}, {temper}, exit code {outcome.code}"] += 1
            slowest = max(slowest, (outcome.seconds, label))
            if outcome.wrong:
                wrong.append(f"{label}\n{outcome.wrong}")
                if kept is not None:
                    keep(found, kept / str(number))
                    print(f"\n{wrong[-1]}", flush=True)
            clear()
            if show and (done % 200 == 0 or done == len(numbers)):
                spent = time.monotonic() - begun
                line = f"{done:,} of {len(numbers):,}, {len(wrong)} wrong, {spent:,.0f} s, slowest {slowest[0]:.2f} s"
                print(f"\r{line}", end="", file=sys.stderr, flush=True)
    gc.unfreeze()
    if show:
        print(f"\n{len(numbers):,} cases in {time.monotonic() - begun:,.0f} s, {len(wrong)} wrong")
        print(f"slowest {slowest[0]:.2f} s: {slowest[1]}")
        print("\n".join(f"{number:>8,}  {what}" for what, number in sorted(tally.items())))
    return wrong, tally


def keep(found: Case, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    attack = f'why = ""\n[[run]]\narguments = {toml_value(found.arguments)}\ncode = 0\nsays = ""\n'
    (folder / "attack.toml").write_text(attack, "utf-8")
    for path, content in found.files.items():
        (folder / path).write_bytes(content)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--case", type=int, help="run this one alone")
    parser.add_argument("--kind", choices=[*KINDS], help="one kind of case")
    parser.add_argument("--temper", choices=[*TEMPERS], help="one temper")
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    first, count = (chosen.first, chosen.count) if chosen.case is None else (chosen.case, 1)
    wrong, _ = fuzz(chosen.seed, range(first, first + count), (chosen.kind, chosen.temper), KEPT.absolute())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
