"""The page about a class: who, which mistakes, how hard, how alike."""

from fractions import Fraction
from statistics import correlation, pstdev

import pytest

from headwork.marking.answers import Answers
from headwork.marking.mark import Marker
from headwork.marking.marks import Marks, PartMark
from headwork.marking.report import class_blocks
from headwork.marking.tally import MOST_LISTED, MOST_NAMES, Tally
from headwork.render.text import document
from headwork.sheets.load import load

MARKER = Marker(load("two-heads"))


def joined(student: str, matrix: str) -> Marks:
    return MARKER.mark(Answers(student, {"1.a": {"joined": matrix}}))


def page(*students: Marks) -> str:
    return document(class_blocks("Class", students))


def scored(student: str, *shares: float) -> Marks:
    parts = (PartMark("abc"[i], Fraction(2 * share), Fraction(2)) for i, share in enumerate(shares))
    return Marks(student, tuple(parts))


SHARES = [(1, 0.5, 1), (0.5, 0.5, 0), (1, 0, 1), (0, 0, 0.25)]


def test_difficulty_discrimination_and_spread() -> None:
    tally = Tally()
    for i, shares in enumerate(SHARES):
        tally.add(scored(f"s{i}", *shares))
    first = tally.parts["a"]
    assert first.difficulty == 0.625
    rest = [(b + c) / 2 for _, b, c in SHARES]
    assert first.discrimination == pytest.approx(correlation([a for a, _, _ in SHARES], rest))
    assert tally.spread == pytest.approx(pstdev(sum(shares) / 3 for shares in SHARES))
    assert tally.bins == [1, 0, 0, 1, 0, 0, 1, 0, 1, 0]


def test_who_hands_in_twice_is_told() -> None:
    once = joined("Bob", "1 2 5 6; 3 4 7 8")
    text = page(joined("Ada", "1 2 5 6; 3 4 7 8"), once, joined("Ada", "0 0 0 0; 0 0 0 0"))
    assert "Handed in more than once: Ada." in " ".join(text.split())
    assert "more than once" not in page(once)


def test_a_part_that_is_the_same_for_everybody_tells_nothing() -> None:
    tally = Tally()
    for i in range(3):
        tally.add(scored(f"s{i}", 1, i / 2))
    assert tally.parts["a"].discrimination is None
    assert "–" in page(*(scored(f"s{i}", 1, i / 2) for i in range(3)))


def test_names_stand_behind_each_mistake_and_in_the_list() -> None:
    said = page(joined("Ada", "1 2 5 6; 3 4 7 8"), joined("Bob", "1 2 3 4; 5 6 7 8"), joined("Cy", "1 2 3 4; 5 6 7 8"))
    assert "Bob, Cy" in said
    assert said.index("Students") < said.rindex("Ada")
    many = page(*(joined(f"s{i}", "1 2 3 4; 5 6 7 8") for i in range(MOST_NAMES + 3)))
    assert "and 3 more" in many.replace("\n", " ")


def test_a_long_list_is_cut_and_says_so() -> None:
    marks = scored("x", 1)
    assert f"The first {MOST_LISTED:,}" in page(*[marks] * (MOST_LISTED + 1))


def test_two_who_share_unusual_wrong_numbers_are_to_be_looked_at() -> None:
    odd = "17 23 5 41; 3 -9 77 8"
    others = [joined(f"s{i}", f"1 2 5 6; 3 4 {7 + i} {8 + 2 * i}") for i in range(6)]
    said = page(joined("Ada", odd), *others, joined("Bob", odd))
    assert "To be looked at side by side" in said
    assert "Ada" in said.split("side by side")[1].split("Students")[0]
    assert "s1" not in said.split("side by side")[1].split("Students")[0]


def test_named_mistakes_right_answers_and_common_numbers_are_no_reason() -> None:
    named = [joined(f"s{i}", "1 2 3 4; 5 6 7 8") for i in range(2)]
    right = [joined(f"r{i}", "1 2 5 6; 3 4 7 8") for i in range(2)]
    common = [joined(f"c{i}", "17 23 5 41; 3 -9 77 8") for i in range(6)]
    few = [joined(f"f{i}", "9 9 5 6; 3 4 9 8") for i in range(2)]
    assert "side by side" not in page(*named, *right, *common, *few)
