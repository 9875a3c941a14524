"""The real consumers of our packages, in an environment of their own: they are heavy, and headwork is not in it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from headwork.mistakes.make import Plan, new_sheet
from headwork.sheets.save import sheet_toml
from headwork.sheets.sheet import Sheet

ROOT = Path(__file__).parent.parent.parent
CONSUMERS = Path(os.environ.get("HEADWORK_GRADERS") or ROOT / ".venv-graders")
INSTALL = "tests/graders/install.sh"  # makes the environment


def need(found: object, message: str) -> None:
    """Skip, with the line that installs what is missing; fail instead where everything must be there."""
    if not found:
        (pytest.fail if os.environ.get("HEADWORK_REQUIRE_ALL") else pytest.skip)(message)


@pytest.fixture(scope="session")
def consumers() -> Path:
    """The folder of the programs that grade."""
    need((CONSUMERS / "bin" / "otter").exists(), f"the graders are missing: run {INSTALL}")
    return CONSUMERS / "bin"


@pytest.fixture(scope="session")
def bubblewrap() -> str:
    need(shutil.which("bwrap"), "bwrap is missing: apt-get install bubblewrap")
    return "bwrap"


@pytest.fixture(scope="session")
def sheets() -> dict[str, Sheet]:
    """A class of five, each with a sheet of their own."""
    names = ("right", "slipped", "blank", "malformed", "mistaken")
    return {name: new_sheet(Plan(tokens=2), number=number) for number, name in enumerate(names, 1)}


@pytest.fixture(scope="session")
def sheet(sheets: dict[str, Sheet]) -> Sheet:
    return sheets["right"]


@pytest.fixture(scope="session")
def class_folder(tmp_path_factory: pytest.TempPathFactory, sheets: dict[str, Sheet]) -> Path:
    folder = tmp_path_factory.mktemp("class")
    for name, drawn in sheets.items():
        (folder / f"{name}.toml").write_text(sheet_toml(drawn), "utf-8")
    return folder
