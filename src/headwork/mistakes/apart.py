"""Whether the mistakes of a problem can be told apart by their answers, and if not, which two cannot and why."""

from collections.abc import Collection, Iterator
from functools import cache
from itertools import combinations

from headwork.build import Sizes
from headwork.mistakes.diagnose import Diagnosis
from headwork.mistakes.evidence import Predictions, evidence, view
from headwork.mistakes.predict import float_handed
from headwork.readings.floats import Floats
from headwork.sheets.questions import Asked, questions
from headwork.sheets.ready import Ready

Planted = list[tuple[str, dict[Asked, Floats]]]
Alike = tuple[str, str]  # two tags, or one and nothing
SAME = 1e-9
UNITS = 2.5  # two answers in the last place may each be a unit off and must still differ


class Apart:
    """The mistakes that a problem's graph gives occasion for, made once, and held against any numbers that it gets."""

    def __init__(self, ready: Ready) -> None:
        self.ready, self._diagnosis = ready, Diagnosis(ready.ends)
        self._asked = [question for part in ready.problem.parts for question in questions(part, ready)]

    def structural(self) -> dict[Alike, str]:
        """Pairs of mistakes that the sizes alone make alike, or that they hide, each with the reason. The problem's
        numbers have no pattern, so what coincides on these coincides on all."""
        pairs = dict.fromkeys(_alike(*self._predictions(self.ready), SAME))
        return {pair: f"{_called(*pair)}: {_why(self.ready.sizes, *pair)}" for pair in pairs}

    def coincidence(self, ready: Ready, known: Collection[Alike] = ()) -> str:
        """Two mistakes that the numbers make alike to the places asked for, or one they hide; or nothing. `ready` is
        the problem's own or has its graph `again`. What is `known` to be so on all numbers is left out."""
        within = UNITS * 10.0**-ready.problem.places
        for pair in _alike(*self._predictions(ready), within):
            if pair not in known:
                return f"{_called(*pair)} on every sheet that was drawn"
        return ""

    def _predictions(self, ready: Ready) -> tuple[dict[Asked, Floats], Planted]:
        """What is asked for, right, and with every mistake."""
        handed = float_handed(ready.handed)
        truth = self._diagnosis.right.everything(handed)
        right = {q: view(q.found, truth[q.found.step]) for q in self._asked}
        keys = {q: (q.found.step.role, q.found.step.head) for q in self._asked}
        predicted: Planted = []
        for tag, graph in self._diagnosis.single:
            worked = graph.by_name(graph.everything(handed, truth))
            predicted.append((tag, {q: view(q.found, worked[key]) for q, key in keys.items() if key in worked}))
        return right, predicted


def _called(one: str, other: str) -> str:
    return f"{one} and {other} predict the same answer" if other else f"{one} predicts the right answer"


def _alike(right: dict[Asked, Floats], predicted: Planted, within: float) -> Iterator[Alike]:
    """Pairs of tags that coincide in an answer both change; a tag and "" where it changes none enough to be named."""
    changed = [
        (tag, {q: None for q, matrix in answers.items() if _differ(matrix, right[q], within)})
        for tag, answers in predicted
    ]

    @cache  # most mistakes are told by the first question that they change
    def enough(q: Asked) -> float:
        return Predictions((((tag,), answers[q]) for tag, answers in predicted if q in answers), right[q]).enough

    for (tag, questions_changed), (_, answers) in zip(changed, predicted, strict=True):
        told = ((q, evidence(answers[q], right[q], _each(within / UNITS, right[q]))) for q in questions_changed)
        if not any(bits >= enough(question) for question, bits in told):
            yield tag, ""
    for (i, (one, here)), (j, (other, there)) in combinations(enumerate(changed), 2):
        if one == other:
            continue
        for question in here.keys() & there.keys():
            if not _differ(predicted[i][1][question], predicted[j][1][question], within):
                yield one, other


def _each(number: float, matrix: Floats) -> Floats:
    return [[number] * len(row) for row in matrix]


def _differ(one: Floats, other: Floats, within: float) -> bool:
    if (len(one), len(one[0])) != (len(other), len(other[0])):
        return True
    for here, there in zip(one, other, strict=True):
        for a, b in zip(here, there, strict=True):
            if not abs(a - b) <= within:  # so that NaN differs
                return True
    return False


def _why(sizes: Sizes, one: str, other: str) -> str:
    """The reason in sizes, where it is a known one."""
    if {one, other} == {"scaled-by-d_k", "scaled-by-sqrt-d_model"}:
        return f"√d_model = √{sizes.d_model} and d_k = {sizes.d_k} are the same number; choose other sizes"
    if "scale" in one and not other and sizes.d_k == 1:
        return "√d_k = 1 changes nothing; choose d_k of 2 or more"
    if sizes.tokens == 1:
        return "with one token there is nothing to choose between; give 2 or more"
    shape = f"tokens = {sizes.tokens}, heads = {sizes.heads}, d_k = {sizes.d_k}"
    return f"with {shape} they do so whatever the numbers; choose other sizes"
