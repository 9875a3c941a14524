"""JAX's suite in a process of its own, and `headwork.jax` where there is no JAX."""

import os
import re
import subprocess
import sys
from pathlib import Path


def test_the_suite_in_a_process_of_its_own() -> None:
    suite = Path(__file__).with_name("in_jax.py")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", str(suite)]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-2000:]


def test_without_jax_it_says_how_to_get_it() -> None:
    program = "import sys; sys.modules['jax'] = None\nfrom headwork.jax import dot_product_attention"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    told = r"this needs jax, which is not installed: in a checkout of headwork, .*pip install '\.\[jax\]'"
    assert re.search(told, ended.stderr)


def test_it_is_loaded_when_it_is_used() -> None:
    program = "import sys, headwork.jax; assert 'jax' not in sys.modules; headwork.jax.dot_product_attention"
    subprocess.run([sys.executable, "-c", program + "; assert 'jax' in sys.modules"], check=True)
