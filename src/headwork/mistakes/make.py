"""New sheets: drawn from a seed, fit for pencil, and such that a mistake can be told from its answer.

The projections hold a few small whole numbers, as many in every column, so all sheets of one size cost the same work.
A draw is kept if its numbers stay small, no softmax is flat or saturated, and no two mistakes predict the same answer.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from random import Random

from headwork.errors import HeadworkError
from headwork.formulas import SQRT_D_K, Formula, formula_named
from headwork.mistakes.apart import Alike, Apart
from headwork.mistakes.predict import float_handed
from headwork.readings.exact import Matrix
from headwork.readings.floats import Floats, flat, floats
from headwork.sheets.ready import Ready
from headwork.sheets.sheet import Key, Part, Problem, Sheet

PENCIL = 12  # no entry of Q, K or V is larger
PENCIL_SCORES = 40
FLATTEST, SUREST = 0.12, 0.97  # a row's largest weight, less an equal share; and at most
MOST_DRAWS = 3000
ENTRIES = (-2, -1, -1, 1, 1, 2)
BIAS_ROLES = ("b_Q", "b_K", "b_V", "b_O")


@dataclass(frozen=True)
class Plan:
    """What is asked of a new sheet."""

    formula: str = "multi_head"
    tokens: int = 3
    heads: int = 2
    d_model: int = 6
    mask: str = "none"
    biases: bool = False
    places: int = 2

    def __post_init__(self) -> None:
        formula = formula_named(self.formula)
        if formula.blocks:
            raise HeadworkError(
                f"{self.formula} is not drawn; choose scaled_dot_product and cut it into blocks yourself"
            )
        if self.mask not in ("none", "causal"):
            raise HeadworkError(f"there is no mask '{self.mask}'; choose none or causal")
        for name, size, most in (("tokens", self.tokens, 8), ("heads", self.heads, 8), ("d_model", self.d_model, 32)):
            if not 1 <= size <= most:
                raise HeadworkError(f"{name} = {size} is no size for pencil; give 1 to {most}")
        if self.several and self.d_model % self.heads:
            raise HeadworkError(f"d_model = {self.d_model} cannot be shared by {self.heads} heads; give a multiple")
        if self.biases and not formula.projects:
            raise HeadworkError(f"{self.formula} has no projections and so no biases; choose another formula")

    @property
    def chosen(self) -> Formula:
        return formula_named(self.formula)

    @property
    def several(self) -> bool:
        return self.chosen.several

    @property
    def d_k(self) -> int:
        return self.d_model // self.heads if self.several else self.d_model


def new_sheet(plan: Plan | None = None, seed: int = 7, number: int | str = 1, *, anyway: bool = False) -> Sheet:
    """Sheet so-and-so of a seed, its number or the name of whom it is for. The same plan, seed and number give the
    same sheet. `anyway` makes one where the sizes alone leave mistakes that cannot be told apart: see `alike_on`.

    >>> new_sheet(seed=7, number=3) == new_sheet(seed=7, number=3)
    True
    """
    plan = plan or Plan()
    generator = Random(f"headwork {seed} {number}")
    apart, alike = _apart(plan)
    if alike and not anyway:
        raise HeadworkError(f"no such sheet can be made: {next(iter(alike.values()))}; --anyway makes it all the same")
    reason = ""
    for _ in range(MOST_DRAWS):
        given = _projected(plan, generator) if plan.chosen.projects else _bare(plan, generator)
        if given is None:
            continue
        drawn = apart.ready.again(_problem(plan, given))
        if not comfortable(drawn):
            continue
        reason = apart.coincidence(drawn, alike)
        if not reason:
            title = f"{_title(plan)}, sheet {number}"
            return Sheet(title, (replace(drawn.problem, title=title),), f"Seed {seed}, number {number}")
    tried = f"after {MOST_DRAWS:,} draws"
    raise HeadworkError(f"no such sheet was found {tried}: {reason or 'the softmax stays flat or saturated'}")


def alike_on(plan: Plan) -> list[str]:
    """Which mistakes cannot be told apart on a sheet of these sizes, whatever its numbers, and why."""
    return list(_apart(plan)[1].values())


@lru_cache(maxsize=4)  # a class has one plan, and a sheet takes dozens of draws
def _apart(plan: Plan) -> tuple[Apart, dict[Alike, str]]:
    """The mistakes on sheets of a plan, and which of them cannot be told apart on any."""
    apart = Apart(Ready(_problem(plan, _any_numbers(plan))))
    return apart, apart.structural()


def _title(plan: Plan) -> str:
    heads = f"{plan.heads} heads" if plan.several and plan.heads > 1 else "One head"
    return f"{heads}, {plan.tokens} tokens"


def _bare(plan: Plan, generator: Random) -> dict[Key, Matrix]:
    small = (-1, 0, 1, 1, 2)
    return {(role, None): _matrix(plan.tokens, plan.d_k, small, generator) for role in ("Q", "K", "V")}


def _projected(plan: Plan, generator: Random) -> dict[Key, Matrix] | None:
    """X and the projections: head by head, each drawn until its own softmax is right."""
    X = _matrix(plan.tokens, plan.d_model, (-1, 0, 0, 1, 2), generator)
    if len(set(X)) < plan.tokens:
        return None
    heads: list[dict[str, Matrix]] = []
    for _ in range(plan.heads if plan.several else 1):
        head = _head(plan, X, generator)
        if head is None:
            return None
        heads.append(head)
    given: dict[Key, Matrix] = {("X", None): X}
    for role in heads[0]:
        each = [head[role] for head in heads]
        if plan.chosen.heads == "each":
            given |= {(role, number): matrix for number, matrix in enumerate(each)}
        else:
            given[role, None] = tuple(sum(rows, ()) for rows in zip(*each, strict=True))
    given["W_O", None] = sparse(plan.d_model, plan.d_model, generator)
    if plan.biases:
        given["b_O", None] = _matrix(1, plan.d_model, ENTRIES, generator)
    return given


def _head(plan: Plan, X: Matrix, generator: Random) -> dict[str, Matrix] | None:
    """One head's projections whose weights are neither flat nor saturated."""
    one = Plan("single_head", plan.tokens, 1, plan.d_model, plan.mask, plan.biases, plan.places)
    ready: Ready | None = None
    for _ in range(200):
        head = {role: sparse(plan.d_model, plan.d_k, generator) for role in ("W_Q", "W_K", "W_V")}
        if plan.biases:
            head |= {role: _matrix(1, plan.d_k, ENTRIES, generator) for role in ("b_Q", "b_K", "b_V")}
        given: dict[Key, Matrix] = {("X", None): X, **{(role, None): matrix for role, matrix in head.items()}}
        problem = _problem(one, given)
        ready = Ready(problem) if ready is None else ready.again(problem)
        if comfortable(ready):
            return head
    return None


