"""New sheets for the bench, of any size, and the same sheet with another formula or number of heads."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from headwork.build import Sizes, build
from headwork.errors import HeadworkError
from headwork.formulas import SQRT_D_K, formula_named
from headwork.graph import in_order, read
from headwork.mistakes.make import Plan, comfortable, new_sheet, sparse, usual_parts
from headwork.numbers.closed import Closed
from headwork.ops import Given
from headwork.readings.exact import EXACT, Hidden, Matrix
from headwork.sheets.ready import Ready
from headwork.sheets.sheet import Key, Problem, Sheet
from headwork.sheets.sizes import PATTERNS

SMALL = (-1, 0, 1, 1, 2)
MOST_DRAWS = 300
LARGEST = {"tokens": 12, "heads": 8, "d_model": 48}
Fill = Callable[[Key, int, int], Matrix]


def zeros(key: Key, rows: int, columns: int) -> Matrix:
    return ((Fraction(0),) * columns,) * rows


def seeded(seed: int) -> Fill:
    """Small whole numbers, the same for the same seed."""

    def fill(key: Key, rows: int, columns: int) -> Matrix:
        generator = Random(f"headwork bench {seed} {key}")
        return tuple(tuple(Fraction(generator.choice(SMALL)) for _ in range(columns)) for _ in range(rows))

    return fill


def made(asked: Mapping[str, Any]) -> Sheet:
    """A new sheet as the page's form asks for it."""
    formula = formula_named(str(asked.get("formula", "multi_head")))
    tokens, heads, d_model = (_size(asked, key, most) for key, most in LARGEST.items())
    heads = heads if formula.several else 1
    seed, fill = int(asked.get("seed", 7)), str(asked.get("fill", "seeded"))
    mask, places = str(asked.get("mask", "none")), int(asked.get("places", 2))
    if d_model % heads:
        raise HeadworkError(f"d_model = {d_model} cannot be shared by {heads} heads; give a multiple of {heads}")
    if fill == "drawn":
        return new_sheet(Plan(formula.name, tokens, heads, d_model, mask, False, places), seed, anyway=True)
    kv_heads = min(int(asked.get("kv_heads") or heads), heads)
    sizes = Sizes(tokens, tokens, d_model, d_model, heads, kv_heads, d_model // heads, d_model // heads, d_model)
    plain = Problem("", formula.name, (), mask=mask, places=places)
    problem = of_sizes(plain, sizes, zeros if fill == "zeros" else seeded(seed))
    title = f"{heads} heads, {tokens} tokens" if heads > 1 else f"One head, {tokens} tokens"
    return Sheet(title, (replace(problem, title=title),))


def another(sheet: Sheet, seed: int) -> Sheet:
    """The same questions with other numbers: drawn until they are small and no softmax is flat or saturated."""
    generator = Random(f"headwork another {seed}")
    return replace(sheet, problems=tuple(_redrawn(problem, generator) for problem in sheet.problems))


def _redrawn(problem: Problem, generator: Random) -> Problem:
    if not problem.given:
        return problem
    ready, drawn = Ready(problem), problem
    for _ in range(MOST_DRAWS):
        given = {key: _drawn(key[0], matrix, generator) for key, matrix in problem.given.items()}
        drawn = replace(problem, given=given)
        try:
            if comfortable(ready.again(drawn)):
                return drawn
        except HeadworkError:
            return drawn  # not everything is given, so that nothing can be said of its softmax
    return drawn


def _drawn(role: str, matrix: Matrix, generator: Random) -> Matrix:
    rows, columns = len(matrix), len(matrix[0])
    if role.startswith("W_"):
        return sparse(rows, columns, generator)
    return tuple(tuple(Fraction(generator.choice(SMALL)) for _ in range(columns)) for _ in range(rows))


def _size(asked: Mapping[str, Any], key: str, most: int) -> int:
    size = int(asked.get(key, 2))
    if not 1 <= size <= most:
        raise HeadworkError(f"{key} = {size} is no size for the bench; give 1 to {most}")
    return size


def of_sizes(problem: Problem, sizes: Sizes, fill: Fill, *, context: bool = False) -> Problem:
    """The problem with everything given that its formula takes in these sizes, and the usual parts."""
    formula = formula_named(problem.formula)
    scale = (problem.scale if problem.scale is not None else SQRT_D_K) if formula.scaled else None
    biases = {role for role, _ in problem.given if role.startswith("b_")}
    blocks = 2 if formula.blocks else 1
    last = build(problem.formula, sizes, biases=biases, context=context, scale=scale, blocks=blocks)
    given: dict[Key, Matrix] = {}
    for step in in_order(last):
        if isinstance(step.op, Given):
            key = (step.role, step.head if isinstance(step.head, int) else None)
            given[key] = fill(key, *step.op.shape[-2:])
    order = list(PATTERNS)
    given = dict(sorted(given.items(), key=lambda item: (order.index(item[0][0]), item[0][1] or 0)))
    several = formula.several
    return replace(
        problem,
        heads=sizes.heads if several else None,
        kv_heads=sizes.kv_heads if several and sizes.kv_heads != sizes.heads else None,
        scale=scale,
        blocks=blocks,
        softmax="whole" if formula.blocks else problem.softmax,
        given=given,
        sizes={},
        marking={},
        parts=usual_parts(problem.formula, problem.mask == "causal", ("W_O", None) in given),
    )


def rebuilt(problem: Problem, formula: str, heads: int | None = None, kv_heads: int | None = None) -> Problem:
    """The same with another formula or number of heads: what can be kept is kept, the rest is small numbers."""
    ready = Ready(problem)
    sizes = ready.sizes
    numbers = (sizes.tokens, sizes.keys, sizes.d_k, sizes.d_v, sizes.heads, sizes.kv_heads)
    if not all(isinstance(size, int) for size in numbers):
        raise HeadworkError("its sizes are symbols or not told, so there is nothing to rebuild; open another sheet")
    chosen = formula_named(formula)
    several = chosen.several
    before = sizes.heads if formula_named(problem.formula).several else 2
    heads = (heads or before) if several else 1
    shared = sizes.kv_heads != sizes.heads and heads % sizes.kv_heads == 0
    kv_heads = (kv_heads or (sizes.kv_heads if shared else heads)) if several else 1
    if heads % kv_heads:
        raise HeadworkError(f"{heads} heads cannot share {kv_heads} kv heads; choose a number that divides {heads}")
    projected = formula_named(problem.formula).projects and isinstance(sizes.d_model, int)
    width = sizes.d_model if projected else sizes.d_k * heads
    new = replace(sizes, heads=heads, kv_heads=kv_heads, d_model=width)
    context = projected and any(role == "context" for role, _ in problem.given)
    if chosen.projects and not context:
        new = replace(new, keys=sizes.tokens, d_context=width)
    new = replace(new, d_out=sizes.d_out if projected and isinstance(sizes.d_out, int) else width)
    kept = _Kept(ready)
    built = of_sizes(replace(problem, formula=formula), new, kept.fill(new), context=context)
    return replace(built, parts=problem.parts) if _answers(replace(built, parts=problem.parts)) else built


def _answers(problem: Problem) -> bool:
    """Whether every part can still be asked, and asks for something that is not given."""
    try:
        ready = Ready(problem)
        asked = [found.step.op for part in problem.parts for found in ready.asked(part)]
        for part in problem.parts:
            ready.handed_in(part)
    except HeadworkError:
        return False
    return not any(isinstance(op, Given) for op in asked)


class _Kept:
    """The matrices of a sheet by role, one for each head, to be taken over into another formula."""

    def __init__(self, ready: Ready) -> None:
        self.ready = ready
        self.given = ready.problem.given

    def heads(self, role: str) -> list[Matrix]:
        """One for every head: as they are given, cut out of a wide one, or worked out."""
        wide = self.given.get((role, None))
        each = [matrix for (r, head), matrix in self.given.items() if r == role and head is not None]
        if wide is not None:
            share = self.ready.sizes.kv_heads if role[-1] in "KV" else self.ready.sizes.heads
            several = formula_named(self.ready.problem.formula).heads == "split" and role[-1] in "QKV"
            step = len(wide[0]) // (share if several else 1)
            return [tuple(row[at : at + step] for row in wide) for at in range(0, len(wide[0]), step)]
        return each or self._worked(role)

    def _worked(self, role: str) -> list[Matrix]:
        """Q, K and V of the first head, where they can be worked out and are numbers that a sheet can give."""
        step = self.ready.steps.get((role, 0)) or self.ready.steps.get((role, None))
        if role not in ("Q", "K", "V") or step is None:
            return []
        try:
            matrix = read(step, EXACT, self.ready.handed)[step]
        except (HeadworkError, KeyError, AssertionError):
            return []
        return [] if any(isinstance(x, Closed | Hidden) for row in matrix for x in row) else [matrix]

    def fill(self, sizes: Sizes) -> Fill:
        other = seeded(7)

        def kept(key: Key, rows: int, columns: int) -> Matrix:
            role, head = key
            found = self.heads(role)
            drawn = other(key, rows, columns)
            share = sizes.kv_heads if role[-1] in "KV" else sizes.heads
            if head is None and role[-1] in "QKV" and role[1:2] == "_" and share > 1:
                width = columns // share
                pieces = [
                    _fitted(found[h] if h < len(found) else (), other((role, h), rows, width)) for h in range(share)
                ]
                return tuple(sum(parts, ()) for parts in zip(*pieces, strict=True))
            number = head or 0
            return _fitted(found[number] if number < len(found) else (), drawn)

        return kept


def _fitted(matrix: Matrix, into: Matrix) -> Matrix:
    """As much of a matrix as there is room for; where it ends, what was there."""
    return tuple(
        tuple(matrix[i][j] if i < len(matrix) and j < len(matrix[0]) else x for j, x in enumerate(row))
        for i, row in enumerate(into)
    )
