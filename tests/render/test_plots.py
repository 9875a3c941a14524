"""Plots hold what they say, and a missing package says how to get it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import sympy

from headwork import HeadworkError, counts
from headwork.extras import needs
from headwork.render.plots import _crossing, plot_counts, plot_moments
from tests.render.conftest import require
from tests.test_cli import run


def test_a_missing_package_prints_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(HeadworkError, match=r"needs matplotlib, which is not installed: .* pip install '\.\[pages\]'"):
        needs("matplotlib")


def test_moments_are_plotted(tmp_path: Path) -> None:
    """Three panels, sampled and predicted, with and without √D; the same seed gives the same file."""
    require("matplotlib")
    plot_moments(tmp_path / "one.svg", seed=3)
    plot_moments(tmp_path / "two.svg", seed=4)
    one, two = ((tmp_path / name).read_text("utf-8") for name in ("one.svg", "two.svg"))
    for words in ("variance of q·k", "largest of 16 weights", "size of the softmax's gradient", "predicted, with √D"):
        assert words in one
    assert one != two


def test_counts_are_plotted_with_the_crossing(tmp_path: Path) -> None:
    require("matplotlib")
    plot_counts(tmp_path / "counts.svg", d_model=512, heads=8)
    page = (tmp_path / "counts.svg").read_text("utf-8")
    assert "Q_i, K_i, V_i, output each (n)" in page
    assert "scores_i (n²)" in page or "scores_i, head_i" in page
    assert "all steps" in page


@pytest.mark.parametrize(("d_model", "heads"), [(512, 8), (64, 4), (96, 1)])
def test_the_crossing_is_where_the_counts_cross(d_model: int, heads: int) -> None:
    """Against the counts themselves, at that number of tokens and one before it."""
    n = sympy.Symbol("n", positive=True, integer=True)
    roles = ("scores", "scaled", "weights", "head_output")

    def both(tokens: int | str) -> tuple[sympy.Expr, sympy.Expr]:
        line = counts(tokens=tokens, d_model=d_model, heads=heads)
        costs = [(e.role, c.times(t).operations(line.convention)) for e, c, t in line.rows]
        return sum(c for r, c in costs if r not in roles), sum(c for r, c in costs if r in roles)

    crossing = _crossing(*both("n"), n)
    assert crossing is not None
    for tokens, over in ((crossing - 1, False), (crossing, True)):
        straight, squared = both(tokens)
        assert (squared > straight) == over


def test_the_commands(tmp_path: Path) -> None:
    require("matplotlib")
    assert run("moments", "--plot", str(tmp_path / "m.png")).stdout == ""
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    run("count", "--d-model", "64", "--heads", "4", "--plot", str(tmp_path / "c.pdf"))
    assert (tmp_path / "c.pdf").read_bytes().startswith(b"%PDF")
    assert "written as .svg, .png, .pdf" in run("count", "--plot", "c.gif", code=2).stderr
    assert "leave the sheet or the option out" in run("count", "two-heads", "--plot", "c.svg", code=2).stderr
    assert "nothing to plot" in run("moments", "--variance", "0", "--plot", "m.svg", code=2).stderr
    assert "a plot needs numbers: heads = h" in run("count", "--heads", "h", "--plot", "c.svg", code=2).stderr
    unsaid = run("count", "--formula", "scaled_dot_product", "--plot", "c.svg", code=2).stderr
    assert "a plot needs numbers for d_k and d_v: give --d-k 64 --d-v 64" in unsaid


def test_no_window_is_opened(tmp_path: Path) -> None:
    """In a process of its own: other tests load what opens windows."""
    require("matplotlib")
    code = "import sys; from headwork.render.plots import plot_moments; plot_moments(sys.argv[1]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.svg")], capture_output=True, text=True)
    assert "matplotlib.figure" in done.stdout.split()
    assert "matplotlib.pyplot" not in done.stdout.split()
