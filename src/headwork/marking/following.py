"""Follow-through: what a student's own earlier answers lead to.

Numbers are handed on in two ways. As they were written; or in hand, by who keeps everything and rounds only when
writing. In hand is what the slips so far lead to at full precision, with every slip in its place. All that is not
known of a slip is what was left off where it was written, rounded or cut: so each is moved by a unit, alone, and as far
as that moves a later number, so much more room has that number.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import isfinite, isnan
from typing import Any

from headwork.graph import Step, read
from headwork.marking.table import MISSING, Numbers
from headwork.marking.tolerance import Written
from headwork.marking.truth import Truth
from headwork.mistakes.predict import Variant
from headwork.readings.exact import EXACT, HIDDEN, Matrix
from headwork.readings.floats import Floats, flat
from headwork.sheets.questions import Asked
from headwork.sheets.ready import Found

Entry = tuple[Step, int, int]
Places = Collection[tuple[int, int]]
DIGITS = 12  # of a number in hand, where its working is shown


@dataclass
class InHand:
    """What a student has in hand for a step. `slips` are the answers marked wrong that it rests on."""

    near: Floats
    slips: frozenset[str] = frozenset()
    trivial: bool = False  # as written: all its entries are one number
    work: Callable[[], dict[Entry, Floats]] = dict

    @cached_property
    def moved(self) -> dict[Entry, Floats]:
        """The same with one slip's number moved by a unit, for every slip that matters here."""
        return self.work()


@dataclass
class Own:
    """The earlier answers that one step rests on, as written or in hand, and what they lead to."""

    truth: Truth
    step: Step
    right: Variant[Floats]
    near: Mapping[Step, Floats]
    slips: frozenset[str]
    written: Mapping[Step, Matrix] | None = None  # in closed form
    hands: Mapping[Step, InHand] = field(default_factory=dict)

    @cached_property
    def follows(self) -> Floats | None:
        """What they lead to; None where it is no matrix of numbers."""
        found = self.right.predict(self.step, {**self.truth.handed, **self.near})
        return None if found is None or any(map(isnan, flat(found))) else found

    @cached_property
    def meaning(self) -> dict[Step, Matrix]:
        """The same in closed form."""
        own = self.written or {step: _rounded(matrix) for step, matrix in self.near.items()}
        return read(self.step, EXACT, {**self.truth.handed_exact, **own})

    @cached_property
    def moved(self) -> dict[Entry, Floats]:
        """What they lead to with one slip moved by a unit, for every slip."""
        entries = dict.fromkeys(entry for hand in self.hands.values() for entry in hand.moved)
        found = {}
        for entry in entries:
            near = {step: hand.moved.get(entry, hand.near) for step, hand in self.hands.items()}
            matrix = self.right.predict(self.step, {**self.truth.handed, **near})
            if matrix is not None:
                found[entry] = matrix
        return found

    @cached_property
    def room(self) -> Floats:
        """How far the rounding of the slips may move each number."""
        assert self.follows is not None
        room = [[0.0] * len(row) for row in self.follows]
        for matrix in self.moved.values():
            for total, row, other in zip(room, self.follows, matrix, strict=True):
                for j, x in enumerate(row):
                    if x != other[j]:  # as −∞ is not from itself
                        total[j] += abs(x - other[j])
        return room


