"""What `headwork open` serves: to pages of its own, on this machine, in bounded time."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from typing import Any

import pytest

from headwork.web.ask import ANSWERS, answer
from headwork.web.serve import Bench


def ask(bench: Bench, body: str, method: str = "POST", path: str = "/ask", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", bench.server_port, timeout=30)
    sent = {"Host": f"127.0.0.1:{bench.server_port}", "Content-Type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, {k: v for k, v in sent.items() if v})
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text


def test_a_request_is_answered_as_by_the_function(served: Bench) -> None:
    request = json.dumps({"do": "open", "name": "two-heads"})
    status, text = ask(served, request)
    assert status == 200
    assert json.loads(text) == json.loads(answer(request))


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (403, {"Host": "evil.example"}),
        (403, {"Origin": "https://evil.example"}),
        (403, {"Origin": "null"}),
        (400, {"Content_Type": "text/plain"}),
        (400, {"path": "/other"}),
    ],
)
def test_others_get_nothing(served: Bench, status: int, headers: dict[str, str]) -> None:
    path = headers.pop("path", "/ask")
    assert ask(served, '{"do": "sheets"}', path=path, **headers)[0] == status


@pytest.mark.parametrize("path", ["/../serve.py", "/serve.py", "/static/bench.js", "/%2e%2e/ask.py", "/missing.js"])
def test_only_the_pages_own_files_are_served(served: Bench, path: str) -> None:
    assert ask(served, "", "GET", path)[0] == 404
    assert ask(served, "", "GET", "/bench.js")[0] == 200


@pytest.mark.parametrize(
    "request_",
    [
        "",
        "[]",
        "{",
        '{"do": "nothing"}',
        '{"do": 5}',
        "[" * 100_000,
        '{"do": "edit"}',
        '{"do": "open", "toml": "x = ["}',
    ]
    + [json.dumps({"do": name}) for name in ANSWERS if name != "sheets"]
    + [json.dumps({"do": name, "table": {"problem": [{}]}, "problem": 9, "block": -1}) for name in ANSWERS],
)
def test_whatever_is_asked_there_is_an_answer(request_: str) -> None:
    reply: dict[str, Any] = json.loads(answer(request_))
    assert "error" not in reply or reply["error"]["message"]


def test_a_request_that_is_too_long_is_refused(served: Bench) -> None:
    status, text = ask(served, " " * 9_000_000)
    assert status == 413
    assert "too long" in json.loads(text)["error"]["message"]


def test_the_answers_need_neither_numpy_nor_sympy() -> None:
    program = (
        "import sys, json; sys.modules['numpy'] = None; sys.modules['sympy'] = None\n"
        "from headwork.web.ask import answer\n"
        "ask = lambda **request: json.loads(answer(json.dumps(request)))\n"
        "table = ask(do='open', name='thinking-machine')['table']\n"
        "assert 'cells' in ask(do='edit', table=table, was=table)\n"
        "assert 'parts' in ask(do='mark', table=table, answers={'a': {'Q_0': [['1'] * 3] * 3}})\n"
        "assert ask(do='mistakes', table=table, problem=0)['mistakes']\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_command_says_where_it_is_and_ends() -> None:
    command = [sys.executable, "-c", "from headwork.cli import main; main()", "open", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        said = running.stdout.readline()
        assert said.startswith("http://127.0.0.1:")
        port = int(said.split(":")[2].split("/")[0])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/")
        assert b"Two heads" in connection.getresponse().read()
        connection.close()
        running.kill()
