"""Native Python answers the page, in a process of its own: one that says nothing for too long is ended and replaced."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread

PATIENCE = 3.0  # seconds that a request may take
STARTING = 60.0  # seconds that a new process may take to import what it needs
TOO_LONG = (
    "This arithmetic takes longer than 3 seconds and was stopped. The numbers on the page are the last that were "
    "worked out: make the sheet smaller, or its numbers simpler."
)
READY, ENDED = "ready", ""
PROGRAM = "from headwork.web.answering import answer_all; answer_all()"


def answer_all() -> None:
    """What the process does: a line in, a line out."""
    from headwork.web.ask import answer

    try:
        print(READY, flush=True)
        for line in sys.stdin:
            print(answer(json.loads(line)), flush=True)
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(0)  # nobody listens any more, so there is nobody to tell


class Answering:
    """A process that answers; `ask` waits for it no longer than it may."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._lock = Lock()
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-X", "utf8", "-c", PROGRAM]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self._said: SimpleQueue[str] = SimpleQueue()
        self._reader = Thread(target=_pass_on, args=(self._process, self._said), daemon=True)
        self._reader.start()
        self._ready = False

    def ask(self, request: str) -> str:
        """The reply as JSON text; that it took too long is one too."""
        with self._lock:
            try:
                if not self._ready:
                    self._ready = self._said.get(timeout=STARTING) == f"{READY}\n"
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps(request) + "\n")
                self._process.stdin.flush()
                if reply := self._said.get(timeout=self.patience):
                    return reply
            except (Empty, OSError):
                pass  # silent, or ended by itself: the same to the reader
            self.close()
            self._start()
            return json.dumps({"error": {"message": TOO_LONG, "stopped": True}})

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):  # what was never sent cannot be sent any more
                stream.close()


def _pass_on(process: subprocess.Popen[str], said: SimpleQueue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        said.put(line)
    said.put(ENDED)
