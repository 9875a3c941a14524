"""Small constructions out of the eight operations, for mistakes that cut and stack."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from headwork.graph import Step
from headwork.ops import Add, Join, MatMul, Split, Transpose


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
