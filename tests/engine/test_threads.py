"""Threads change the time and nothing else; neither many callers nor a fork is in the way."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from headwork.engine import attention, attention_varlen, backend
from tests.engine.cases import draws

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
