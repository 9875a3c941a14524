"""Who reads which rows of whom: held against all pairs of a token and a key, one by one."""

from __future__ import annotations

import random

import pytest

from headwork.errors import HeadworkError
from headwork.torch.cluster.reading import Reading, area, halves, reading
from headwork.torch.cluster.splits import checked, laid, rows

WINDOWS = [(-1, -1), (-1, 0), (3, 0), (3, 2), (0, 0), (5, -1)]


def read_by(tokens: int, window: tuple[int, int], ends: tuple[int, ...]) -> set[tuple[int, int]]:
    left, right = window
    document = [sum(end <= position for end in ends) for position in range(tokens)]
    return {
        (i, j)
        for i in range(tokens)
        for j in range(tokens)
        if (left < 0 or j >= i - left) and (right < 0 or j <= i + right) and document[i] == document[j]
    }


def met(of: Reading, reader: int, owner: int) -> list[tuple[int, int]]:
    """Every (token, key) of the spans between two ranks, as positions; each span has the area that is told."""
    positions = [[p for first, end in mine for p in range(first, end)] for mine in of.tokens]
    pair = of.pair(reader, owner)
    sent = [positions[owner][row] for first, end in pair.rows for row in range(first, end)]
    left, right = of.window
    found = []
    for call in (call for half in halves(pair.calls, of.window) for call in half):
        assert [span.token for span in call] == sorted(span.token for span in call)
        for span in call:
            apart = [(i, j, j - i - span.offset) for i in range(span.tokens) for j in range(span.keys)]
            inside = [(i, j) for i, j, d in apart if (left < 0 or d >= -left) and (right < 0 or d <= right)]
            assert len(inside) == area(span, of.window)
            found += [(positions[reader][span.token + i], sent[span.key + j]) for i, j in inside]
    if reader != owner:
        assert {key for _, key in found} == set(sent), "nothing is sent that is not read"
    return found


@pytest.mark.parametrize("seed", range(60))
def test_spans_are_all_that_is_read_once_and_nothing_else_is_sent(seed: int) -> None:
    draw = random.Random(seed)
    world, tokens = draw.randint(1, 5), draw.randint(1, 40)
    ends: tuple[int, ...] = ()
    if draw.random() < 0.6:
        ends = (*sorted({draw.randint(1, tokens) for _ in range(4)} - {tokens}), tokens)
    of = reading(tokens, tokens, world, draw.choice(["contiguous", "zigzag"]), draw.choice(WINDOWS), ends)
    found = [pair for reader in range(world) for owner in range(world) for pair in met(of, reader, owner)]
    assert len(found) == len(set(found))
    assert set(found) == read_by(tokens, of.window, ends)


def test_zigzag_gives_all_ranks_the_same_work() -> None:
    of = reading(4096, 4096, 4, "zigzag", (-1, 0), ())
    work = [sum(area(s, of.window) for owner in range(4) for c in of.pair(r, owner).calls for s in c) for r in range(4)]
    assert max(work) == min(work)


def test_splits_cover_every_position_once() -> None:
    for tokens in (0, 1, 5, 97):
        for world in (1, 2, 3, 8):
            for split in ("contiguous", "zigzag"):
                mine = laid(tokens, world, split)
                assert sorted(p for r in mine for a, b in r for p in range(a, b)) == list(range(tokens))
                assert max(map(rows, mine)) <= -(-tokens // world) + 1


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ([[(0, 4)], [(5, 8)]], "position 4 by no rank"),
        ([[(0, 4)], [(3, 8)]], "position 3 twice"),
        ([[(0, 4)], [(4, 7)]], "ends at 7, but the ranks together have 8 rows"),
        ([[(0, 8)]], "intervals of 1 ranks, but the group has 2"),
        ("stripes", "split is 'stripes'"),
        ([[(4, 0)], [(0, 8)]], "Give a name, or for every rank"),
        (7, "split is 7"),
    ],
)
def test_a_split_that_does_not_fit_is_told(split: object, words: str) -> None:
    with pytest.raises(HeadworkError, match="split") as told:
        laid(8, 2, checked(split))
    assert words in str(told.value)
