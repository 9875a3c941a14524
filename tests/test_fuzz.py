"""A few thousand drawn cases; the long run is `python bench/fuzz.py --count 100000`."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from fuzz import Outcome, fuzz, own_folder, run
from fuzz_cases import Case
from fuzz_draws import KINDS, TEMPERS, case

from headwork import cli

EACH = 500


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """How fast this machine is, is for the long run to say: here ten seconds stand for ever."""
    monkeypatch.setattr("fuzz.SECONDS", 10.0)


@pytest.mark.parametrize("block", range(4))
def test_no_case_ends_in_a_traceback_or_goes_on_for_ever(block: int) -> None:
    wrong, tally = fuzz(13, range(block * EACH, (block + 1) * EACH))
    assert not wrong, "\n".join(wrong)
    assert sum(tally.values()) == EACH


def test_every_kind_is_drawn_in_every_temper_and_mostly_as_it_is_called() -> None:
    """Legal and extreme sheets are worked, not refused: else they would test nothing but the refusal."""
    drawn = {case(13, number)[:2] for number in range(200)}
    assert drawn == {(kind, temper) for kind in KINDS for temper in TEMPERS}
    _, tally = fuzz(14, range(150), ("sheet", None))
    for temper in ("legal", "extreme"):
        assert tally[f"sheet, {temper}, exit code 0"] > 2 * tally[f"sheet, {temper}, exit code 2"]
    assert tally["sheet, hostile, exit code 2"] > tally["sheet, hostile, exit code 0"]


def test_a_seed_draws_the_same_case_again() -> None:
    assert case(1, 7) == case(1, 7)
    assert case(1, 7) != case(2, 7)


@pytest.mark.parametrize(
    ("does", "wrong"),
    [
        ("raise ZeroDivisionError", "ZeroDivisionError"),
        ("while True: pass", "more than 0.2 s"),
        ("raise SystemExit(3)", "exit code 3"),
        ("raise SystemExit(2)", "exit code 2 with ''"),
        ("raise SystemExit(0)", "exit code 0, but nothing came of it"),
        ("print('done')\nraise SystemExit(0)", ""),
    ],
)
def test_the_fuzzer_sees_what_goes_wrong(does: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.SECONDS", 0.2)
    monkeypatch.setattr(cli, "main", lambda: exec(does))
    with own_folder():
        outcome: Outcome = run(Case(["solve", "two-heads"]))
    assert wrong in outcome.wrong
    assert bool(outcome.wrong) == bool(wrong)


def test_the_limit_holds_while_the_collector_calls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all the time goes to a callback of the collector, where a raised exception would be lost."""

    def busy(*_: Any) -> None:
        for _each in range(300_000):
            pass

    monkeypatch.setattr("fuzz.SECONDS", 0.2)
    monkeypatch.setattr(cli, "main", lambda: exec("while True: gc.collect(0)", {"gc": gc}))
    gc.callbacks.append(busy)
    try:
        with own_folder():
            assert "more than 0.2 s" in run(Case(["solve", "two-heads"])).wrong
        assert busy in gc.callbacks
    finally:
        gc.callbacks.remove(busy)
