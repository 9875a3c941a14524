"""The parts of one problem worked, in order: the lines that a page needs."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction

from headwork import working as w
from headwork.build import build
from headwork.errors import HeadworkError
from headwork.formulas import cut, formula_named
from headwork.graph import Step, needed
from headwork.numbers.certain import Certain
from headwork.numbers.closed import Closed
from headwork.numbers.digits import rounded
from headwork.ops import Given, MatMul, Rows, Split, Stack, Sums, Transpose
from headwork.readings.entries import origin
from headwork.readings.exact import Matrix
from headwork.sheets.ready import Found, Ready, unseen
from headwork.sheets.sheet import NUMBERS, Part, Problem

WHOLE = -1  # in a set of wanted rows: all of them
FEWEST_DRAWN = 4  # steps that make a picture worth its room


def chosen(problem: Problem, label: str | None) -> tuple[Part, ...]:
    return tuple(part for part in problem.parts if label is None or part.label == label)


class Solver:
    """Works the parts of one problem in order and remembers which rows the page has shown."""

    def __init__(self, ready: Ready, label: str | None, only_asked: bool) -> None:
        self.ready, self.only_asked, self.notation = ready, only_asked, ready.problem.notation
        self.problem = ready.problem
        if label is not None:
            self.problem = dataclasses.replace(ready.problem, parts=chosen(ready.problem, label))
        self.shown: dict[Step, set[int]] = {}
        self.answers: list[w.Line] = []

    def part(self, part: Part) -> w.PartWorking:
        self.answers = []
        try:
            lines = KINDS[part.kind](self, part)
            steps = self.steps(part) if part.kind in NUMBERS else ()
        except HeadworkError as error:
            where = f"problem '{self.problem.title}', part '{part.label}': " if part.label else ""
            raise HeadworkError(f"{where}{error}") from None
        return w.PartWorking(part, tuple(lines), steps, tuple(self.answers if steps else lines))

    def in_page_order(self, steps: Iterable[Step]) -> list[Step]:
        return sorted(steps, key=self.ready.order.__getitem__)

    def in_sheet_order(self) -> list[Step]:
        """What is given as the sheet gives it, then what follows from its other keys: a mask, angles."""
        handed = self.ready.handed
        told = [self.ready.handed_step(key) for key in self.ready.problem.given]
        return [*dict.fromkeys(step for step in (*told, *self.in_page_order(handed)) if step in handed)]

    # Values.

    def steps(self, part: Part) -> tuple[w.Equation, ...]:
        handed = self.ready.handed_in(part)
        meaning = self.ready.truth(part)
        wanted = {step for found in self.ready.asked(part) for step in needed(found.step, handed)}
        return tuple(self.equation(step, meaning, handed) for step in self.in_page_order(wanted))

    def values(self, part: Part) -> list[w.Line]:
        """The lines a page needs: what is asked, and what leads there and has not been shown."""
        handed = self.ready.handed_in(part)
        meaning = self.ready.truth(part)
        anew = set(self.ready.resting_on(handed.keys() - self.ready.handed.keys()))
        self.shown = {step: rows for step, rows in self.shown.items() if step not in anew}
        asked = self.ready.asked(part)
        question = (self.ready.names(part), tuple(part.given))
        if question not in self.ready.wanted:
            self.ready.wanted[question] = self.wanted_rows(asked, handed)
        wanted = self.ready.wanted[question]
        whole = {found.step for found in asked if found.row is None}
        lines: list[w.Line] = []
        for step in self.in_page_order(wanted):
            rows = self.rows(wanted[step], meaning[step])
            hidden = unseen(step) and step not in whole
            if (step in handed and step not in self.ready.handed) or step in whole:
                lines.append(self.equation(step, meaning, handed))
                self.answers += lines[-1:] if step in whole else []
            elif (not hidden and step not in handed) or (self.only_asked and any(f.step is step for f in asked)):
                # What was handed over came from nowhere, whatever else is known.
                known = {step: meaning[step]} if step in handed else meaning
                lines += self.unseen(step, rows, wanted[step], known, asked)
            self.shown.setdefault(step, set()).update(rows)
        return lines

    def unseen(
        self, step: Step, rows: set[int], wanted: set[int], meaning: Mapping[Step, Matrix], asked: list[Found]
    ) -> list[w.Line]:
        """The lines for one step: its asked entries and rows, and whatever of it has not been shown."""
        entries = [f for f in asked if f.step is step and f.column is not None]
        lines: list[w.Line] = [self.arithmetic(f, meaning) for f in entries]
        self.answers += lines
        asked_rows = {f.row for f in asked if f.step is step and f.row is not None and f.column is None}
        if self.only_asked:
            return [*lines, *(self.row(step, r, meaning) for r in sorted(asked_rows))]
        answered = {f.row for f in entries} - asked_rows
        missing = {r for r in rows if r not in self.shown.get(step, set())} - answered
        if WHOLE in wanted and missing:
            self.answers += [self.row(step, r, meaning) for r in sorted(asked_rows)]
            return [*lines, self.equation(step, meaning)]
        each = {r: self.row(step, r, meaning) for r in sorted(missing | asked_rows)}
        self.answers += [each[r] for r in sorted(asked_rows)]
        return [*lines, *each.values()]

    def wanted_rows(self, asked: list[Found], handed: Mapping[Step, Matrix]) -> dict[Step, set[int]]:
        """Which rows of which steps the questions rest on."""
        wanted: dict[Step, set[int]] = {}
        for found in asked:
            wanted.setdefault(found.step, set()).add(WHOLE if found.row is None else found.row)
        everything = {step for found in asked for step in needed(found.step, handed)}
        for step in reversed(self.in_page_order(everything)):
            if step in handed or step not in wanted:
                continue
            for position, source in enumerate(step.inputs):
                # A row of a product needs that row of the left factor and all of the right one.
                all_of_it = not _row_by_row(step) or (isinstance(step.op, MatMul) and position == 1)
                wanted.setdefault(source, set()).update({WHOLE} if all_of_it else wanted[step])
        return wanted

    @staticmethod
    def rows(wanted: set[int], matrix: Matrix) -> set[int]:
        return set(range(len(matrix))) if WHOLE in wanted else wanted

    def equation(
        self, step: Step, meaning: Mapping[Step, Matrix], handed: Collection[Step] | None = None
    ) -> w.Equation:
        given = isinstance(step.op, Given) or step in (self.ready.handed if handed is None else handed)
        value = meaning.get(step)
        operands = () if given else tuple(w.Operand(self.notation.of(s), meaning.get(s)) for s in step.inputs)
        near = () if value is None or given else self.near(step, value)
        shape = self.ready.shape[step][0 if value is None else -2 :]  # numbers are those of one item
        block = None if given else self.block(step)
        return w.Equation(step, self.notation.of(step), operands, shape, value, block, near)

    def block(self, step: Step) -> tuple[int, int] | None:
        width = self.ready.shape[step][-1]
        if isinstance(step.op, Rows):
            return step.op.start + self.notation.first_index, step.op.stop - 1 + self.notation.first_index
        if not isinstance(step.op, Split) or not isinstance(width, int):
            return None
        start = step.op.part * width + self.notation.first_index
        return start, start + width - 1

    def row(self, step: Step, row: int, meaning: Mapping[Step, Matrix]) -> w.Equation:
        """One row as an equation of its own; as a column where the page writes vectors as columns."""
        worked_out = all(source in meaning for source in step.inputs)  # else it was handed over
        if not _row_by_row(step):
            named = tuple(w.Operand(self.notation.of(source), None) for source in step.inputs if worked_out)
            alone = meaning[step][row]
            return w.Equation(step, self.notation.row(step, row), named, (1, len(alone)), (alone,), row=row)
        operands = [
            w.Operand(self.notation.of(source), meaning[source])
            if (isinstance(step.op, MatMul) and position == 1) or len(meaning[source]) == 1 < len(meaning[step])
            else w.Operand(self.notation.row(source, row), (meaning[source][row],))
            for position, source in enumerate(step.inputs)
            if worked_out
        ]
        value: Matrix = (meaning[step][row],)
        near = self.near(step, value, row)
        if self.problem.columns:
            value = w.flip(value)
            operands = [w.Operand(o.name, o.value and w.flip(o.value)) for o in operands]
            if isinstance(step.op, MatMul) and operands:  # (x·W)ᵀ = Wᵀ·xᵀ, and the vector x is the column already
                left, right = operands
                operands = [w.Operand(right.name.flipped(), right.value), left]
        shape = (len(value), len(value[0]))
        name, upright = self.notation.row(step, row), self.problem.columns
        return w.Equation(step, name, tuple(operands), shape, value, self.block(step), near, row, upright)

    def near(self, step: Step, value: Matrix, first_row: int = 0) -> tuple[w.Near, ...]:
        """The weights that print as 0 or 1 without being so."""
        if step.role != "weights":
            return ()
        found = []
        for i, row in enumerate(value):
            for j, weight in enumerate(row):
                if isinstance(weight, Closed | Certain) and (whole := rounded(weight, self.problem.places)) in (0, 1):
                    distance = weight if whole == 0 else Fraction(1) - weight
                    found.append(w.Near(self.notation.entry(step, first_row + i, j), int(whole), distance))
        return tuple(found)

    def arithmetic(self, found: Found, meaning: Mapping[Step, Matrix]) -> w.Arithmetic:
        assert found.row is not None
        assert found.column is not None
        return w.arithmetic(origin(found.step, found.row, found.column, meaning), self.notation)

    # The other kinds.

    def shape_table(self, part: Part) -> list[w.Line]:
        steps = (
            [found.step for found in self.ready.asked(part)] if part.find else self.in_page_order(self.ready.computed())
        )
        return [w.Shapes(tuple(self.equation(step, {}, {}) for step in dict.fromkeys(steps)))]

    def diagram(self, part: Part) -> list[w.Line]:
        """The way there and, where a part asks for gradients, the way back, with the steps that it meets given."""
        there = needed(self.ready.last, {})
        back = [step for step in needed(self.ready.ends, {}) if step not in set(there)]
        met = [step for step in there if any(step in s.inputs for s in back)]
        return [self.drawn(there), *([self.drawn([*met, *back], met)] if back else [])]

    def drawn(self, steps: list[Step], known: Collection[Step] = ()) -> w.Diagram:
        return w.Diagram.of(steps, lambda step: self.equation(step, {}, known))

    def picture(self) -> w.Diagram | None:
        """What the parts that ask for values work out, on the way there; a step or two need no picture."""
        wanted = {
            step
            for part in self.problem.parts
            if part.kind in NUMBERS
            for found in self.ready.asked(part)
            for step in needed(found.step, self.ready.handed_in(part))
        }
        there = [step for step in self.in_page_order(wanted) if step in self.ready.forward]
        return self.drawn(there) if sum(not unseen(step) for step in there) >= FEWEST_DRAWN else None

    def counts(self, part: Part) -> list[w.Line]:
        from headwork.readings.counts import BY_HAND, Count, repeats

        each, times = self.ready.costs, repeats(self.ready.ends)
        asked = [found.step for found in self.ready.asked(part)] or self.in_page_order(self.ready.computed())
        back = [step for step in asked if step not in self.ready.forward]
        ways = {"total": asked}
        if back and not part.find:
            ways = {"total there": [step for step in asked if step in self.ready.forward], "total back": back}
        lines: list[w.Line] = []
        for name, steps in ways.items():
            rows = tuple((self.equation(step, {}, {}), each[step], times[step]) for step in steps)
            total = sum((each[step].times(times[step]) for step in steps), Count())
            lines.append(w.Counts(rows, total, BY_HAND, name))
        if formula_named(self.problem.formula).blocks and not part.find:
            lines.append(self.at_once())
        return lines

    def at_once(self) -> w.Counts:
        """What the same costs without blocks, and why blocks pay all the same."""
        from headwork.readings.counts import BY_HAND, counts
        from headwork.readings.counts import total as total_count

        sizes, item = self.ready.sizes, 4
        whole = build("scaled_dot_product", sizes, scale=self.problem.scale, how=self.ready.how)
        widest = max(cut(sizes.keys, self.problem.blocks))
        moved = item * (sizes.tokens * (sizes.d_k + sizes.d_v) + sizes.keys * (sizes.d_k + sizes.d_v))
        note = (
            f"Blocks cost more operations, but of the scores there are never more than {sizes.tokens * widest:,} at a "
            f"time, here {sizes.tokens * sizes.keys:,}. Where so many fit into fast memory, nothing but the inputs and "
            f"the output moves: {moved:,} bytes."
        )
        return w.Counts((), total_count(whole, counts(whole)), BY_HAND, "total at once", (note,))

    def moments(self, part: Part) -> list[w.Line]:
        from headwork.numbers.digits import to_float
        from headwork.why_scale import derive, sample

        lines: list[w.Line] = []
        for name in part.find:
            if name == "softmax":
                mean = 0.0 if part.mean is None else to_float(part.mean)
                variance = 1.0 if part.variance is None else to_float(part.variance)
                lines.append(w.Samples(sample(mean, variance)))
            elif name in ("mean", "variance", "scale"):
                lines.append(w.Derivation(derive(name, part.mean, part.variance)))
            else:
                raise HeadworkError(f"moments has mean, variance, scale and softmax, not '{name}'")
        return lines

    def proofs(self, part: Part) -> list[w.Line]:
        from headwork.claims import claim

        claims = claim(part.find, self.ready, self.notation, entries=part.entries)
        return [w.Argument(text, proof) for text, proof in claims]


def _row_by_row(step: Step) -> bool:  # whether a row is made of the same row of what it is made of
    return not isinstance(step.op, Transpose | Rows | Stack) and step.op != Sums(-2)


KINDS: Mapping[str, Callable[[Solver, Part], list[w.Line]]] = {
    "value": Solver.values,
    "gradient": Solver.values,
    "shape": Solver.shape_table,
    "count": Solver.counts,
    "prove": Solver.proofs,
    "moments": Solver.moments,
    "explain": lambda solver, part: [],
    "diagram": Solver.diagram,
}
