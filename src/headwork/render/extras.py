"""Packages that only some pages need: a missing one says how to get it."""

from importlib import import_module
from typing import Any

from headwork.errors import HeadworkError


def needs(module: str) -> Any:
    """The module, or one line that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise HeadworkError(f"this needs {error.name}, which is not installed: pip install 'headwork[pages]'") from None
