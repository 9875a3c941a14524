"""Which mistakes predict these numbers? Singly first, then in pairs; only what could be told from the right answer."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headwork.graph import Last, Rules, Step, ends
from headwork.mistakes import slips
from headwork.mistakes.catalogue import CATALOGUE
from headwork.mistakes.evidence import EARLY_ROUNDING, Predictions, Tags, comparable, view
from headwork.mistakes.operations import FLOATS
from headwork.mistakes.predict import MOST_KEPT, RoleAndHead, Route, Variant
from headwork.readings.floats import Floats
from headwork.sheets.ready import Found

T = TypeVar("T")
Worked = dict[RoleAndHead, Floats]
Handed = Mapping[Step, Floats]
Own = tuple[Handed, Callable[[], Floats]]  # earlier answers, and the room that they leave
MOST_STEPS = 56  # of a graph in which two mistakes at once are looked for
ONE_ENTRY: Tags = ("one-entry",)  # the slip that does not say where the number comes from


def advice(tags: Tags) -> str:
    """One line for a diagnosis."""
    return " ".join(slips.ADVICE.get(tag) or CATALOGUE[tag].advice for tag in tags)


@dataclass(frozen=True)
class Case:
    """An answer to be explained, how far apart entries are still the same, what is right, what is handed over. `key`
    names what is handed over, so that tables can be kept."""

    key: Any
    found: Found
    answer: Floats
    within: Floats
    right: Floats
    handed: Handed


class Variants(Generic[T]):
    """A graph as it is, with every mistake that it gives occasion for, and with every two of them."""

    def __init__(self, last: Last, rules: Rules[T]) -> None:
        self.rules, self.ends = rules, ends(last)
        self.right = Variant(last, rules)
        made = ((tag, graph) for tag, mistake in CATALOGUE.items() for graph in mistake.made_in(self.ends))
        self.single = [(tag, Variant(graph, rules, last)) for tag, graph in made]
        self._pairs: list[tuple[Tags, Variant[T]]] | None = None

    def pairs(self) -> list[tuple[Tags, Variant[T]]]:
        """Two mistakes at once; of those that can be made in one head, only the way that makes them in all. In a long
        graph, such as four heads there and back, there are thousands: none is looked for."""
        if self._pairs is None:
            self._pairs = []
            tags = list(CATALOGUE) if len(self.right.order) <= MOST_STEPS else []
            for one in tags:
                for graph in CATALOGUE[one].made_everywhere(self.ends):
                    for other in tags[tags.index(one) + 1 :]:
                        both = CATALOGUE[other].made_everywhere(graph)
                        self._pairs += [((one, other), Variant(g, self.rules)) for g in both]
        return self._pairs


class Diagnosis(Variants[Floats]):
    """The catalogue held against one problem: rewritten graphs, and what each predicts, worked out once."""

    def __init__(self, last: Last) -> None:
        super().__init__(last, FLOATS)
        self._tables: dict[tuple[Any, Found, int], Predictions] = {}
        self._worked: dict[tuple[Any, int], list[tuple[Tags, Worked]]] = {}
        self._mistaken: dict[tuple[Step, frozenset[Step]], list[tuple[Tags, Route[Floats]]]] = {}

    def table(self, key: Any, found: Found, right: Floats, handed: Handed, number: int) -> Predictions:
        """Predictions of so many mistakes at once."""
        if (key, found, number) not in self._tables:
            step = (found.step.role, found.step.head)
            worked = ((tags, all_steps.get(step)) for tags, all_steps in self._all(key, handed, number))
            predictions = ((tags, view(found, matrix)) for tags, matrix in worked if matrix is not None)
            self._tables[key, found, number] = Predictions(predictions, right)
        return self._tables[key, found, number]

    def predicted(self, key: Any, step: Step, handed: Handed) -> list[Floats | None]:
        """What each of the single mistakes makes of a step, in their order; None where one does not lead to it."""
        name = step.role, step.head
        return [worked.get(name) for _, worked in self._all(key, handed, 1)[: len(self.single)]]

    def _all(self, key: Any, handed: Handed, number: int) -> list[tuple[Tags, Worked]]:
        if (key, number) not in self._worked:
            graphs = [((tag,), graph) for tag, graph in self.single] if number == 1 else self.pairs()
            right = self.right.everything(handed)
            worked = [(tags, graph.by_name(graph.everything(handed, right))) for tags, graph in graphs]
            if number == 1:
                rounded = (self.right.everything(handed, rules=rules) for rules in slips.early_roundings())
                worked += [(EARLY_ROUNDING, self.right.by_name(meaning)) for meaning in rounded]
            self._worked[key, number] = worked
        return self._worked[key, number]

    def diagnose(self, case: Case, owns: Iterable[Own] = ()) -> list[Tags]:
        """Every mistake, or pair of mistakes, that the answer is consistent with; `owns` are a student's earlier
        answers, where they lead elsewhere than the truth does, and how far apart entries are then the same."""
        answer, right, within = comparable(case.answer), comparable(case.right), case.within
        table = self.table(case.key, case.found, right, case.handed, 1)
        slipped = [(slip,) for slip in slips.slips(answer, right, within)]
        named = table.fitting(answer, within, nearby=any(slip != ONE_ENTRY for slip in slipped))
        if named:
            slipped = slipped[-1:]  # beside a mistake the widest slip is enough
        else:
            each = (self._from_own(case, answer, own, room) for own, room in owns)
            named += next(filter(None, each), [])
        named += slipped
        if named:
            return _without_vaguer(named)
        size = len(answer), len(answer[0])
        if size == (1, 1) or size not in {(len(right), len(right[0])), *table.of_shape}:
            return []  # one number, or of a shape that no single mistake has
        named = self.table(case.key, case.found, right, case.handed, 2).fitting(answer, within)
        named += table.nearly(answer, within)
        return list(dict.fromkeys(named))

    def told(self, case: Case) -> list[Tags]:
        """The single mistakes that predict the answer. Rounding is none that later answers follow from."""
        table = self.table(case.key, case.found, comparable(case.right), case.handed, 1)
        return [tags for tags in table.fitting(comparable(case.answer), case.within) if tags != EARLY_ROUNDING]

    def _from_own(self, case: Case, answer: Floats, own: Handed, room: Callable[[], Floats]) -> list[Tags]:
        """A mistake made only now, on top of earlier answers that may hold others."""
        found, base = case.found, {**case.handed, **own}
        follows = self.right.predict(found.step, base)
        if follows is None:
            return []
        right, within = comparable(view(found, follows)), room()
        predicted = ((tags, view(found, route.value(base))) for tags, route in self._mistaken_routes(found.step, base))
        named = Predictions(predicted, right).fitting(answer, within)
        return named + [(slip,) for slip in slips.slips(answer, right, within)]

    def _mistaken_routes(self, step: Step, handed: Handed) -> list[tuple[Tags, Route[Floats]]]:
        """The single mistakes that can be made between what is handed over and the step."""
        key = (step, frozenset(handed))
        if key not in self._mistaken:
            if len(self._mistaken) >= MOST_KEPT:
                self._mistaken.clear()
            routes = [((tag,), graph.route(step, handed)) for tag, graph in self.single]
            self._mistaken[key] = [(tags, route) for tags, route in routes if route is not None and route.mistaken]
        return self._mistaken[key]


def _without_vaguer(named: list[Tags]) -> list[Tags]:
    """A named mistake says more than "one entry"."""
    kept = list(dict.fromkeys(named))
    return [tags for tags in kept if tags != ONE_ENTRY] or kept
