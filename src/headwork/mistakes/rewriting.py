"""How a mistake is written down: a named rewrite of the graph, and the small constructions it is made of."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from headwork.errors import ShapeError
from headwork.graph import L, Last, Step, in_order, rewrite
from headwork.ops import Add, Join, MatMul, Split, Transpose

Edit = Callable[[Step], Step | None]
Ways = Callable[[Last], Iterable[Edit]]


@dataclass(frozen=True)
class Mistake:
    """A named rewrite. `ways` gives, for a graph, every way of making it: in all heads, in one head, in one matrix."""

    tag: str
    advice: str
    ways: Ways
    per_head: bool = False  # whether the ways after the first are the same edit in one head

    def made_in(self, last: L) -> list[L]:
        """The graphs with the mistake in them, one for every way; none where the graph gives no occasion for it."""
        return [graph for edit in self.ways(last) if (graph := edited(last, edit)) is not None]

    def made_everywhere(self, last: L) -> list[L]:
        """The same without the ways that go wrong in one head only."""
        ways = list(self.ways(last))
        chosen = ways[:1] if self.per_head else ways
        return [graph for edit in chosen if (graph := edited(last, edit)) is not None]


def edited(last: L, edit: Edit) -> L | None:
    """The rewritten graph; None where nothing changes, or where nothing fits together any more."""
    try:
        graph = rewrite(last, edit)
    except ShapeError:
        return None
    return None if graph is last else graph


ENTERED: defaultdict[str, dict[str, Mistake]] = defaultdict(dict)  # by the module that enters it, by tag


def mistake(tag: str, advice: str) -> Callable[[Edit], Edit]:
    """Enter an edit that can be made in every head, or in one of them."""

    def enter(edit: Edit) -> Edit:
        ENTERED[edit.__module__][tag] = Mistake(tag, advice, lambda last: in_all_or_one_head(edit, last), True)
        return edit

    return enter


def mistake_with_ways(tag: str, advice: str) -> Callable[[Ways], Ways]:
    """Enter a mistake whose edits depend on the whole graph."""

    def enter(ways: Ways) -> Ways:
        ENTERED[ways.__module__][tag] = Mistake(tag, advice, ways)
        return ways

    return enter


def in_all_or_one_head(edit: Edit, last: Last) -> list[Edit]:
    heads = sorted({step.head for step in in_order(last) if step.role == "scores" and isinstance(step.head, int)})
    one = [lambda step, head=head: edit(step) if step.head == head else None for head in heads]
    return [edit, *one] if len(heads) > 1 else [edit]


def all_or_each(names: Sequence[str]) -> list[list[str]]:
    """What a mistake may be made in: all of these at once, and one of them alone."""
    return ([list(names)] if len(names) > 1 else []) + [[name] for name in names]


# Small constructions out of the eight operations, for mistakes that cut and stack.


def relabelled(step: Step, like: Step) -> Step:
    """The same numbers under another step's name. Joining it alone keeps the step itself, which may be handed over."""
    return Step(Join(), (step,), like.role, like.head)


def row_block(step: Step, part: int, of: int) -> Step:
    """Rows cut into `of` equal blocks: transpose, split, transpose."""
    turned = Step(Transpose(), (step,), "turned", step.head)
    return Step(Transpose(), (Step(Split(part, of), (turned,), "turned_part", step.head),), "rows", step.head)


def side_by_side(role: str, parts: Sequence[Step]) -> Step:
    return Step(Join(), tuple(parts), role)


def stack(role: str, parts: Sequence[Step]) -> Step:
    """Parts under one another: transpose each, join, transpose."""
    turned = tuple(Step(Transpose(), (part,), "turned", part.head) for part in parts)
    return Step(Transpose(), (Step(Join(), turned, "turned_whole"),), role)


def add_up(role: str, parts: Sequence[Step]) -> Step:
    total = reduce(lambda a, b: Step(Add(), (a, b), "sum"), parts)
    return Step(total.op, total.inputs, role)


def is_projection(step: Step) -> bool:
    """X·W for a given W."""
    return isinstance(step.op, MatMul) and step.inputs[1].role.startswith("W_")


def masks(step: Step) -> bool:
    """scores + mask; not where another mistake has left the mask out."""
    return step.role == "masked" and len(step.inputs) == 2
