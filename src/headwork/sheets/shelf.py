"""The sheets that come with headwork: their names, texts and one line about each. Loads nothing else."""

import tomllib
from importlib import resources


def built_in() -> list[str]:
    """The names of the sheets that come with headwork."""
    return sorted(file.name.removesuffix(".toml") for file in _LIBRARY.iterdir() if file.name.endswith(".toml"))


def text_of(name: str) -> str:
    """A built-in sheet as it is written."""
    return (_LIBRARY / f"{name}.toml").read_text("utf-8")


def summaries() -> list[tuple[str, str]]:
    """Every built-in sheet's name and one line about it."""
    return [(name, str(tomllib.loads(text_of(name))["summary"])) for name in built_in()]


_LIBRARY = resources.files("headwork.sheets") / "library"
