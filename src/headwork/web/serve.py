"""The bench served on this machine alone: Python's own server, on 127.0.0.1, for pages that it has sent itself."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headwork.errors import HeadworkError
from headwork.web.answering import Answering
from headwork.web.ask import LONGEST, refusal
from headwork.web.page import assets, document
from headwork.web.tables import Table

HOST = "127.0.0.1"
NATIVE = '<meta name="headwork-server" content="ask">'
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'"


class Bench(ThreadingHTTPServer):
    """The server of one sheet. `url` is where it listens."""

    daemon_threads = True

    def __init__(self, table: Table, name: str, port: int = 0) -> None:
        try:
            super().__init__((HOST, port), _Visit)
        except OSError as error:
            raise HeadworkError(f"port {port} cannot be opened: {error.strerror}; choose another --port") from None
        self.first = document(table, name, NATIVE).encode()
        self.assets = assets()
        self.answering = Answering()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that is closed while it is answered is no error of ours; anything else is said."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        super().server_close()
        self.answering.close()


class _Visit(BaseHTTPRequestHandler):
    """One request. A page of another origin, or another name for this machine, gets nothing."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one piece, sent at once: a small second one would wait for an acknowledgement
    disable_nagle_algorithm = True
    server: Bench

    def do_GET(self) -> None:
        if not self._ours():
            return
        name = self.path.partition("?")[0].lstrip("/")
        if name in ("", "index.html"):
            self._send(200, "text/html", self.server.first)
            return
        content = self.server.assets.get(name)
        if content is None:
            self._send(404, "text/plain", b"not found")
        else:
            self._send(200, TYPES[name[name.rfind(".") :]], content)

    def do_POST(self) -> None:
        if not self._ours():
            return
        length = self.headers.get("Content-Length", "")
        if self.path != "/ask" or self.headers.get_content_type() != "application/json" or not length.isdecimal():
            self._send(400, "text/plain", b"JSON to /ask is answered, nothing else")
            return
        if int(length) > 4 * LONGEST:
            self._pass_over(int(length))
            self._send(413, "application/json", refusal("the request is too long; make the sheet smaller").encode())
            return
        request = self.rfile.read(int(length)).decode("utf-8", "replace")
        self._send(200, "application/json", self.server.answering.ask(request).encode())

    def _pass_over(self, length: int) -> None:
        """Let the sender finish, so that it hears the answer; not for ever."""
        self.close_connection = True
        left = min(length, 16 * LONGEST)
        while left > 0 and (piece := self.rfile.read(min(left, 1 << 16))):
            left -= len(piece)

    def _ours(self) -> bool:
        """Whether the request means this server, and comes from a page of it or from no page."""
        hosts = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        origin = self.headers.get("Origin")
        if self.headers.get("Host") in hosts and (origin is None or origin in {f"http://{host}" for host in hosts}):
            return True
        self.close_connection = True
        self._send(403, "text/plain", b"this page is for this machine alone")
        return False

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *words: object) -> None:
        """Nothing: the terminal is the reader's."""
