"""What once hung, crashed or lied, under tests/attacks: files, what is run beside them, and how it must end now."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from fuzz import own_folder, run
from fuzz_cases import Case

ATTACKS = sorted((Path(__file__).parent / "attacks").iterdir())


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What once hung took minutes: ten seconds tell it from a busy machine, and two are for the long run to hold."""
    monkeypatch.setattr("fuzz.SECONDS", 10.0)


@pytest.mark.parametrize("folder", ATTACKS, ids=[folder.name for folder in ATTACKS])
def test_what_once_went_wrong(folder: Path) -> None:
    """It ends, with the exit code, and with the words that it must say; how they are laid out is another matter."""
    attack = tomllib.loads((folder / "attack.toml").read_text("utf-8"))
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "attack.toml"}
    assert attack["why"]
    for wanted in attack["run"]:
        with own_folder():
            outcome = run(Case(wanted["arguments"], files))
        assert not outcome.wrong
        assert outcome.code == wanted.get("code", 0), outcome.output
        assert wanted.get("says", "") in " ".join(outcome.output.split())
