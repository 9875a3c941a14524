"""Answers to a sheet as students write them: right, with a mistake, a slip of the pen, two mistakes, or random."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np

from headwork.marking.answers import Answers
from headwork.marking.mark import Marker, ProblemMarker
from headwork.marking.marks import Marks
from headwork.mistakes.evidence import Tags
from headwork.mistakes.make import Plan
from headwork.mistakes.operations import FLOATS
from headwork.mistakes.predict import Variant, float_handed
from headwork.mistakes.slips import early_roundings, half_up, rounded_rules
from headwork.readings.floats import Floats
from headwork.readings.values import Array
from headwork.sheets.sheet import Sheet

PLANS = (
    Plan("multi_head", 3, 2, 6),
    Plan("multi_head", 3, 2, 6, mask="causal"),
    Plan("multi_head_blocks", 3, 2, 6, mask="causal"),
    Plan("multi_head_blocks", 3, 2, 6, biases=True),
    Plan("multi_head_blocks", 4, 2, 8),
    Plan("multi_head", 4, 2, 6),
    Plan("single_head", 3, 1, 3, mask="causal"),
    Plan("scaled_dot_product", 3, 1, 3),
)
PLACES = (2, 4)
Matrices = dict[tuple[str, str], Array]  # (part, name) → answer


def texts(matrices: Matrices, places: int) -> Answers:
    """Answers as a student writes them: rounded to so many places."""
    parts: dict[str, dict[str, list[list[str]]]] = {}
    for (part, name), matrix in matrices.items():
        rows = [[f"{x:.{places}f}" for x in row] for row in half_up(matrix.tolist(), places)]
        parts.setdefault(part, {})[name] = rows
    return Answers("student", parts)


class Desk:
    """One sheet: the right answers, and those that a graph predicts."""

    def __init__(self, sheet: Sheet) -> None:
        self.marker = Marker(sheet)
        self.problem: ProblemMarker = self.marker.problems[0]
        self.diagnosis = self.problem.judge.diagnosis
        self.asked = {(label, q.name): q for label, truth in self.problem.truths.items() for q in truth.asked}
        self.handed = float_handed(self.problem.ready.handed)

    def right(self) -> Matrices:
        return {key: np.array(self.problem.truths[key[0]].near[q.found.step]) for key, q in self.asked.items()}

    def with_graph(self, graph: Variant[Floats]) -> Matrices:
        """Where the mistake leaves no answer of any shape, the student leaves off."""
        worked = graph.by_name(graph.everything(self.handed))
        steps = {key: (q.found.step.role, q.found.step.head) for key, q in self.asked.items()}
        arrays = {key: np.array(worked[step]) for key, step in steps.items() if step in worked}
        return {key: array for key, array in arrays.items() if np.isfinite(array).all()}

    def mark(self, matrices: Matrices, places: int) -> Marks:
        return self.marker.mark(texts(matrices, places))


def planted_alone(desk: Desk, generator: Random) -> Iterator[tuple[str, Matrices]]:
    """Every mistake alone, in every way, and every slip in one answer."""
    for tag, graph in desk.diagnosis.single:
        yield tag, desk.with_graph(graph)
    for rules in list(early_roundings())[4:6]:  # to two places, everything or the weights
        worked = desk.diagnosis.right.everything(desk.handed, rules=rules)
        last = list(desk.asked)[-1]
        step = desk.asked[last].found.step
        yield "early-rounding", {last: np.array(worked[step])}
    for slip in ("sign", "one-entry", "swapped-entries", "transposed"):
        if (answers := slipped(slip, desk.right(), generator)) is not None:
            yield slip, answers


def slipped(slip: str, answers: Matrices, generator: Random) -> Matrices | None:
    """One answer with a slip of the pen in it; what comes after it is left off."""
    keys = list(answers)
    number = generator.randrange(len(keys))
    matrix = slipped_matrix(slip, answers[keys[number]], generator)
    if matrix is None:
        return None
    return {**{key: answers[key] for key in keys[:number]}, keys[number]: matrix}


def slipped_matrix(slip: str, before: Array, generator: Random) -> Array | None:
    """The matrix with a slip of the pen in it; None where it leaves no trace."""
    matrix = before.copy()
    rows, columns = matrix.shape
    i, j, k, m = (generator.randrange(size) for size in (rows, columns, rows, columns))
    if slip == "sign":
        matrix[i, j] *= -1
    elif slip == "one-entry":
        steps = [half / 2 for half in range(-8, 9) if half and abs(2 * matrix[i, j] + half / 2) > 0.05]
        matrix[i, j] += generator.choice(steps)  # never to −x: that would be a sign, and is planted as one
    elif slip == "swapped-entries":
        matrix[i, j], matrix[k, m] = matrix[k, m], matrix[i, j]
    else:
        matrix = matrix.T
    return None if matrix.shape == before.shape and np.abs(matrix - before).max() < 0.05 else matrix


CARRIED = {"at full precision": None, "with two guard digits": 2, "rounded at every step": 0}  # how it is carried on


def carried_on(desk: Desk, places: int, guard: int | None, generator: Random) -> tuple[Matrices, int] | None:
    """A slip in one entry of an answer, and every later answer worked from it; also which answer was slipped in.
    `guard` digits are kept of every step beyond the places asked for, or all."""
    rules = FLOATS if guard is None else rounded_rules(places + guard)
    keys = list(desk.asked)
    number = generator.randrange(len(keys) - 1)
    step = desk.asked[keys[number]].found.step
    before = desk.diagnosis.right.everything(desk.handed, rules=rules)
    slip = generator.choice(("sign", "one-entry", "swapped-entries"))
    made = slipped_matrix(slip, np.array(before[step]), generator)
    if made is None:
        return None
    after = desk.diagnosis.right.everything({**desk.handed, step: made.tolist()}, rules=rules)
    return {key: np.array(after[q.found.step]) for key, q in desk.asked.items()}, number


def as_alone(desk: Desk, tags: Tags, answers: Matrices, places: int) -> bool:
    """Whether one of these mistakes alone leads, digit for digit, to every answer handed in: then nothing in them
    shows the other. (No exponential, for one, undoes any scale; and heads that were added up meet no W_O.)"""
    alone = (desk.with_graph(graph) for tag, graph in desk.diagnosis.single if tag in tags)
    return any(all(_same_digits(matrix, one.get(key), places) for key, matrix in answers.items()) for one in alone)


def _same_digits(matrix: Array, other: Array | None, places: int) -> bool:
    return other is not None and half_up(matrix.tolist(), places) == half_up(other.tolist(), places)


def random_wrong(matrix: Array, generator: np.random.Generator) -> tuple[Array, Array]:
    """Numbers of the size of the right ones and of no other connection: everywhere, and in two or three entries."""
    drawn = _like(matrix, generator)
    spoilt = np.zeros(matrix.size, bool)
    spoilt[generator.choice(matrix.size, generator.integers(2, 4), replace=False)] = True
    return drawn, np.where(spoilt.reshape(matrix.shape), drawn, matrix)


def _like(matrix: Array, generator: np.random.Generator) -> Array:
    """Whole numbers for whole numbers, weights for weights, anything else of the same spread."""
    if np.all(matrix == np.round(matrix)):
        low, high = int(matrix.min()), int(matrix.max())
        return generator.integers(low - 1, high + 2, matrix.shape).astype(np.float64)
    if np.all(matrix >= 0) and np.allclose(matrix.sum(axis=1), 1):
        drawn = generator.random(matrix.shape) + 0.01
        return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))
    return generator.uniform(matrix.min() - 0.5, matrix.max() + 0.5, matrix.shape)
