"""Names of torchvision for timm, where torchvision is not installed: timm reads images with it, and so imports it; its
models ask for nothing that these names stand for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class Name(type):
    """A class to inherit from and to ask `isinstance` about, whose members are such classes."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name(name, (), {})


class Names(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name(name, (), {})


class Finder(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname.partition(".")[0] != "torchvision":
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Names(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return


@contextmanager
def stand_in() -> Iterator[None]:
    """While timm is imported; nobody else is to take these for torchvision."""
    if find_spec("torchvision") is not None:
        yield
        return
    sys.meta_path.append(finder := Finder())
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
