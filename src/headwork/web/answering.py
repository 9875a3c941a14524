"""Native Python answers the page, in a process of its own: one that says nothing for too long is ended and replaced."""

from __future__ import annotations

import json
import multiprocessing
from multiprocessing.connection import Connection
from threading import Lock

PATIENCE = 3.0  # seconds that a request may take
STARTING = 60.0  # seconds that a new process may take to import what it needs
TOO_LONG = (
    "This arithmetic takes longer than 3 seconds and was stopped. The numbers on the page are the last that were "
    "worked out: make the sheet smaller, or its numbers simpler."
)


def _answer_all(pipe: Connection) -> None:
    from headwork.web.ask import answer

    try:
        pipe.send("ready")
        while True:
            pipe.send(answer(pipe.recv()))
    except (EOFError, OSError, KeyboardInterrupt):
        return  # nobody asks any more


class Answering:
    """A process that answers; `ask` waits for it no longer than it may."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._lock = Lock()
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_answer_all, args=(other,), daemon=True)
        self._process.start()
        other.close()
        self._ready = False

    def ask(self, request: str) -> str:
        """The reply as JSON text; that it took too long is one too."""
        with self._lock:
            if not self._ready:
                self._ready = self._pipe.poll(STARTING) and self._pipe.recv() == "ready"
            try:
                self._pipe.send(request)
                if self._pipe.poll(self.patience):
                    return str(self._pipe.recv())
            except (EOFError, OSError):
                pass  # it ended by itself: the same to the reader
            self.close()
            self._start()
            return json.dumps({"error": {"message": TOO_LONG, "stopped": True}})

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()
