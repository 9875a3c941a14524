"""Numbers for `fuzz.py` as a sheet writes them: ordinary, extreme, and junk in their place."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any


def small(draw: Random) -> Any:
    return draw.choice([draw.randint(-9, 9), f"{draw.randint(-99, 99) / 10}", draw.choice(["1/3", "-2/7", "sqrt(2)"])])


def huge(draw: Random) -> Any:
    return draw.choice([-1, 1]) * draw.randrange(10 ** draw.choice([3, 6, 9, 20, 40, 79]))


def tiny(draw: Random) -> Any:
    return f"{draw.randint(-99, 99)}e-{draw.randint(1, 40)}"


def long_decimal(draw: Random) -> Any:
    return f"{draw.randint(-99, 99)}." + "".join(draw.choices("0123456789", k=draw.randint(5, 70)))


def deep_fraction(draw: Random) -> Any:
    if draw.random() < 0.5:
        return f"{draw.randrange(10**38)}/{draw.randrange(1, 10**38)}"
    depth = draw.randint(1, 10)
    return "1/(1+" * depth + str(draw.randint(1, 9)) + ")" * depth


def roots(draw: Random) -> Any:
    radicand = draw.choice([2, 3, 5, 7, 10, 30, 999983, 999999999989, draw.randint(2, 10**12)])
    return draw.choice(["sqrt({r})", "-sqrt({r})/7", "1/(1+sqrt({r}))", "sqrt(2)+sqrt({r})-sqrt(5)"]).format(r=radicand)


def nearly_equal(draw: Random) -> Any:
    return f"1.{'0' * draw.choice([3, 20, 60])}{draw.randint(1, 9)}"


def far_apart(draw: Random) -> Any:
    return draw.choice([0, 1, -1, 1000, 30_000, -1_000_000, 10**12, "0.125", "1/8"])


def near_ties(draw: Random) -> Any:
    return draw.choice(["0.125", "0.005", "-0.015", "1/2", "1e-30", 1, 0, 2, 1000])


EXTREME = (huge, tiny, long_decimal, deep_fraction, roots, nearly_equal, far_apart, near_ties)
JUNK: tuple[Any, ...] = (
    *("nan", "inf", "-inf", "", " ", "1/0", "--1", "1e999", "0x10", "1_000", "٣", "x", "sqrt(-1)", "sqrt(sqrt(2))"),
    *("(" * 70, "9" * 100, "1" + "+1" * 39, "√" * 79, "\x00", "\u202e1", "{}", "[]", "<script>", "$(id)", "\\", "𝟙"),
    *(None, True, 1.5, 10**90, -(10**79), [], [[]], {}, [1], {"a": 1}, [[[[1]]]], "a" * 2000),
)


def junk(draw: Random) -> Any:
    return draw.choice(JUNK)


def matrix(draw: Random, rows: int, columns: int, number: Callable[[Random], Any]) -> list[list[Any]]:
    return [[number(draw) for _ in range(columns)] for _ in range(rows)]
