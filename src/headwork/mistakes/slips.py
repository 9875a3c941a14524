"""Slips of the pen: an answer that is nearly a matrix we know.

A slip is told from the answer alone, held against the right matrix (or against one that follows, or one that a
mistake predicts): which entries differ, and how. Rounding too early is the one slip that is worked forward instead.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import copysign, floor

from headwork.graph import Rules, Step
from headwork.mistakes.operations import FLOATS
from headwork.readings.floats import Floats, flat

ADVICE = {
    "sign": "A sign looks flipped: check the minus signs.",
    "one-entry": "Only one entry differs: work that one again.",
    "swapped-entries": "Two entries look exchanged: check their places.",
    "transposed": "Rows and columns look exchanged.",
    "early-rounding": "This looks rounded on the way: keep two more decimals until the end.",
}
WHOLE = 2.0**52  # from here on float64 has no places after the point
FEWEST_ENTRIES = 3  # in a smaller answer "all right but one" says nothing


def slips(answer: Floats, matrix: Floats, within: Floats) -> Iterator[str]:
    """The slips that lead from the matrix to the answer, the widest last; `within` is how far apart two entries count
    as the same.

    >>> a, close = [[1, 2], [3, 4]], [[0.01, 0.01], [0.01, 0.01]]
    >>> list(slips(a, [[1, 2], [-3, 4]], close)), list(slips(a, [[1, 3], [2, 4]], close))
    (['sign'], ['swapped-entries', 'transposed'])
    """
    rows, columns = len(matrix), len(matrix[0])
    if (len(answer), len(answer[0])) == (rows, columns):
        yield from _in_place(_differing(answer, matrix, within), rows * columns)
    if (len(answer), len(answer[0])) == (columns, rows) and min(rows, columns) > 1:
        turned = [*zip(*matrix, strict=True)]
        if not _differing(answer, turned, within):
            yield "transposed"


def _in_place(wrong: list[tuple[float, float, float]], size: int) -> Iterator[str]:
    if not wrong:
        return
    flipped = all(abs(theirs + ours) <= room for theirs, ours, room in wrong)
    if flipped:
        yield "sign"
    if len(wrong) == 1 and not flipped and size >= FEWEST_ENTRIES:
        yield "one-entry"
    if len(wrong) == 2:
        (one, ours, room), (other, theirs, there) = wrong
        if abs(one - theirs) <= max(room, there) >= abs(other - ours):
            yield "swapped-entries"


def _differing(answer: Floats, matrix: Floats, within: Floats) -> list[tuple[float, float, float]]:
    """Entries that are not the same: the answer's, the matrix's, and how far apart they might have been."""
    together = zip(flat(answer), flat(matrix), flat(within), strict=True)
    return [(a, m, w) for a, m, w in together if not abs(a - m) <= w]  # so that NaN differs from everything


def early_roundings() -> Iterator[Rules[Floats]]:
    """Ways of rounding too early, each a table to read with: every step to so many places, or the weights alone."""
    for places in (0, 1, 2, 3):
        for roles in (None, ("weights",)):
            yield rounded_rules(places, roles)


def rounded_rules(places: int, roles: tuple[str, ...] | None = None) -> Rules[Floats]:
    """Every step, or those of some roles, worked out and then rounded."""
    return {op: partial(_then_rounded, rule, places, roles) for op, rule in FLOATS.items()}


def _then_rounded(
    rule: Callable[..., Floats], places: int, roles: tuple[str, ...] | None, step: Step, *inputs: Floats
) -> Floats:
    value = rule(step, *inputs)
    return half_up(value, places) if roles is None or step.role in roles else value


def half_up(matrix: Floats, places: int) -> Floats:
    """Rounded as at school: halves away from zero. float64 noise just below a half counts as the half."""
    unit = 10.0**places
    return [
        [copysign(floor(abs(x) * unit + 0.5 + 1e-9) / unit, x) if abs(x) < WHOLE / unit else x for x in row]
        for row in matrix
    ]
