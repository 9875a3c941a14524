"""The same sheet to write on: a question paper, a worked start that fades out, or the answers alone."""

import dataclasses
from collections.abc import Callable, Iterable
from fractions import Fraction
from math import ceil

from headwork import working as w
from headwork.inline import inline
from headwork.maths import BLANK, Prose, Row
from headwork.numbers.digits import exact_decimal
from headwork.numbers.text import written
from headwork.ops import Constant
from headwork.sheets.sheet import NUMBERS, Part, Problem

FEWEST = 4  # lines of room that any question gets
_ASKED = {"shape": "Find the shapes.", "count": "Count the operations.", "diagram": "Draw it."}
_LOSSES = {
    "sum": ", for L the sum of all entries of the output",
    "half-squares": ", for L half the squared distance from the output to the target",
}
NARROW = 3  # columns of a matrix that leaves room for another equation beside it


def blank(working: w.Working) -> w.Working:
    """A question paper: what is given, what is asked, and room to write. No answer is left anywhere in it."""
    problems, total = [], Fraction(0)
    for problem in working.problems:
        parts = []
        for worked in problem.parts:
            points = _points(problem.problem, worked.part)
            total += points
            empty = _emptied(worked, (*filter(handed_over, worked.lines), w.Room(_room(worked.lines))))
            asked = f"{empty.part.text or _asked(worked)} ({points} {'point' if points == 1 else 'points'})".strip()
            parts.append(dataclasses.replace(empty, part=dataclasses.replace(empty.part, text=asked, points=None)))
        told = f"{problem.problem.text} {_places(problem.problem)}".strip()
        new = dataclasses.replace(problem.problem, text=told)
        problems.append(dataclasses.replace(problem, problem=new, parts=tuple(parts), picture=None))
    head: Prose = (
        "Name ",
        _line(6),
        "  Date ",
        _line(2),
        "  Points ",
        _line(1),
        f" of {exact_decimal(total, 4) or total}",
    )
    return w.Working(working.title, tuple(problems), head)


def handed_over(line: w.Line) -> bool:
    """A matrix that a part gives. ∂L/∂output of a sum follows from the question by itself."""
    return isinstance(line, w.Equation) and _given(line) and not isinstance(line.step.op, Constant)


def _asked(worked: w.PartWorking) -> str:
    """What a part without a text of its own asks for."""
    part, names = worked.part, [str(line.name) for line in worked.answers if isinstance(line, w.Equation)]
    if not names:
        return _ASKED.get(part.kind, "")
    found = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    rate = "" if part.rate is None else f", with η = {inline(written(part.rate))}"
    return f"Find {found}{_LOSSES.get(part.loss, '')}{rate}."


def _line(length: int) -> Row:
    """To write on."""
    return Row((BLANK,) * length)


def _points(problem: Problem, part: Part) -> Fraction:
    """As the sheet says, else one for every part."""
    said = problem.marking.get("points", {})
    return part.points if part.points is not None else Fraction(str(said.get(part.label, 1)))


def _places(problem: Problem) -> str:
    """What is asked of numbers that have no end."""
    if not any(part.kind in NUMBERS for part in problem.parts):
        return ""
    return f"Round to {problem.places} decimal {'place' if problem.places == 1 else 'places'}."


def fade(working: w.Working, steps: int) -> w.Working:
    """The first so many steps worked; of the others the name and an empty place for every number."""
    left = steps

    def faded(worked: w.PartWorking) -> w.PartWorking:
        nonlocal left
        kept = worked.lines[:left]
        rest = worked.lines[left:]
        left = max(0, left - len(worked.lines))
        # What is handed over is part of the question.
        empty = [line if _given(line) else _unfilled(line) for line in rest]
        if not rest and (worked.lines or left):
            return worked
        return _emptied(worked, (*kept, *empty, *([] if rest else [w.Room(FEWEST)])))

    return _each_part(working, faded)


def answers_only(working: w.Working) -> w.Working:
    """The key: what was asked for, without the way there."""

    def key(worked: w.PartWorking) -> w.PartWorking:
        return dataclasses.replace(worked, lines=tuple(map(_answer, worked.answers)))

    kept = _each_part(working, key)
    return dataclasses.replace(kept, problems=tuple(dataclasses.replace(p, given=()) for p in kept.problems))


def _each_part(working: w.Working, change: Callable[[w.PartWorking], w.PartWorking]) -> w.Working:
    problems: list[w.ProblemWorking] = []
    for problem in working.problems:
        parts = tuple(change(part) for part in problem.parts)
        problems.append(dataclasses.replace(problem, parts=parts, picture=None))
    return dataclasses.replace(working, problems=tuple(problems))


def _emptied(worked: w.PartWorking, lines: tuple[w.Line, ...]) -> w.PartWorking:
    """The part without its written answer, its steps and its key."""
    part = dataclasses.replace(worked.part, answer="")
    return w.PartWorking(part, lines, ())


def _room(lines: Iterable[w.Line]) -> int:
    """About as many lines as the working takes by hand."""
    return max(FEWEST, ceil(sum(_height(line) for line in lines)))


def _height(line: w.Line) -> Fraction:
    """Lines; of two equations that stand side by side each takes half of theirs."""
    if isinstance(line, w.Equation):
        rows, columns = (n if isinstance(n, int) else 1 for n in (line.shape or (1, 1))[-2:])
        return Fraction(min(rows, 8), 2 if columns <= NARROW else 1)
    if isinstance(line, w.Shapes | w.Counts):
        return Fraction(len(line.rows) + 1)
    if isinstance(line, w.Derivation):
        return Fraction(len(line.lines) + 1)
    return Fraction(12 if isinstance(line, w.Diagram | w.Argument) else 3)


def _given(line: w.Line) -> bool:
    return isinstance(line, w.Equation) and line.given and line.value is not None


def _unfilled(line: w.Line) -> w.Line:
    if isinstance(line, w.Equation) and line.value is not None:
        return w.Unfilled(dataclasses.replace(line, value=None, near=(), operands=_bare(line)))
    if isinstance(line, w.Arithmetic):
        return w.Unfilled(dataclasses.replace(line, terms=()))
    return w.Room(ceil(_height(line)))


def _answer(line: w.Line) -> w.Line:
    """The result, without the numbers that led to it."""
    if isinstance(line, w.Equation):
        return dataclasses.replace(line, operands=_bare(line))
    if isinstance(line, w.Arithmetic):
        return dataclasses.replace(line, terms=())
    if isinstance(line, w.Derivation):
        return w.Derivation(line.lines[-1:])
    if isinstance(line, w.Argument) and line.proof.holds:
        return w.Argument(line.claim, dataclasses.replace(line.proof, lemmas=(), short=None))
    return line


def _bare(line: w.Equation) -> tuple[w.Operand, ...]:
    return tuple(dataclasses.replace(operand, value=None) for operand in line.operands)
