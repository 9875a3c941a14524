"""What is right: a part's questions and their answers, in closed form and in float64, worked out once for a class."""

from headwork.graph import Step, needed
from headwork.mistakes.predict import MOST_KEPT, float_handed
from headwork.readings.exact import Matrix
from headwork.readings.floats import Floats
from headwork.sheets.questions import Asked, questions
from headwork.sheets.ready import Ready
from headwork.sheets.sheet import NUMBERS, Part


class Truth:
    """One part: what it asks, what is handed over for it, and what is right. `near` is float64, of what is handed over
    and of what is asked. `hands` is the same for parts that hand over the same, such as all without matrices of their
    own: what follows from those need be worked out only once."""

    def __init__(self, part: Part, ready: Ready) -> None:
        self.part = part
        self.hands = part.label if part.given else None
        self.asked: tuple[Asked, ...] = questions(part, ready)
        self.handed: dict[Step, Floats] = {}
        self.near: dict[Step, Floats] = {}
        if part.kind in NUMBERS:
            self.exact: dict[Step, Matrix] = ready.truth(part)
            self.handed_exact: dict[Step, Matrix] = ready.handed_in(part)
            self.handed = float_handed(self.handed_exact)
            asked = {question.found.step: self.exact[question.found.step] for question in self.asked}
            self.near = {**self.handed, **float_handed(asked)}
        self._sources: dict[tuple[Step, frozenset[Step]], list[Step]] = {}

    def sources(self, step: Step, answered: frozenset[Step]) -> list[Step]:
        """Which of the steps answered before this one rests on, unless the part hands the step over."""
        key = (step, answered)
        if key not in self._sources:
            if len(self._sources) >= MOST_KEPT:
                self._sources.clear()
            before = {s for s in answered if s is not step and s not in self.handed}
            self._sources[key] = [s for s in needed(step, {*self.handed, *before}) if s in before]
        return self._sources[key]
