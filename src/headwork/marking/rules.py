"""How a problem is marked: a sheet's `[marking]` table.

[marking]
tolerance = "last-place"     # see headwork.marking.tolerance
points = { a = 3, b = "1/2" }  # 1 for every part that is not named
credit = "entry"             # for every right entry; "matrix": for whole answers; "part": for a part all right
penalty = "1/10"             # share of an answer's points lost for every wrong answer it carries on
shape = true                 # whether a wrong shape is told the right one
working_from = 2026-12-01    # the working of wrong entries is held back until this day
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from typing import Any

from headwork.errors import HeadworkError
from headwork.marking.tolerance import Tolerance
from headwork.numbers.parse import parse_number
from headwork.sheets.sheet import Problem

CREDIT = ("entry", "matrix", "part")
_KEYS = ("tolerance", "points", "credit", "penalty", "shape", "working_from")


@dataclass(frozen=True)
class MarkingRules:
    """The rules of one problem."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    points: Mapping[str, Fraction] = field(default_factory=dict)
    credit: str = "entry"
    penalty: Fraction = Fraction(0)
    shape: bool = False
    working_from: date | None = None

    def points_of(self, label: str) -> Fraction:
        return self.points.get(label, Fraction(1))

    @classmethod
    def of(cls, problem: Problem) -> MarkingRules:
        """A problem's own: its table, and the points that stand on its parts."""
        rules = cls.read(problem.marking, tuple(part.label for part in problem.parts))
        on_parts = {part.label: part.points for part in problem.parts if part.points is not None}
        if twice := [label for label in on_parts if label in rules.points]:
            raise HeadworkError(f"part '{twice[0]}' has points of its own and under [marking]; give them once")
        return replace(rules, points={**rules.points, **on_parts})

    @classmethod
    def read(cls, table: Mapping[str, Any], labels: tuple[str, ...]) -> MarkingRules:
        """The rules that a sheet's table gives; every key checked."""
        if unknown := [key for key in table if key not in _KEYS]:
            raise HeadworkError(f"unknown key '{unknown[0][:40]}' in [marking]; allowed are {', '.join(_KEYS)}")
        points = table.get("points", {})
        if not isinstance(points, Mapping):
            raise HeadworkError("[marking] points must be a table from labels to numbers, such as { a = 3 }")
        if stray := [label for label in points if label not in labels]:
            raise HeadworkError(f"[marking] points names part '{stray[0][:40]}'; there is {', '.join(labels)}")
        credit = table.get("credit", "entry")
        if credit not in CREDIT:
            raise HeadworkError(f"[marking] credit = {str(credit)[:40]} is none of {', '.join(CREDIT)}")
        shape, day = table.get("shape", False), table.get("working_from")
        if not isinstance(shape, bool):
            raise HeadworkError("[marking] shape is true or false")
        if day is not None and type(day) is not date:
            raise HeadworkError("[marking] working_from is a day, written 2026-12-01 without quotes")
        return cls(
            Tolerance.read(str(table.get("tolerance", "last-place"))),
            {label: _share("points", number, None) for label, number in points.items()},
            credit,
            _share("penalty", table.get("penalty", 0), 1),
            shape,
            day,
        )


def _share(key: str, value: Any, most: int | None) -> Fraction:
    number = parse_number(value if isinstance(value, int) and not isinstance(value, bool) else str(value))
    if not isinstance(number, Fraction) or number < 0 or (most is not None and number > most):
        raise HeadworkError(
            f"[marking] {key} = {str(value)[:40]} must be a fraction from 0{f' to {most}' if most else ' on'}"
        )
    return number
