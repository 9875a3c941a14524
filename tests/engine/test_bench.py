"""The bench itself: what is timed is checked, a contender's trouble is told, nothing slow is left out."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from headwork.cli import code
from headwork.engine import bench
from headwork.engine.backend import backend, kernel
from headwork.engine.bench import Limit, Line, Results, growth, report
from headwork.engine.bench.cases import CASES
from headwork.engine.bench.checking import check
from headwork.engine.bench.contenders import Contenders
from headwork.engine.bench.growth import Growth, extra_memory
from headwork.engine.bench.peers import MACHINE, PEERS, package_of, prepared
from headwork.engine.bench.turns import medians
from headwork.errors import HeadworkError

SMALL = ["2×2", "causal 1,12,77,64", "1,8,128,64"]


@pytest.fixture
def contenders() -> Iterator[Contenders]:
    with Contenders() as running:
        yield running


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("peer", ["headwork", "numpy", "torch"])
def test_contenders_agree_with_the_formula(name: str, peer: str) -> None:
    problem = next(case for case in CASES if case.name == name).make()
    call = prepared(peer, problem)
    assert call is not None
    check(problem, call(), peer)


def test_a_wrong_result_is_not_timed() -> None:
    problem = next(case for case in CASES if case.name == "1,8,128,64").make()
    with pytest.raises(AssertionError, match=r"off by .*, allowed 2e-05"):
        check(problem, problem.v, "headwork")
    with pytest.raises(AssertionError, match="off by nan"):
        check(problem, np.full_like(problem.v, np.nan), "headwork")


def test_a_contender_is_timed_in_a_process_of_its_own(contenders: Contenders) -> None:
    assert contenders.prepare("headwork", "2×2") is None
    assert contenders.prepare("numpy", "2×2") is None
    taken = contenders.medians(["headwork", "numpy"], "2×2", rounds=2, budget=1)
    assert all(0 < seconds < 1 for seconds in taken.values())
    processes = [set(running._processes) for running in contenders.running.values()]
    assert [len(of_one) for of_one in processes] == [1, 1]
    assert not processes[0] & processes[1]
    assert package_of("torch") == package_of("torch folded"), "one package, one process"


def test_who_is_far_behind_has_fewer_turns() -> None:
    turns = {"first": 0, "ahead": 0, "close": 0, "behind": 0}

    def timed(name: str, seconds: list[float]) -> Callable[[], float]:
        def take() -> float:
            turns[name] += 1
            return seconds[turns[name] % len(seconds)]

        return take

    times = {"first": [1.0], "ahead": [0.3], "close": [2.0, 2.5, 9.0], "behind": [3.5]}
    calls = {name: timed(name, seconds) for name, seconds in times.items()}
    assert medians(calls, 9, 10) == {"first": 1.0, "ahead": 0.3, "close": 2.5, "behind": 3.5}
    assert turns == {"first": 9, "ahead": 9, "close": 9, "behind": 3}
    assert medians(calls, 9, 0)["first"] == 1.0, "five rounds at least, whatever the time"
    assert turns["first"] == 9 + 5


def test_trouble_is_told_and_the_others_go_on(contenders: Contenders) -> None:
    """A peer that cannot do a case, and one whose process has died."""
    assert contenders.prepare("onnx", "Boolean mask, random") == "no onnx"
    assert contenders.prepare("numpy", "2×2") is None
    (process,) = contenders.running["numpy"]._processes.values()
    process.kill()
    process.join()
    assert "ended unasked" in (contenders.prepare("numpy", "2×2") or "")
    with pytest.raises(HeadworkError, match="numpy ended unasked"):
        contenders.time("numpy", "2×2")


def test_the_machine_is_asked_for_its_limit_where_there_is_a_load(contenders: Contenders) -> None:
    assert contenders.prepare(MACHINE, "2×2") == "no machine", "sixteen multiplications load nothing"
    for case in ("1,8,128,64", "decode float16 on 4096"):
        assert (contenders.prepare(MACHINE, case) is None) == (kernel is not None), "it is the kernel that loads it"
        if kernel is not None:
            assert 0 < contenders.time(MACHINE, case) < 1


def test_every_target_names_a_contender_of_its_case() -> None:
    for case in CASES:
        assert set(case.targets) <= set(case.peers) <= set(PEERS), case.name


def test_what_is_slower_than_a_peer_is_listed() -> None:
    lines = [
        Line("fine", 1e-3, {"torch": 1.5}, {"torch": 1.3}, Limit(0.8e-3, 2e11, None)),
        Line("short", 1e-3, {"torch": 2.0, "onnx": 1.0}, {"torch": 3.0, "onnx": 1.0}, Limit(0.6e-3, 2e11, None)),
        Line("reads", 1e-3, {}, {}, Limit(0.7e-3, None, 3e10)),
        Line(
            "slow", 2e-6, {"torch": 0.5, "onnx": 3.0, "onnx mha": 1.1}, {"torch": 1.3, "onnx": 1.2}, None, ["jax: odd"]
        ),
    ]
    results = Results({}, lines, [], 1_000_000)
    page = StringIO()
    report.table(results, Console(file=page, width=160))
    text = page.getvalue()
    assert "1.50 ≥ 1.3" in text
    assert "80%" in text
    assert "70%" in text
    assert "0.50 < 1.3" in text
    assert "1.10 < 1.2" in text, "the faster of ONNX Runtime's two operators counts"
    assert "short: short against torch; 3 would take 90% of the limit, reached is 60%" in text
    assert "short: slow against onnx\n" in text, "with no limit, nothing more is known"
    assert text.count("short: ") == 3
    assert "slower than torch: slow, 0.50" in text
    assert "slow: jax: odd" in text
    assert "200 GF/s float32, 30.0 GB/s read" in text


def test_where_the_system_tells_no_memory_the_rest_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(growth, "PEAK", tmp_path / "nowhere")
    assert extra_memory(16) is None
    results = Results({}, [Line("fine", 1e-3, {"torch": 1.5}, {}, None)], [Growth(1024, 1e-3, None)], None)
    page = StringIO()
    report.table(results, Console(file=page, width=160))
    assert "fine" in page.getvalue()
    assert "memory" not in page.getvalue()
    report.plot(results, tmp_path / "plot.svg")
    drawn = (tmp_path / "plot.svg").read_text("utf-8")
    assert "seconds, 1 head" in drawn
    assert "extra MB" not in drawn


def test_a_case_whose_package_is_missing_is_left_out_and_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """ml_dtypes is an extra, and what it makes is two cases of many."""
    assert {case.needs for case in CASES if case.name.startswith("bfloat16")} == {"ml_dtypes"}
    case = next(replace(case, peers=()) for case in CASES if case.name == "2×2")
    monkeypatch.setattr(bench, "CASES", [case, replace(case, name="another", needs="no_such_package")])
    monkeypatch.setattr(bench, "grow", lambda largest: [])
    assert [line.name for line in bench.run(quick=True).lines] == ["2×2"]
    assert "another: left out, because no_such_package is not installed" in capsys.readouterr().out


def test_a_plot_that_cannot_be_drawn_is_told_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(bench, "run", lambda **_: pytest.fail("timed first"))
    with pytest.raises(HeadworkError, match="this needs matplotlib"):
        code.bench(plot=tmp_path / "plot.svg")


def test_what_is_kept_says_its_schema(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And the kernel that ran; docs/reference/json.md has the rest."""
    monkeypatch.setattr(bench, "CASES", [replace(case, peers=()) for case in CASES if case.name == "2×2"])
    monkeypatch.setattr(bench, "grow", lambda largest: [])
    bench.run(quick=True, json_path=tmp_path / "figures.json")
    kept = json.loads((tmp_path / "figures.json").read_text("utf-8"))
    assert kept["schema"] == 1
    assert kept["backend"]["cpu"] == backend().cpu
    assert [line["name"] for line in kept["lines"]] == ["2×2"]
