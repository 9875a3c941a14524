"""Packages that only some of headwork needs: what each adds, and a missing one says how to get it."""

from importlib import import_module
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


def how_to_install(*packages: str) -> str:
    """headwork is on no package index yet, so extras come from a checkout of it."""
    extras = dict.fromkeys(EXTRAS[package][0] for package in packages)
    return f"in a checkout of headwork, pip install '.[{','.join(extras)}]'"
