"""What the model says of calls over ranks, and the table that plans a cluster."""

from __future__ import annotations

import pytest
import torch

import headwork.torch as hw
from headwork.torch.cluster.cost import CostSizes, Machines, chosen, exchange
from headwork.torch.cluster.reading import reading
from headwork.torch.cluster_plan import main
from tests.cluster.ranks import results

SIZES = CostSizes(1, 8, 8, 64, 64, 4)


def test_the_model_by_hand() -> None:
    """4096 rows in 2 ranks, dense: 2·2048²·8·128 operations a block; 2048 rows of 8·128 floats, 8.4 MB."""
    cost = exchange(reading(4096, 4096, 2, "contiguous", (-1, -1), ()), 0, SIZES, Machines(100, 10, 0))
    assert cost.steps == [2048 * 8 * 128 * 4]
    assert cost.work == pytest.approx([2 * 2048**2 * 8 * 128 * 1e-11] * 2)
    assert cost.wire == pytest.approx(70e-6 + 2048 * 8 * 128 * 4 * 8e-10)
    assert cost.hidden == cost.wire
    assert cost.seconds == pytest.approx(sum(cost.work) + 0.4e-9 * cost.bytes)


def test_a_slow_wire_and_many_ranks_are_for_ulysses() -> None:
    of = reading(8192, 8192, 8, "contiguous", (-1, -1), ())
    assert chosen(of, SIZES, Machines(150, 10)) == "exchange"
    assert chosen(of, SIZES, Machines(1000, 1)) == "ulysses"
    assert chosen(of, SIZES._replace(heads=4, kv_heads=4), Machines(1000, 1)) == "exchange", "a head for every rank"


def explained(rank: int) -> list[str]:
    x = torch.randn(1, 8, 512, 64)
    name = str(hw.explain_ring(x, x, x, causal=True))
    with hw.context_parallel(split="contiguous", method="gather"):
        block = str(hw.explain(x, x, x, is_causal=True))
    alone = str(hw.explain_ring(x, x, x, window=(10, 0), split="contiguous", gbit=1))
    return [name, block, alone]


def test_a_call_is_explained_before_it_is_made() -> None:
    first, second = results(2, explained)
    assert first[0].startswith("exchange over 2 ranks, zigzag: 1.0 MB a step at most, 1.0 MB in all; ")
    assert first[0].endswith("97% of the wire hidden at 10 Gbit/s and 150 GFLOP/s")
    assert first[1].startswith("ring: gather over 2 ranks, contiguous: 2.1 MB a step at most")
    assert second[1] == "ring: gather over 2 ranks, contiguous: nothing is sent"
    assert "at 1 Gbit/s" in first[2]
    assert "41.0 kB a step" in first[2]


def test_a_cluster_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["--tokens", "16384", "--heads", "32", "--gbit", "1", "--gflops", "500", "--dense", "--ranks", "1,2,16"])
        == 0
    )
    title, headings, *table = capsys.readouterr().out.splitlines()
    assert title.startswith("16384 tokens, 32 heads of 128, dense, contiguous; 1 Gbit/s, 500 GFLOP/s")
    assert headings.split()[:4] == ["ranks", "rows", "way", "a"]
    assert [line.split()[:3] for line in table] == [
        ["1", "16384", "alone"],
        ["2", "8192", "exchange"],
        ["2", "8192", "ulysses"],
        ["16", "1024", "exchange"],
        ["16", "1024", "ulysses"],
    ]
    assert ["←" in line for line in table] == [False, True, False, False, True]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("--tokens 0 --heads 8", "--tokens is 0"),
        ("--tokens 8 --heads 8 --kv-heads 3", "3 key heads do not divide 8"),
        ("--tokens 8 --heads 8 --ranks two", "--ranks is 'two'"),
        ("--tokens 8 --heads 8 --gbit nan", "--gbit is nan"),
        ("--tokens 8 --heads 8 --window -3", "--window is -3"),
        ("--tokens 8 --heads 8 --split stripes", "split is 'stripes'"),
    ],
)
def test_what_cannot_be_planned_is_told(given: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(given.split()) == 2
    assert words in capsys.readouterr().err
