"""The bench as `headwork site` writes it: built once for all processes of a test run, served as any host would."""

from __future__ import annotations

import fcntl
import functools
import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headwork.web.site import write_single, write_site
from tests.render.conftest import require

OWN = """title = "A sheet of my own"
formula = "dot_product"
[given]
Q = [[1, 2]]
K = [[3, 4], [5, 6]]
V = [[1, 0], [0, 1]]
[[part]]
find = ["output"]
"""
# Until the service worker has every file and answers for this page.
KEPT = """() => new Promise((resolve) => {
  const { serviceWorker } = navigator;
  if (serviceWorker.controller) resolve();
  else serviceWorker.addEventListener("controllerchange", () => resolve());
})"""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `site` and `bench.html`, a teacher's own sheet in both."""
    return build(tmp_path_factory)


def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("node", "npm")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "headwork-site"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait for the first, and find it done
        if not (folder / "done").exists():
            own = folder / "own-sheet.toml"
            own.write_text(OWN, "utf-8")
            write_site(folder / "site")
            write_single(folder / "bench.html", [str(own)])
            (folder / "done").touch()
    return folder


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """A host that knows nothing of us."""

    def log_message(self, format: str, *words: object) -> None:
        pass


@contextmanager
def hosted(folder: Path, *, knows_wasm: bool = True, without: str = "") -> Iterator[str]:
    """The address of a folder while a plain server serves it; one file may be missing."""

    class Visit(_Quiet):
        extensions_map = _Quiet.extensions_map | ({} if knows_wasm else {".wasm": "application/octet-stream"})

        def do_GET(self) -> None:
            if without and self.path.endswith(without):
                self.send_error(404)
            else:
                super().do_GET()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Visit, directory=str(folder))) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        serving.join()


def cell(page: Any, role: str, row: int, column: int) -> Any:
    table = page.locator(f'table.cells[data-role="{role}"]').first
    return table.locator(f'input[data-row="{row}"][data-column="{column}"]')


def asked(page: Any, *requests: dict[str, Any]) -> list[Any]:
    """What Python in a worker of this page answers, one after the other."""
    program = """async (requests) => {
      const { inWorker } = await import("./python.js");
      window.tested ??= inWorker();
      const replies = [];
      for (const request of requests) replies.push(await window.tested.ask(request));
      return replies;
    }"""
    return list(page.evaluate(program, list(requests)))