def comfortable(ready: Ready) -> bool:
    """Small numbers, and every softmax row with a favourite that is not a certainty."""
    for step, value in floats(ready.last, float_handed(ready.handed)).items():
        largest = {"Q": PENCIL, "K": PENCIL, "V": PENCIL, "scores": PENCIL_SCORES}.get(step.role)
        if largest is not None and max(map(abs, flat(value))) > largest:
            return False
        if step.role == "weights" and not _neither_flat_nor_saturated(value):
            return False
    return True


def _neither_flat_nor_saturated(weights: Floats) -> bool:
    for row in weights:
        seen = [weight for weight in row if weight > 0]
        if len(seen) > 1 and not (1 / len(seen) + FLATTEST <= max(seen) <= SUREST):
            return False
    return True


def _matrix(rows: int, columns: int, entries: tuple[int, ...], generator: Random) -> Matrix:
    return tuple(tuple(Fraction(generator.choice(entries)) for _ in range(columns)) for _ in range(rows))


def sparse(rows: int, columns: int, generator: Random) -> Matrix:
    """In every column two entries that are not 0 (one, where there is one row), so every sheet costs the same."""
    drawn = []
    for _ in range(columns):
        places = generator.sample(range(rows), min(2, rows))
        drawn.append([Fraction(generator.choice(ENTRIES)) if row in places else Fraction(0) for row in range(rows)])
    return tuple(zip(*drawn, strict=True))


def _any_numbers(plan: Plan) -> dict[Key, Matrix]:
    """Numbers without pattern: what coincides on these coincides on all."""
    generator = Random("no pattern")

    def odd(rows: int, columns: int) -> Matrix:
        return tuple(tuple(Fraction(generator.randrange(-999, 999), 500) for _ in range(columns)) for _ in range(rows))

    if not plan.chosen.projects:
        return {(role, None): odd(plan.tokens, plan.d_k) for role in ("Q", "K", "V")}
    given: dict[Key, Matrix] = {("X", None): odd(plan.tokens, plan.d_model)}
    biases = BIAS_ROLES[:3] if plan.biases else ()
    for role in ("W_Q", "W_K", "W_V", *biases):
        rows = 1 if role in biases else plan.d_model
        if plan.chosen.heads == "each":
            given |= {(role, head): odd(rows, plan.d_k) for head in range(plan.heads)}
        else:
            given[role, None] = odd(rows, plan.d_k * (plan.heads if plan.several else 1))
    given["W_O", None] = odd(plan.d_model, plan.d_model)
    if plan.biases:
        given["b_O", None] = odd(1, plan.d_model)
    return given


def _problem(plan: Plan, given: dict[Key, Matrix]) -> Problem:
    return Problem(
        title="",
        text=f"Keep two more decimals than the {plan.places} you hand in.",
        formula=plan.formula,
        heads=plan.heads if plan.several else None,
        mask=plan.mask,
        scale=SQRT_D_K if plan.chosen.scaled else None,
        places=plan.places,
        given=given,
        parts=usual_parts(plan.formula, plan.mask == "causal", ("W_O", None) in given),
    )


def usual_parts(formula: str, causal: bool, projected: bool) -> tuple[Part, ...]:
    """What is usually asked of a formula, in the order in which it is worked."""
    chosen = formula_named(formula)
    masked = " The mask is causal: a token reads itself and those before it." if causal else ""
    asked: list[tuple[str, tuple[str, ...]]] = []
    if chosen.projects:
        asked.append(("Find the queries, keys and values.", ("Q", "K", "V")))
    asked.append((f"Find the scores and the weights.{masked}", ("scores", *(() if chosen.blocks else ("weights",)))))
    asked.append(("Find what each head puts out." if chosen.several else "Find the head's output.", ("head_output",)))
    if chosen.several:
        asked.append(("Join the heads and find the output.", ("joined", "output")))
    elif projected:
        asked.append(("Find the output.", ("output",)))
    return tuple(Part(label="abcd"[i], text=text, find=find) for i, (text, find) in enumerate(asked))
