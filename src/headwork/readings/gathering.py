"""What several steps pass back to one: blocks put together again, and everything added up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from headwork.graph import Head, Step
from headwork.ops import Add, Constant, Join, Op, Rows, Shape, Split, Stack


@dataclass(frozen=True)
class Passed:
    """What one step passes back to one of its inputs: an operation still without a name, or a step as it is."""

    to: Step
    via: Step
    op: Op | None
    inputs: tuple[Step, ...]

    def named(self, role: str, head: Head) -> Step:
        return self.inputs[0] if self.op is None else Step(self.op, self.inputs, role, head)


def added(step: Step, passed: list[Passed]) -> Step:
    """d_X, or if several steps pass something back, the sum of d_X_from_Q, d_X_from_K …"""
    role = f"d_{step.role}"
    if len(passed) == 1:
        return passed[0].named(role, step.head)
    terms: list[Step] = []
    for each in reversed(passed):  # in the order of the way there
        name = f"{role}_from_{each.via.role}"
        again = sum(term.role.startswith(name) and term.head == each.via.head for term in terms)
        terms.append(each.named(f"{name}_{again + 1}" if again else name, each.via.head))
    return Step(Add(), tuple(terms), role, step.head)


def gathered(step: Step, passed: list[Passed], shape: Mapping[Step, Shape]) -> Iterator[Passed]:
    """What blocks of columns or of rows pass back stands side by side again, with zeros where nothing came from."""
    for kind, gather in ((Split, _side_by_side), (Rows, _under_one_another)):
        pieces = [p for p in passed if isinstance(p.via.op, kind)]
        if pieces:
            yield from gather(step, pieces, shape)
    yield from (p for p in passed if not isinstance(p.via.op, Split | Rows))


def _side_by_side(step: Step, pieces: list[Passed], shape: Mapping[Step, Shape]) -> Iterator[Passed]:
    typical: Any = pieces[0].via.op
    if not isinstance(typical.of, int):
        yield Passed(step, pieces[0].via, Join(of=typical.of), pieces[0].inputs)
        return
    blocks = {p.via.op.part: p.inputs[0] for p in pieces if isinstance(p.via.op, Split)}
    width = (*shape[step][:-1], shape[step][-1] // typical.of)
    parts = tuple(blocks.get(i) or _zeros(width, f"{step.role}_{i}") for i in range(typical.of))
    yield Passed(step, pieces[0].via, Join(), parts) if len(parts) > 1 else Passed(step, pieces[0].via, None, parts)


def _under_one_another(step: Step, pieces: list[Passed], shape: Mapping[Step, Shape]) -> Iterator[Passed]:
    rows, columns = shape[step][-2:]
    ordered = sorted(pieces, key=_from_above)
    while ordered:
        at, parts, rest = 0, [], []
        via = ordered[0].via
        for piece in ordered:
            op = piece.via.op
            assert isinstance(op, Rows)
            if op.start < at:
                rest.append(piece)  # it overlaps the one before: a matrix of its own
                continue
            parts += [_zeros((op.start - at, columns), f"{step.role}_{at}")] if op.start > at else []
            parts.append(piece.inputs[0])
            at = op.stop
        parts += [_zeros((rows - at, columns), f"{step.role}_{at}")] if at < rows else []
        yield Passed(step, via, Stack(), tuple(parts)) if len(parts) > 1 else Passed(step, via, None, tuple(parts))
        ordered = rest


def _from_above(piece: Passed) -> int:
    assert isinstance(piece.via.op, Rows)
    return piece.via.op.start


def _zeros(shape: Shape, where: str) -> Step:
    return Step(Constant(shape, Fraction(0)), (), f"zeros_{where}")
