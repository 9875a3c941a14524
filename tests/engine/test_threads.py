"""Threads change the time and nothing else; neither many callers nor a fork is in the way."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from headwork.engine import attention, attention_varlen, backend
from tests.engine.cases import draws
from tests.render.conftest import require

SHAPES = [
    ((1, 8, 300, 64), (1, 8, 300, 64)),
    ((1, 2, 30, 64), (1, 1, 5000, 64)),  # few panels: the keys are cut into parts
    ((1, 8, 1, 64), (1, 2, 9000, 64)),  # decoding
    ((2, 4, 97, 33), (2, 2, 700, 33)),
]


@pytest.mark.parametrize(("q_shape", "k_shape"), SHAPES)
def test_the_same_bits_for_any_number_of_threads(q_shape: tuple[int, ...], k_shape: tuple[int, ...]) -> None:
    q, k, v = draws(np.random.default_rng(0), q_shape, k_shape, k_shape)
    for options in ({}, {"causal": "bottom_right"}, {"window": (100, 40)}, {"softcap": 5.0}):
        one, one_lse = attention(q, k, v, threads=1, return_lse=True, **options)
        for threads in (2, 3, 7, 16):
            many, many_lse = attention(q, k, v, threads=threads, return_lse=True, **options)
            assert (many == one).all()
            assert (many_lse == one_lse).all()


def test_many_callers_at_once() -> None:
    cases = [draws(np.random.default_rng(i), *[(4, 50 + 13 * i, 32)] * 3) for i in range(6)]
    expected = [attention(*case) for case in cases]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(5):
            for got, want in zip(pool.map(lambda case: attention(*case), cases), expected, strict=True):
                assert (got == want).all()


def test_packed_batches_too() -> None:
    q, k, v = draws(np.random.default_rng(1), *[(900, 2, 32)] * 3)
    at = [0, 10, 400, 900]
    one = attention_varlen(q, k, v, at, at, threads=1)
    assert (attention_varlen(q, k, v, at, at, threads=5) == one).all()


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


FORK = """
import os, numpy as np
from headwork.engine import attention
x = np.random.default_rng(0).standard_normal((8, 400, 64)).astype(np.float32)
before = attention(x, x, x, threads=2)
child = os.fork()
if child == 0:
    os._exit(0 if (attention(x, x, x, threads=2) == before).all() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (attention(x, x, x, threads=2) == before).all()
print("both")
"""


def test_a_child_of_fork_can_work_too() -> None:
    assert run(FORK) == "both"


def test_the_environment_chooses() -> None:
    code = "from headwork.engine import backend; b = backend(); print(b.cpu, b.threads)"
    assert run(code, HEADWORK_CPU="numpy").split()[0] == "numpy"
    if backend().native:
        assert run(code, HEADWORK_CPU="baseline", HEADWORK_THREADS="3") == "baseline 3"
    wrong = "import headwork.engine"
    for name, value in (("HEADWORK_CPU", "abacus"), ("HEADWORK_THREADS", "many")):
        failed = subprocess.run(
            [sys.executable, "-c", wrong], capture_output=True, text=True, env={**os.environ, name: value}
        )
        assert f"{name} is {value!r}" in failed.stderr


def test_importing_the_engine_is_light() -> None:
    code = "import sys, headwork.engine; print(*sys.modules)"
    loaded = set(run(code).split())
    assert not loaded & {"torch", "onnx", "onnxruntime", "sympy", "ml_dtypes", "jax", "matplotlib"}


FIRST_CALL = """
import os, sys
{before}
child = os.fork()
if child == 0:
    {inside}
    x = np.random.default_rng(0).standard_normal((8, 400, 64)).astype(np.float32)
    attention(x, x, x, threads=2)
    os._exit(0)
for _ in range(600):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        print(os.waitstatus_to_exitcode(status))
        break
    import time
    time.sleep(0.05)
else:
    os.kill(child, 9)
    print("hung")
"""
POOL = (
    "import torch; torch.set_num_threads(2); torch.ones(2000, 500).sin().sum(); torch.mm(*[torch.ones(700, 700)] * 2)"
)


@pytest.mark.parametrize("early", [True, False])
def test_a_first_call_in_a_forked_child_after_somebodys_pool_ran(early: bool) -> None:
    """Imported before the fork, or only in the child: a pool that lost its threads is not waited for."""
    require("torch")
    load = "import numpy as np; from headwork.engine import attention"
    before, inside = (f"{load}; {POOL}", "pass") if early else (POOL, load)
    assert run(FIRST_CALL.format(before=before, inside=inside)) == "0"


DAEMON = """
import threading, time, numpy as np
from headwork.engine import attention
x = np.random.default_rng(0).standard_normal((4, 700, 64)).astype(np.float32)
def work():
    while True:
        attention(x, x, x, threads=1)
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.skipif(not backend().native, reason="what NumPy's own threads do when the interpreter ends is NumPy's")
@pytest.mark.parametrize("again", range(3))
def test_a_daemon_thread_in_a_call_when_the_interpreter_ends(again: int) -> None:
    assert run(DAEMON) == ""


FORKED_COUNT = """
import os
from headwork.engine import backend
backend()
child = os.fork()
if not child:
    print(backend().threads, backend().runtime, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_the_environments_number_of_threads_counts_also_after_a_fork() -> None:
    code = "from headwork.engine import backend; print(backend().threads)"
    if backend().native:
        assert run(code, OMP_NUM_THREADS="3") == "3"
        assert run(FORKED_COUNT, OMP_NUM_THREADS="3") == "3 threads"


def test_an_absurd_number_of_threads_is_refused() -> None:
    for given in ("0", "99999", "1" * 5000, "-1"):
        failed = subprocess.run(
            [sys.executable, "-c", "import headwork.engine"],
            capture_output=True,
            text=True,
            env={**os.environ, "HEADWORK_THREADS": given},
        )
        assert "HEADWORK_THREADS is" in failed.stderr, failed.stderr
        assert "1 to 4096" in failed.stderr
