"""Figures over time: the tables that are written are those of the last run that was kept, whatever it says."""

import json
from pathlib import Path
from typing import Any

import history
import pytest

from tests.render.conftest import require


def kept(folder: Path, name: str, training: float = 1.25, **ratios: float) -> None:
    """A small run as the bench leaves it; `ratios` are of the first case, by peer, `training` of the one on tensors."""
    lines: list[dict[str, Any]] = [
        {"name": "1,8,2048,64", "seconds": 0.01, "ratios": ratios},
        {"name": "ragged, 8 of 37–1024", "seconds": 0.01, "ratios": {"torch loop": 1.46, "torch padded": 4.71}},
    ]
    run = {
        "date": name[:10],
        "commit": name[-7:],
        "machine": {"cpu": "A CPU", "cores": 2},
        "packages": {"headwork": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6"},
        "lines": lines,
        "training": [{"name": "4,12,16,64, causal", "seconds": 0.001, "ratios": {"torch": training}, "share": 0.345}],
    }
    (folder / f"{name}.json").write_text(json.dumps(run), "utf-8")


def page(root: Path, name: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("before\n{}\nold\n{}\nbehind\n".format(*history.MARKERS), "utf-8")
    return path


def test_the_tables_are_those_of_the_last_run(tmp_path: Path) -> None:
    readme, docs = (page(tmp_path, name) for name in history.PAGES)
    kept(tmp_path, "2026-11-18-01-bbbbbbb", torch=1.5, onnx=1.25, numpy=5, **{"onnx mha": 1.125})
    kept(tmp_path, "2026-11-17-01-aaaaaaa", torch=3)
    history.write_tables(tmp_path, tmp_path)
    text = readme.read_text("utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nbehind\n")
    assert "old" not in text
    assert "2026-11-18 at commit bbbbbbb: A CPU, 2 cores, float32; torch 2.13.0, NumPy 2.4.6" in text
    assert "| 1, 8, 2048, 64 | 1.50 | 1.12 |  | 5.00 |" in text
    assert "ragged" not in text
    assert "No case was slower" in text
    assert "| ragged" not in docs.read_text("utf-8"), "a row without a number says nothing"
    assert "- ragged, 8 of 37–1024: 1.46 against torch loop, 4.71 against torch padded" in docs.read_text("utf-8")
    assert "| 4,12,16,64, causal | 1.25 | 34% |" in docs.read_text("utf-8")
    assert "4,12,16,64" not in text, "README has six rows"


def test_a_case_that_is_slower_is_named(tmp_path: Path) -> None:
    readme, _ = (page(tmp_path, name) for name in history.PAGES)
    kept(tmp_path, "2026-11-18-01-bbbbbbb", torch=0.9, onnx=1.5)
    history.write_tables(tmp_path, tmp_path)
    assert "Slower in this run: 1,8,2048,64 than torch (0.90)." in readme.read_text("utf-8")
    kept(tmp_path, "2026-11-18-02-ccccccc", training=0.8, torch=1.5)
    history.write_tables(tmp_path, tmp_path)
    assert "Slower in this run: 4,12,16,64, causal than torch (0.80)." in readme.read_text("utf-8")


def test_nothing_is_written_where_nothing_can_be(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no run is kept"):
        history.write_tables(tmp_path, tmp_path)
    with pytest.raises(SystemExit, match="lacks a line"):
        history.written("a page without markers", ["new"])


def test_a_run_without_a_peer_is_not_a_full_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(history.PACKAGES, "no_such_peer", "nobody")
    with pytest.raises(SystemExit, match=r"here is no .*no_such_peer: pip install '\.\[bench\]'"):
        history.keep(tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_ratios_over_commits_are_drawn(tmp_path: Path) -> None:
    require("matplotlib")
    kept(tmp_path, "2026-11-17-01-aaaaaaa", torch=1.3)
    kept(tmp_path, "2026-11-18-01-bbbbbbb", torch=1.5, onnx=1.25)
    history.plot(history.runs(tmp_path), tmp_path / "ratios.svg")
    drawn = (tmp_path / "ratios.svg").read_text("utf-8")
    assert "<!-- 1,8,2048,64 -->" in drawn, "a panel has its case's name"
    assert all(f"<!-- {number} -->" in drawn for number in ("1.50", "1.25", "bbbbbbb", "ONNX Runtime"))
    assert "<!-- ragged" not in drawn, "no peer of ours is in that case"


def test_the_ratios_are_drawn_for_a_dark_page_too(tmp_path: Path) -> None:
    require("matplotlib")
    kept(tmp_path, "2026-11-18-01-bbbbbbb", torch=1.5, onnx=1.25)
    for theme, other in (("light", "dark"), ("dark", "light")):
        history.plot(history.runs(tmp_path), tmp_path / "ratios.svg", theme)
        drawn = (tmp_path / "ratios.svg").read_text("utf-8")
        for part in ("paper", "ink", "torch", "onnx", "slower"):
            assert history.THEMES[theme][part] in drawn
            assert history.THEMES[other][part] not in drawn
    with pytest.raises(SystemExit, match="light or dark, not sepia"):
        history.plot(history.runs(tmp_path), tmp_path / "ratios.svg", "sepia")


@pytest.mark.parametrize("name", history.PAGES)
def test_the_pages_tables_are_those_of_the_last_run(name: str) -> None:
    """`python bench/history.py table` would change nothing."""
    text = (history.ROOT / name).read_text("utf-8")
    runs = history.runs()
    if not runs:  # a checkout from before the first run was kept
        assert all(text.count(marker) == 1 for marker in history.MARKERS)
        return
    assert history.written(text, history.table(runs[-1], history.PAGES[name])) == text
