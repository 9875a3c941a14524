"""Packages that only some of headwork needs: what each adds, and a missing one says how to get it."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from headwork.errors import HeadworkError

# Package → the extra of ours that brings it, and what it adds.
EXTRAS: dict[str, tuple[str, str]] = {
    "typst": ("pages", "PDF and PNG"),
    "nbformat": ("pages", "notebooks"),
    "matplotlib": ("pages", "plots"),
    "ml_dtypes": ("engine", "bfloat16 arrays in NumPy"),
    "safetensors": ("weights", "layers out of safetensors files"),
    "torch": ("torch", "the same attention on tensors, with gradients"),
    "transformers": ("look", "the heads of a real model on a page"),
    "diffusers": ("diffusers", "the kernel under a name that diffusers knows"),
    "onnxruntime": ("bench", "a peer for headwork bench"),
    "jax": ("jax", "the same attention on JAX's arrays, with gradients"),
}


def needs(module: str) -> Any:
    """The module, or one line that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        raise HeadworkError(f"this needs {package}, which is not installed: {how_to_install(package)}") from None


def why_broken(package: str, error: ImportError) -> str:
    """Of a package that is there and fails on its way in, for one that it imports itself, say: what is amiss at the
    bottom; "" where that is no more than a name that is missing.
    """
    last: BaseException = error
    while last.__cause__ is not None:
        last = last.__cause__
    return "" if last is error else f"{package} is installed and cannot be imported ({type(last).__name__}: {last})."


def how_to_install(*packages: str) -> str:
    """The ways in one line."""
    return "; ".join(f"{where}, {command}" if where else command for where, command in ways_to_install(*packages))


def ways_to_install(*packages: str) -> list[tuple[str, str]]:
    """Where one is, and what to type there. headwork is on no package index yet, so extras come with the wheel it was
    installed from, or from a checkout."""
    extras = ",".join(dict.fromkeys(EXTRAS[package][0] for package in packages))
    pip, wheel = _pip(), _wheel()
    if wheel is not None:
        return [("", f"{pip} install '{wheel}[{extras}]'")]
    checkout, elsewhere = f"{pip} install '.[{extras}]'", f"{pip} install {' '.join(packages)}"
    return [("in a checkout of headwork", checkout), ("elsewhere", elsewhere)]


def _pip() -> str:
    """What is typed as `pip` may be another Python's, for one who calls .venv/bin/headwork as `make run` tells."""
    from shlex import quote
    from shutil import which

    found = which("pip")
    ours = found is not None and Path(found).parent == Path(sys.executable).parent
    return "pip" if ours else f"{quote(sys.executable)} -m pip"


def _wheel() -> Path | None:
    """The file that pip installed headwork from, if it was a wheel's and is still there: pip keeps a record of it."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname  # slow to import, and asked for where something is missing alone

    try:
        record = distribution("headwork").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    url = urlsplit(json.loads(record)["url"]) if record else urlsplit("")
    path = Path(url2pathname(url.path))
    return path if url.scheme == "file" and path.suffix == ".whl" and path.is_file() else None
