"""Somebody's function, run in a process of its own: if it hangs, crashes or eats the memory, only that process ends.

What the child finds comes back as lines of JSON, one at a time, so that what was found before a crash is not lost.
"""

import contextlib
import faulthandler
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from headwork.errors import HeadworkError

Message = dict[str, Any]
Emit = Callable[[Message], None]
LONGEST_MESSAGE = 1_000_000
FINISHED: Message = {}  # the child's last: a function can end its process by itself, and leave no other trace


def in_own_process(work: Callable[[Emit], None], seconds: float, megabytes: int) -> Iterator[Message]:
    """What `work` emits; then, if it did not end well, {"ended": why}."""
    if not hasattr(os, "fork"):
        raise HeadworkError("inspect needs an operating system that can fork a process, such as Linux or macOS")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _child(work, writing, seconds, megabytes)
    os.close(writing)
    hung = finished = False
    try:
        for line in _lines(reading, time.monotonic() + seconds):
            if line is None:
                hung = True
                break
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                finished = finished or message == FINISHED
                if isinstance(message, dict):
                    yield message
    finally:
        os.close(reading)
        for end in (os.killpg, os.kill):  # this child and what it has started, and no other process
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if hung:
        yield {"ended": f"it did not come back within {seconds:g} s and was stopped"}
    elif os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        yield {"ended": f"it crashed with {signal.Signals(os.WTERMSIG(status)).name}"}
    elif not finished:
        yield {"ended": "it ended the process that it ran in"}


def _lines(reading: int, deadline: float) -> Iterator[bytes | None]:
    """Line by line until the end; None when the time is up."""
    waiting = b""
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            yield None
            return
        piece = os.read(reading, 1 << 16)
        if not piece:
            return
        *whole, waiting = (waiting + piece).split(b"\n")
        yield from whole
        if len(waiting) > LONGEST_MESSAGE:
            yield None
            return


def _child(work: Callable[[Emit], None], writing: int, seconds: float, megabytes: int) -> None:
    """Never returns. Nothing the function prints reaches our own output."""
    try:
        os.setsid()  # what it starts belongs to it, and ends with it
        faulthandler.disable()  # a crash is reported by us
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        _limit(seconds, megabytes)
        one_thread()

        def emit(message: Message) -> None:
            os.write(writing, json.dumps(message).encode() + b"\n")

        try:
            work(emit)
        except BaseException as error:  # whatever it is, it is the function's own and is reported
            emit({"ended": described(error)})
        emit(FINISHED)
    finally:
        os._exit(0)


def one_thread() -> None:
    """Keep torch from its pool of threads: a fork leaves the pool behind, and waiting for it would never end."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)


def _limit(seconds: float, megabytes: int) -> None:
    import resource

    # Libraries map far more than they use: the room is counted from what the process has mapped already.
    room = _mapped() + megabytes * 1024 * 1024
    for what, limit in ((resource.RLIMIT_AS, room), (resource.RLIMIT_CPU, int(seconds) + 2), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # some systems do not know the limit
            resource.setrlimit(what, (limit, limit))


def _mapped() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 8 << 30


def described(error: BaseException) -> str:
    """An error, most likely somebody else's, in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, HeadworkError):
        return text[:200]  # our own, about it
    return f"it raised {type(error).__name__}{': ' if text else ''}{text[:200]}"