@dataclass
class Earlier:
    """What a student has answered so far in a problem."""

    exact: dict[Step, list[list[Any]]] = field(default_factory=dict)
    near: dict[Step, list[list[float]]] = field(default_factory=dict)
    trivial: set[Step] = field(default_factory=set)
    hands: dict[Step, InHand] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)  # the answers whose mistake has a name

    @property
    def slipped(self) -> bool:
        return any(hand.slips for hand in self.hands.values())

    def as_written(self, truth: Truth, step: Step, right: Variant[Floats]) -> Own | None:
        """The earlier answers that a step rests on; None where there are none, or none worth following."""
        sources = truth.sources(step, frozenset(self.exact))
        if not sources or self.trivial.intersection(sources):
            return None
        exact = {source: tuple(map(tuple, self.exact[source])) for source in sources}
        slips = frozenset().union(*(self.hands[source].slips for source in sources))
        return Own(truth, step, right, {source: self.near[source] for source in sources}, slips, exact)

    def in_hand(self, truth: Truth, step: Step, right: Variant[Floats]) -> Own | None:
        """The same at full precision; None where no slip was made: then that is the truth."""
        hands = {source: self.hands[source] for source in truth.sources(step, frozenset(self.hands))}
        slips = frozenset().union(*(hand.slips for hand in hands.values()))
        if not slips or any(hand.trivial for hand in hands.values()):
            return None
        return Own(truth, step, right, {source: hand.near for source, hand in hands.items()}, slips, hands=hands)

    def remember(self, truth: Truth, question: Asked, answer: Numbers) -> None:
        """The answer, laid over the truth, is what later answers may follow from."""
        found = question.found
        step = found.step
        matrix = self.exact.setdefault(step, [list(row) for row in truth.exact[step]])
        near = self.near.setdefault(step, [list(row) for row in truth.near[step]])
        for i, j, number in _placed(found, answer):
            matrix[i][j], near[i][j] = number.value, number.near
        if _trivial(matrix) and not _trivial(truth.exact[step]):
            self.trivial.add(step)

    def keep(self, truth: Truth, step: Step, own: Own | None = None) -> None:
        """In hand is what the answers behind lead to, or the truth."""
        if own is None or own.follows is None:
            self._lay(step, InHand(truth.near[step]))
        else:
            self._lay(step, InHand(own.follows, own.slips, work=lambda: own.moved))

    def _lay(self, step: Step, hand: InHand) -> None:
        """A step that is asked for row by row keeps the slips of the rows before."""
        before = self.hands.get(step)
        if before is None or not before.slips:
            self.hands[step] = hand

    def slip(self, truth: Truth, question: Asked, answer: Numbers, wrong: Places, places: int, name: str) -> None:
        """Some entries are the student's own: they are in hand as written, but for their rounding. `name` is what was
        marked wrong, or nothing where the numbers only follow from others."""
        step = question.found.step
        before = self.hands[step]
        own = {(i, j): n for i, j, n in _placed(question.found, answer) if (i, j) in wrong}
        whole = all(float(x).is_integer() for x in flat(truth.near[step]) if isfinite(x))
        rooms = {place: _a_unit(number, places, whole) for place, number in own.items()}
        near = _laid(before.near, {place: number.near for place, number in own.items()})

        def moved() -> dict[Entry, Floats]:
            kept = {entry: _laid(m, {p: n.near for p, n in own.items()}) for entry, m in before.moved.items()}
            kept = {entry: matrix for entry, matrix in kept.items() if matrix != near}
            new = {(step, *p): _laid(near, {p: own[p].near + room}) for p, room in rooms.items() if room}
            return {**kept, **new}

        slips = before.slips | {name} if name else before.slips
        self.hands[step] = InHand(near, slips, step in self.trivial, moved)


def _placed(found: Found, answer: Numbers) -> Iterator[tuple[int, int, Written]]:
    for i, row in enumerate(answer, found.row or 0):
        for j, number in enumerate(row, found.column or 0):
            if number is not MISSING:
                yield i, j, number


def _laid(matrix: Floats, own: Mapping[tuple[int, int], float]) -> list[list[float]]:
    """The matrix with some entries replaced."""
    laid = [list(row) for row in matrix]
    for (i, j), number in own.items():
        laid[i][j] = number
    return laid


def _a_unit(number: Written, asked: int, whole: bool) -> float:
    """How far writing it may have moved a number; nothing where it is a fraction, or whole like all that are right."""
    if number.places is None or (whole and number.near.is_integer()):
        return 0.0
    return 10.0 ** -max(asked, number.places)


def _rounded(matrix: Floats) -> Matrix:
    return tuple(tuple(Fraction(repr(round(x, DIGITS))) if isfinite(x) else HIDDEN for x in row) for row in matrix)


def _trivial(matrix: Any) -> bool:
    """All entries equal: nothing is left to follow through."""
    flat_ = [x for row in matrix for x in row]
    return len(flat_) > 1 and all(type(x) is type(flat_[0]) and x == flat_[0] for x in flat_)
