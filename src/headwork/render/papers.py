"""The same sheet to write on: a question paper, a worked start that fades out, or the answers alone."""

import dataclasses
from collections.abc import Callable, Iterable

from headwork.working import (
    Argument,
    Arithmetic,
    Counts,
    Derivation,
    Diagram,
    Equation,
    Line,
    Operand,
    PartWorking,
    ProblemWorking,
    Room,
    Shapes,
    Unfilled,
    Working,
)

FEWEST = 4  # lines of room that any question gets


def blank(working: Working) -> Working:
    """A question paper: what is given, what is asked, and room to write. No answer is left anywhere in it."""
    return _each_part(working, lambda worked: _emptied(worked, (Room(_room(worked.lines)),)))


def fade(working: Working, steps: int) -> Working:
    """The first so many steps worked; of the others the name and an empty place for every number."""
    left = steps

    def faded(worked: PartWorking) -> PartWorking:
        nonlocal left
        kept = worked.lines[:left]
        rest = worked.lines[left:]
        left = max(0, left - len(worked.lines))
        # What is handed over is part of the question.
        empty = [line if _given(line) else _unfilled(line) for line in rest]
        if not rest and (worked.lines or left):
            return worked
        return _emptied(worked, (*kept, *empty, *([] if rest else [Room(FEWEST)])))

    return _each_part(working, faded)


def answers_only(working: Working) -> Working:
    """The key: what was asked for, without the way there."""

    def key(worked: PartWorking) -> PartWorking:
        return dataclasses.replace(worked, lines=tuple(map(_answer, worked.answers)))

    kept = _each_part(working, key)
    return dataclasses.replace(kept, problems=tuple(dataclasses.replace(p, given=()) for p in kept.problems))


def _each_part(working: Working, change: Callable[[PartWorking], PartWorking]) -> Working:
    problems: list[ProblemWorking] = []
    for problem in working.problems:
        parts = tuple(change(part) for part in problem.parts)
        problems.append(dataclasses.replace(problem, parts=parts, picture=None))
    return dataclasses.replace(working, problems=tuple(problems))


def _emptied(worked: PartWorking, lines: tuple[Line, ...]) -> PartWorking:
    """The part without its written answer, its steps and its key."""
    part = dataclasses.replace(worked.part, answer="")
    return PartWorking(part, lines, ())


def _room(lines: Iterable[Line]) -> int:
    """About as many lines as the working takes by hand."""
    return max(FEWEST, sum(_height(line) for line in lines))


def _height(line: Line) -> int:
    if isinstance(line, Equation):
        rows = line.shape[-2] if line.shape and isinstance(line.shape[-2], int) else 1
        return 1 + min(rows, 8)
    if isinstance(line, Shapes | Counts):
        return len(line.rows) + 1
    if isinstance(line, Derivation):
        return len(line.lines) + 1
    return 12 if isinstance(line, Diagram | Argument) else 3


def _given(line: Line) -> bool:
    return isinstance(line, Equation) and line.given and line.value is not None


def _unfilled(line: Line) -> Line:
    if isinstance(line, Equation) and line.value is not None:
        return Unfilled(dataclasses.replace(line, value=None, near=(), operands=_bare(line)))
    if isinstance(line, Arithmetic):
        return Unfilled(dataclasses.replace(line, terms=()))
    return Room(_height(line))


def _answer(line: Line) -> Line:
    """The result, without the numbers that led to it."""
    if isinstance(line, Equation):
        return dataclasses.replace(line, operands=_bare(line))
    if isinstance(line, Arithmetic):
        return dataclasses.replace(line, terms=())
    if isinstance(line, Derivation):
        return Derivation(line.lines[-1:])
    if isinstance(line, Argument) and line.proof.holds:
        return Argument(line.claim, dataclasses.replace(line.proof, lemmas=()))
    return line


def _bare(line: Equation) -> tuple[Operand, ...]:
    return tuple(dataclasses.replace(operand, value=None) for operand in line.operands)
