"""A sheet in, a `Working` out."""

import dataclasses
from pathlib import Path

from headwork.errors import HeadworkError, SheetError
from headwork.readings.exact import Matrix
from headwork.sheets.backward import gradient_parts
from headwork.sheets.fields import read_places, read_softmax
from headwork.sheets.load import load
from headwork.sheets.ready import Ready
from headwork.sheets.sheet import Key, Part, Problem, Sheet
from headwork.solver import Solver, chosen
from headwork.working import Arithmetic, Equation, Line, ProblemWorking, Working


def solve(
    sheet: Sheet | str | Path,
    *,
    part: str | None = None,
    places: int | None = None,
    entry: str | None = None,
    softmax: str | None = None,
) -> Working:
    """A sheet worked: a `Sheet`, the name of a built-in one, or a path.

    `part` keeps the parts of that label; `places` replaces the sheet's own; `entry` asks, instead of the parts, for
    the arithmetic of one entry such as "scores_1[2,1]". `softmax` takes it apart as a sheet's key of that name does.
    """
    loaded = sheet if isinstance(sheet, Sheet) else load(sheet)
    among, part = _with_number(loaded, part)
    problems = [_adjusted(problem, places, softmax) for problem in among if chosen(problem, part)]
    if not problems:
        labels = ", ".join(dict.fromkeys(p.label for problem in among for p in problem.parts))
        raise SheetError(f"{loaded.source}: there is no part '{part}'; there is {labels}")
    try:
        if entry is not None:
            return Working(loaded.title, (_solve_entry(problems, part, entry),))
        return Working(loaded.title, tuple(solve_problem(problem, part) for problem in problems))
    except HeadworkError as error:
        raise SheetError(f"{loaded.source}: {error}") from None


def _with_number(sheet: Sheet, label: str | None) -> tuple[tuple[Problem, ...], str | None]:
    """ "2.c" is part c of the second problem, as marks call it."""
    number, dot, part = (label or "").partition(".")
    if not dot or not number.isdecimal() or any(label == p.label for problem in sheet.problems for p in problem.parts):
        return sheet.problems, label
    if not 1 <= int(number) <= len(sheet.problems):
        raise SheetError(f"{sheet.source}: there is no problem {number}; they go from 1 to {len(sheet.problems)}")
    return sheet.problems[int(number) - 1 : int(number)], part


def _adjusted(problem: Problem, places: int | None, softmax: str | None) -> Problem:
    """Checked as the sheet's own keys are: a million places would never be worked out."""
    if places is not None:
        problem = dataclasses.replace(problem, places=read_places(places))
    return problem if softmax is None else dataclasses.replace(problem, softmax=read_softmax(softmax))


def _solve_entry(problems: list[Problem], label: str | None, entry: str) -> ProblemWorking:
    """The first problem that works such an entry out, or else has it given, with its arithmetic alone."""
    refused: HeadworkError | None = None
    as_given: ProblemWorking | None = None
    for problem in problems:
        try:
            given = {**_of_the_loss(problem), **chosen(problem, label)[-1].given}
            question = Part(label="", find=(entry,), given=given)
            parts = (*gradient_parts(problem), question)
            worked = solve_problem(dataclasses.replace(problem, parts=parts, text=""), "", only_asked=True)
            found = dataclasses.replace(worked, given=())
            if any(_worked_out(line) for part in found.parts for line in part.lines):
                return found
            as_given = as_given or found
        except HeadworkError as error:
            refused = error if refused is None or "lies outside" in str(error) else refused
    if as_given is not None:
        return as_given
    assert refused is not None
    raise refused


def _of_the_loss(problem: Problem) -> dict[Key, Matrix]:
    """What the parts about gradients hand over beside their questions: a target, or ∂L/∂output."""
    given = [item for part in gradient_parts(problem) for item in part.given.items()]
    return {key: matrix for key, matrix in given if key[0] == "target" or key[0].startswith("d_")}


def _worked_out(line: Line) -> bool:
    return bool(line.sources) if isinstance(line, Arithmetic) else not isinstance(line, Equation) or not line.given


def solve_problem(
    problem: Problem, label: str | None = None, only_asked: bool = False, ready: Ready | None = None
) -> ProblemWorking:
    """One problem, worked; `ready` where it was made so before."""
    try:
        solver = Solver(ready or Ready(problem), label, only_asked)  # with all parts: together they are the graph
    except HeadworkError as error:
        raise HeadworkError(f"problem '{problem.title}': {error}") from None
    given = tuple(solver.equation(step, solver.ready.handed) for step in solver.in_sheet_order())
    parts = tuple(solver.part(part) for part in solver.problem.parts)
    return ProblemWorking(solver.problem, given, parts, None if only_asked else solver.picture())
