"""Predictions held against an answer: which of them it is, and whether that says more than chance would."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import comb, inf, isfinite, isnan, log2

from headwork.mistakes import slips
from headwork.readings.floats import Floats, flat
from headwork.sheets.ready import Found

# An answer names a mistake only if it says so many bits more than it takes to choose among all that are held against
# it: numbers written at random then fit one of them once in a thousand times at most.
BEYOND_CHANCE = 10.0
BEYOND_CHANCE_NEARBY = 4.0  # in an answer so close to the right one that chance is no rival

HIDDEN_AS = -1e9
NOISE = 1e-12  # of float64, in a total
SAME = 1e6  # predictions that agree to six places are one

Tags = tuple[str, ...]
EARLY_ROUNDING: Tags = ("early-rounding",)


def view(found: Found, matrix: Floats) -> Floats:
    """The part of a step's matrix that is asked for, always as rows and columns."""
    if found.row is None:
        return matrix
    row = matrix[found.row]
    return [row] if found.column is None else [[row[found.column]]]


def comparable(matrix: Floats) -> Floats:
    """Hidden entries as a number that can be taken away from itself."""
    return [[HIDDEN_AS if x == -inf else x for x in row] for row in matrix]


class Predictions:
    """Predictions for one question, those of a shape together."""

    def __init__(self, predictions: Iterable[tuple[Tags, Floats]], right: Floats) -> None:
        self.right = comparable(right)
        self.of_shape: dict[tuple[int, int], list[tuple[Tags, Floats, float]]] = defaultdict(list)
        self._by_total: dict[tuple[int, int], list[tuple[float, int]]] = {}
        self._rows: dict[tuple[int, int], list[tuple[Tags, Floats, list[float]]]] = {}
        for tags, matrix in predictions:
            matrix = comparable(matrix)
            self.of_shape[_shape(matrix)].append((tags, matrix, sum(map(sum, matrix))))

    @cached_property
    def enough(self) -> float:
        """The bits that tell one prediction from chance: the more of them differ, the more it takes."""
        alike = self.of_shape.get(_shape(self.right), ())
        different = {_digits(self.right), *(_digits(matrix) for tags, matrix, _ in alike if tags != EARLY_ROUNDING)}
        return BEYOND_CHANCE + log2(max(1, len(different) - 1))

    def fitting(self, answer: Floats, within: Floats, nearby: bool = False) -> list[Tags]:
        """The tags whose prediction is the answer, and says enough about it; less is enough `nearby`, where the
        answer is known not to be chance: a slip leads to it from the right one."""
        found = []
        numbers = flat(answer)
        total, room = sum(numbers), sum(map(sum, within)) + NOISE * (1 + sum(map(abs, numbers)))
        for tags, matrix in self._of_total(_shape(answer), total, room):
            if _fits(answer, matrix, within):
                enough = BEYOND_CHANCE_NEARBY if nearby or tags == EARLY_ROUNDING else self.enough
                if evidence(matrix, self.right, within) >= enough:
                    found.append(tags)
        return list(dict.fromkeys(found))

    def _of_total(self, shape: tuple[int, int], total: float, room: float) -> list[tuple[Tags, Floats]]:
        """The predictions of about this total: where totals are too far apart some entry is. In their own order."""
        if shape not in self._by_total:
            totals = ((its, i) for i, (_, _, its) in enumerate(self.of_shape.get(shape, ())) if not isnan(its))
            self._by_total[shape] = sorted(totals)
        by_total = self._by_total[shape]
        first, last = bisect_left(by_total, (total - room, -1)), bisect_right(by_total, (total + room, len(by_total)))
        each = self.of_shape.get(shape, ())
        return [each[i][:2] for i in sorted(i for _, i in by_total[first:last])]

    def nearly(self, answer: Floats, within: Floats) -> list[Tags]:
        """A mistake and a slip: all but one or two entries of a prediction."""
        shape = _shape(answer)
        size = shape[0] * shape[1]
        if size < 4:
            return []
        places = log2(comb(size, 1) + comb(size, 2))  # where the slip may be
        found: list[Tags] = []
        numbers, rooms = flat(answer), flat(within)
        for tags, matrix, prediction in self._in_a_row(shape):
            if _off_by_two_at_most(numbers, prediction, rooms):
                told = self._told(answer, matrix, within)
                if evidence(told, self.right, within) >= self.enough + places:
                    found += [(*tags, slip) for slip in slips.slips(answer, matrix, within)]
        return list(dict.fromkeys(found))

    def _in_a_row(self, shape: tuple[int, int]) -> list[tuple[Tags, Floats, list[float]]]:
        """The predictions whose numbers are all known, each with its numbers in one list."""
        if shape not in self._rows:
            each = ((tags, matrix, flat(matrix)) for tags, matrix, _ in self.of_shape.get(shape, ()))
            self._rows[shape] = [(tags, matrix, row) for tags, matrix, row in each if not any(map(isnan, row))]
        return self._rows[shape]

    def _told(self, answer: Floats, matrix: Floats, within: Floats) -> Floats:
        """What of a prediction the answer shows, with the right entry in place of a slip."""
        if _shape(matrix) != _shape(self.right):
            return matrix
        return [
            [r if abs(m - a) > w else m for a, m, w, r in zip(*rows, strict=True)]
            for rows in zip(answer, matrix, within, self.right, strict=True)
        ]


def _shape(matrix: Floats) -> tuple[int, int]:
    return len(matrix), len(matrix[0])


def _fits(answer: Floats, matrix: Floats, within: Floats) -> bool:
    for theirs, ours, rooms in zip(answer, matrix, within, strict=True):
        for a, m, w in zip(theirs, ours, rooms, strict=True):
            if not abs(m - a) <= w:  # so that NaN fits nothing
                return False
    return True


def _off_by_two_at_most(answer: list[float], prediction: list[float], within: list[float]) -> bool:
    off = 0
    for a, m, w in zip(answer, prediction, within, strict=True):
        if abs(m - a) > w:
            off += 1
            if off > 2:
                return False
    return True


def _digits(matrix: Floats) -> tuple[float, ...]:
    return tuple(round(x * SAME) if isfinite(x * SAME) else x for x in flat(matrix))


def evidence(prediction: Floats, right: Floats, within: Floats) -> float:
    """How many bits the fit is worth: which entries are not as they should be, and what is there instead.

    An answer in whole numbers is read on the grid of whole numbers, however many places are asked.
    """
    if _shape(prediction) != _shape(right):
        return inf  # the shape itself tells
    ours, theirs = flat(prediction), flat(right)
    distance = [abs(p - r) for p, r in zip(ours, theirs, strict=True)]
    rooms = [w for d, w in zip(distance, flat(within), strict=True) if d > w]
    if not rooms or not all(map(isfinite, ours)):
        return 0.0
    which = log2(comb(len(ours), len(rooms)))
    spread = max(_spread(theirs), _spread(ours), max(distance))
    if all(float(x).is_integer() for x in (*ours, *theirs)):
        return which + len(rooms) * log2(spread + 1)  # from 2 to 5 there are four whole numbers
    return which + sum(log2(max(1.0, spread / (2 * room))) for room in rooms)


def _spread(numbers: Sequence[float]) -> float:
    return max(numbers) - min(numbers)
