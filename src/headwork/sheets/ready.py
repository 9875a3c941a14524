"""A problem made ready to be read: its graph, and what is handed over."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from headwork.build import Sizes, build
from headwork.errors import HeadworkError, did_you_mean
from headwork.formulas import formula_named, unfolded
from headwork.graph import KeyBlock, Step, in_order, needed, read
from headwork.notation import is_vector
from headwork.numbers.surd import Real
from headwork.ops import Constant, DivideBy, Given, Transpose
from headwork.readings.again import again
from headwork.readings.exact import EXACT, Matrix
from headwork.readings.shapes import shapes
from headwork.sheets.backward import (
    AROUND,
    LEARNED,
    OF_NORM,
    gradient_parts,
    in_heads_order,
    inputs,
    learned,
    own_names,
    way_back,
)
from headwork.sheets.fields import role_and_head
from headwork.sheets.sheet import Key, Part, Problem
from headwork.sheets.sizes import infer_sizes
from headwork.sheets.varied import check_one_sequence, matrices, variations

if TYPE_CHECKING:
    from headwork.readings.counts import Count

MANY_BLOCKS = 1 << 30  # after all of them


@dataclass(frozen=True)
class Found:
    """What a part asks for: a whole step, one row of it, or one entry; rows and columns counted from 0."""

    step: Step
    row: int | None = None
    column: int | None = None


def check_names(problem: Problem, sizes: Sizes) -> None:
    """As many names as there are tokens, or keys."""
    for key, names, allowed in (
        ("tokens", problem.tokens, (sizes.tokens, sizes.keys)),
        ("keys", problem.keys, (sizes.keys,)),
    ):
        if names and len(names) not in allowed:
            raise HeadworkError(f"key '{key}': {len(names)} names for {allowed[0]} of them; give as many")


def unseen(step: Step) -> bool:
    """Whether a page has no line for it: inputs, transposes, zeros and ones that fill up."""
    return isinstance(step.op, Given | Transpose) or (isinstance(step.op, Constant) and not step.role.startswith("d_"))


def _block(step: Step) -> int:
    """Block after block, what belongs to none before or after them."""
    if isinstance(step.head, KeyBlock):
        return step.head + 1
    return MANY_BLOCKS if isinstance(step.op, DivideBy) and isinstance(step.inputs[0].head, KeyBlock) else 0


class Ready:
    """A problem's graph with its inputs: find steps by name, hand matrices over by role."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        check_one_sequence(problem)
        self.sizes: Sizes = infer_sizes(problem)
        roles = {role for role, _ in problem.given}
        self.how = variations(problem, self.sizes)
        last = build(
            problem.formula,
            self.sizes,
            biases=[role for role in roles if is_vector(role)],
            context="context" in roles or bool({"keys", "d_context"} & problem.sizes.keys()),
            # A single head without W_O ends with the head's own output.
            output_projection=formula_named(problem.formula).several or "W_O" in roles or not roles,
            scale=problem.scale,
            blocks=problem.blocks,
            how=self.how,
            around=problem.around,
            eps=problem.eps,
        )
        whole = problem.softmax == "whole"
        self.last = last if whole else unfolded(last, maximum=problem.softmax == "safe-steps")
        self.steps: dict[Key, Step] = {}
        self._enter(in_order(self.last))
        self.forward = set(in_order(self.last))
        self.seed: Step | None = None  # ∂L/∂output, where it is given
        self.ends: tuple[Step, ...] = (self.last, *self._way_back())
        self.shape = shapes(self.ends)
        check_names(problem, self.sizes)
        self.handed = self._handed(problem.given)
        for role, named in matrices(problem, self.sizes).items():
            self._hand(role, named)
        self._known: dict[Step, Matrix] = {}
        self._before: dict[Step, Matrix] = {}  # with other numbers
        self._truth: dict[str, dict[Step, Matrix]] = {}  # by label
        # Which rows a question rests on, by its names and what it hands over: of the graph alone, so kept for edits.
        self.wanted: dict[tuple[tuple[str, ...], tuple[Key, ...]], dict[Step, set[int]]] = {}
        self._asked: dict[tuple[str, ...], list[Found]] = {}  # by names, which stand for the same in the same graph

    def again(self, problem: Problem) -> Ready:
        """The same graph with other numbers, in the same shapes: what rests on none that changed stays worked out."""
        other = copy(self)
        other.problem = problem
        other.handed = {**self.handed, **self._handed(problem.given)}
        changed = {step for step, matrix in other.handed.items() if matrix != self.handed[step]}
        stale = changed.union(self.resting_on(changed))
        other._known = {step: matrix for step, matrix in self._known.items() if step not in stale}
        other._before = self._known
        other._truth = {}
        return other

    @cached_property
    def order(self) -> dict[Step, tuple[int, int]]:
        """Where a page has every step: the way back comes after all blocks, in an order of its own."""
        steps = needed(self.ends, {})
        return {step: (_block(step) if step in self.forward else MANY_BLOCKS, i) for i, step in enumerate(steps)}

    @cached_property
    def costs(self) -> dict[Step, Count]:
        """What every step costs, as it is counted by hand: of the graph alone."""
        from headwork.readings.counts import counts

        return counts(self.ends)

    def _hand(self, role: str, named: tuple[Matrix, ...]) -> None:
        """One matrix for all heads, or one for each; to every block of keys the columns that belong to it."""
        start = 0
        for step in [step for (r, _), step in self.steps.items() if r == role and named and isinstance(step.op, Given)]:
            if isinstance(step.head, KeyBlock):
                stop = start + self.shape[step][-1]
                self.handed[step] = tuple(row[start:stop] for row in named[0])
                start = stop
            else:
                self.handed[step] = named[step.head if isinstance(step.head, int) else 0]

    def _enter(self, steps: Iterable[Step]) -> None:
        """Steps become known by role and head."""
        for step in steps:
            self.steps.setdefault((step.role, step.head if isinstance(step.head, int) else None), step)

    def _way_back(self) -> list[Step]:
        """Where gradients end, if some part asks for them: of what is found, and what is learned from them."""
        parts = gradient_parts(self.problem)
        if not parts:
            return []
        asked: dict[Step, None] = {}
        rates: dict[Step, Real] = {}
        for part in parts:
            names = [name.partition("[")[0].removeprefix("d_") for name in part.find]
            steps = [step for name in names for step in self._steps(*role_and_head(name, self._first), name)]
            asked |= dict.fromkeys(steps or inputs(self.last))
            if part.rate is not None:
                learning = [step for step in steps or asked if step.role in LEARNED]
                if not learning:
                    raise HeadworkError(
                        f"part '{part.label}': a rate is what projections and biases learn by, and none is asked for; "
                        "find one, such as W_Q, or remove the rate"
                    )
                rates |= dict.fromkeys(learning, part.rate)
        table = own_names(way_back(self.problem, self.last, asked), asked)
        ends = in_heads_order([(step, gradient) for step, gradient in table.items() if step in asked])
        ends += [learned(step, table[step], rate) for step, rate in rates.items()]
        self._enter(in_order(tuple(ends)))
        for step, gradient in table.items():
            # Some pass on what they get as it is: the gradient of X·W is the one of X·W + b.
            self.steps.setdefault((f"d_{step.role}", step.head if isinstance(step.head, int) else None), gradient)
        self.steps.setdefault(("d_output", None), table[self.last])
        self.seed = table[self.last] if isinstance(table[self.last].op, Given) else None
        return ends

    @property
    def _first(self) -> int:
        return self.problem.notation.first_index

    def names(self, part: Part) -> tuple[str, ...]:
        """What a part asks for by name. A part about gradients names the steps that they are gradients of."""
        if part.kind != "gradient":
            return part.find
        find = part.find or tuple(dict.fromkeys(step.role for step in inputs(self.last)))
        bare = [name.removeprefix("d_") for name in find]
        found = [f"d_{name}" for name in bare]
        if part.rate is not None:
            roles = [role_and_head(name.partition("[")[0], self._first)[0] for name in bare]
            found += [f"next_{name}" for name, role in zip(bare, roles, strict=True) if role in LEARNED]
        return tuple(found)

    def handed_in(self, part: Part) -> dict[Step, Matrix]:
        """Everything given for a part: the problem's matrices, and those the part itself hands over."""
        return {**self.handed, **self._handed(part.given)}

    def _handed(self, given: Mapping[Key, Matrix]) -> dict[Step, Matrix]:
        handed: dict[Step, Matrix] = {}
        for key, matrix in given.items():
            if key not in self.steps:
                raise HeadworkError(f"{self._called(*key)} is given, but {self._around(key[0]) or self._offer()}")
            handed[self.handed_step(key)] = matrix
        return handed

    def handed_step(self, key: Key) -> Step:
        """What is given by this name: d_output is where the way back begins, also where more stands around attention's
        output, whose gradient it is elsewhere."""
        return self.seed if self.seed and key == ("d_output", None) else self.steps[key]

    def asked(self, part: Part) -> list[Found]:
        names = self.names(part)
        if names not in self._asked:
            self._asked[names] = [found for name in names for found in self.find(name)]
        return self._asked[names]

    def truth(self, part: Part) -> dict[Step, Matrix]:
        """Every step that the part's questions rest on, in closed form: worked out once, for all who ask."""
        if part.label not in self._truth:
            # What was worked out from the problem's own matrices holds for every part that hands over nothing.
            truth = {**({} if part.given else self._known), **self.handed_in(part)}
            asked = tuple(dict.fromkeys(found.step for found in self.asked(part)))
            truth |= read(asked, again(self._before) if self._before else EXACT, truth)
            if not part.given:
                self._known = truth
            self._truth[part.label] = truth
        return self._truth[part.label]

    def find(self, name: str) -> list[Found]:
        """What a name asks for. A bare role with several heads asks for all of them."""
        match = re.fullmatch(r"([^\[\]]+?)(?:\[\s*(-?\d{1,9})\s*(?:,\s*(-?\d{1,9})\s*)?\])?", name.strip())
        if not match:
            raise HeadworkError(f"'{name[:40]}' is not a name; write Q, Q_2, Q[2] or scores_1[3,1]")
        row, column = (None if text is None else int(text) - self._first for text in match.groups()[1:])
        if row is None and (printed := self._printed_place(match[1])):
            return [printed]
        try:
            steps = self._steps(*role_and_head(match[1], self._first), name)
        except HeadworkError as error:
            if not (steps := self._printed(match[1])):
                notation, steps = self.problem.notation, [*self.steps.values()]
                names = [*(str(notation.of_role(s.role)) for s in steps), *(str(notation.of(s)) for s in steps)]
                meant = did_you_mean(match[1], names) if "unknown role" in str(error) else ""
                raise HeadworkError(f"there is no '{match[1][:40]}'{meant}") if meant else error from None
        return [self._inside(Found(step, row, column), name) for step in steps]

    def _printed(self, name: str) -> list[Step]:
        """The steps that the page calls so: M, head_1, W_Q,1; of all heads where the name has no number."""
        notation = self.problem.notation
        shown = {step: str(notation.of(step)) for step in self.steps.values()}
        found = [step for step, called in shown.items() if name in (called, called.replace(",", "_"))]
        return found or [step for step in shown if name == str(notation.of_role(step.role))]

    def _printed_place(self, name: str) -> Found | None:
        """A row or an entry that the page has a name of its own for: q_2, z_3,1."""
        notation = self.problem.notation
        for step in self.steps.values():
            rows, columns = self.shape[step][-2:]
            for row in range(rows) if isinstance(rows, int) else ():
                if f"{step.role}[i]" in notation.names and name == str(notation.row(step, row)):
                    return Found(step, row)
                for column in range(columns) if f"{step.role}[i,j]" in notation.names else ():
                    if name == str(notation.entry(step, row, column)):
                        return Found(step, row, column)
        return None

    def _steps(self, role: str, head: int | None, name: str) -> list[Step]:
        if head is None:
            # In multi_head_blocks the role alone means the wide matrix when it is there, and the heads otherwise.
            if (role, None) in self.steps:
                return [self.steps[role, None]]
            if role == "output":  # of attention, whatever stands around it
                return [self.last if self.problem.around == "none" else self.steps["head_output", None]]
            heads = [step for (r, h), step in self.steps.items() if r == role]
            if heads:
                return heads
        elif (role, head) in self.steps:
            return [self.steps[role, head]]
        raise HeadworkError(f"'{name}' is asked for, but {self._offer()}")

    def _inside(self, found: Found, name: str) -> Found:
        rows, columns = self.shape[found.step][-2:]
        first = self.problem.notation.first_index
        for index, size, what in ((found.row, rows, "rows"), (found.column, columns, "columns")):
            if index is not None and isinstance(size, int) and not 0 <= index < size:
                raise HeadworkError(f"'{name}' lies outside: {what} go from {first} to {size - 1 + first}")
        return found

    def resting_on(self, changed: Collection[Step]) -> list[Step]:
        """The steps that are made, directly or not, of some that changed."""
        touched = set(changed)
        found = []
        for step in in_order(self.ends):
            if touched.intersection(step.inputs):
                touched.add(step)
                found.append(step)
        return found

    def computed(self) -> list[Step]:
        """The steps a page shows: everything but inputs and transposes."""
        return [s for s in in_order(self.ends) if not unseen(s)]

    def _called(self, role: str, head: int | None) -> str:
        return role if head is None else f"{role}_{head + self.problem.notation.first_index}"

    def _around(self, role: str) -> str:
        """What a problem lacks for a matrix that stands around attention."""
        if role in AROUND and self.problem.around == "none":
            return 'nothing stands around attention; add around = "residual", "post-norm" or "pre-norm"'
        if role in OF_NORM and self.problem.around == "residual":
            return 'there is no layer norm; around = "post-norm" and "pre-norm" have one'
        return ""

    def _offer(self) -> str:
        known = [key for key in self.steps if not key[0].endswith("_transposed") and not key[0].startswith("zeros_")]
        names = sorted({self._called(*key) for key in known})
        return f"{self.problem.formula} has only {', '.join(names)}"
