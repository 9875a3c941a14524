"""Whether the mistakes of a problem can be told apart by their answers, and if not, which two cannot and why."""

from collections.abc import Collection, Iterator
from itertools import combinations

from headwork.mistakes.diagnose import Diagnosis
from headwork.mistakes.evidence import Predictions, evidence, view
from headwork.mistakes.predict import float_handed
from headwork.readings.floats import Floats, flat
from headwork.sheets.questions import Asked, questions
from headwork.sheets.ready import Ready
from headwork.sheets.sheet import Problem

Planted = list[tuple[str, dict[Asked, Floats]]]
Alike = tuple[str, str]  # two tags, or one and nothing
SAME = 1e-9
UNITS = 2.5  # two answers in the last place may each be a unit off and must still differ


def structural(problem: Problem) -> dict[Alike, str]:
    """Pairs of mistakes that the sizes alone make alike, on any numbers, or that they hide; each with the reason."""
    pairs = dict.fromkeys(_alike(problem, SAME))
    return {pair: f"{_called(*pair)}: {_why(problem, *pair)}" for pair in pairs}


def coincidence(problem: Problem, known: Collection[Alike] = ()) -> str:
    """Two mistakes that these numbers make alike to the places asked for, or one they hide; or nothing. What is
    `known` to be so on all numbers is left out."""
    within = UNITS * 10.0**-problem.places
    for pair in _alike(problem, within):
        if pair not in known:
            return f"{_called(*pair)} on every sheet that was drawn"
    return ""


def _called(one: str, other: str) -> str:
    return f"{one} and {other} predict the same answer" if other else f"{one} predicts the right answer"


def _alike(problem: Problem, within: float) -> Iterator[Alike]:
    """Pairs of tags that coincide in an answer both change; a tag and "" where it changes none enough to be named."""
    right, predicted = _predictions(problem)
    changed = [
        (tag, {q for q, matrix in answers.items() if _differ(matrix, right[q], within)}) for tag, answers in predicted
    ]
    held = {
        q: Predictions((((tag,), answers[q]) for tag, answers in predicted if q in answers), matrix)
        for q, matrix in right.items()
    }
    for (tag, questions_changed), (_, answers) in zip(changed, predicted, strict=True):
        told = ((q, evidence(answers[q], right[q], _each(within / UNITS, right[q]))) for q in questions_changed)
        if not any(bits >= held[question].enough for question, bits in told):
            yield tag, ""
    for (i, (one, here)), (j, (other, there)) in combinations(enumerate(changed), 2):
        if one == other:
            continue
        for question in here & there:
            if not _differ(predicted[i][1][question], predicted[j][1][question], within):
                yield one, other


def _predictions(problem: Problem) -> tuple[dict[Asked, Floats], Planted]:
    ready = Ready(problem)
    asked = [question for part in problem.parts for question in questions(part, ready)]
    handed = float_handed(ready.handed)
    diagnosis = Diagnosis(ready.ends)
    truth = diagnosis.right.everything(handed)
    right = {q: view(q.found, truth[q.found.step]) for q in asked}
    keys = {q: (q.found.step.role, q.found.step.head) for q in asked}
    predicted: Planted = []
    for tag, graph in diagnosis.single:
        worked = graph.by_name(graph.everything(handed, truth))
        predicted.append((tag, {q: view(q.found, worked[key]) for q, key in keys.items() if key in worked}))
    return right, predicted


def _each(number: float, matrix: Floats) -> Floats:
    return [[number] * len(row) for row in matrix]


def _differ(one: Floats, other: Floats, within: float) -> bool:
    if (len(one), len(one[0])) != (len(other), len(other[0])):
        return True
    return not all(abs(a - b) <= within for a, b in zip(flat(one), flat(other), strict=True))


def _why(problem: Problem, one: str, other: str) -> str:
    """The reason in sizes, where it is a known one."""
    sizes = Ready(problem).sizes
    if {one, other} == {"scaled-by-d_k", "scaled-by-sqrt-d_model"}:
        return f"√d_model = √{sizes.d_model} and d_k = {sizes.d_k} are the same number; choose other sizes"
    if "scale" in one and not other and sizes.d_k == 1:
        return "√d_k = 1 changes nothing; choose d_k of 2 or more"
    if sizes.tokens == 1:
        return "with one token there is nothing to choose between; give 2 or more"
    shape = f"tokens = {sizes.tokens}, heads = {sizes.heads}, d_k = {sizes.d_k}"
    return f"with {shape} they do so whatever the numbers; choose other sizes"
