"""The way back of a problem whose parts ask for gradients: what L is, and the steps that lead from it to the inputs."""

from collections.abc import Collection
from fractions import Fraction

from headwork.errors import HeadworkError
from headwork.graph import Step, in_order
from headwork.numbers.surd import Real
from headwork.ops import Add, Constant, Given, Multiply, Shape, Subtract
from headwork.readings.shapes import shapes
from headwork.sheets.sheet import Part, Problem

KNOWN = ("mask", "bias", "distance", "cos", "sin", "positions")
OF_NORM = ("gamma_1", "beta_1", "gamma_2", "beta_2")
AROUND = ("W_1", "b_1", "W_2", "b_2", *OF_NORM)
LEARNED = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O", *AROUND)


def gradient_parts(problem: Problem) -> list[Part]:
    return [part for part in problem.parts if part.kind == "gradient"]


def inputs(last: Step) -> list[Step]:
    """What gradients may be asked of without naming it: everything that is given but what follows from positions."""
    return [step for step in in_order(last) if isinstance(step.op, Given) and step.role not in KNOWN]


def way_back(problem: Problem, last: Step, of: Collection[Step]) -> dict[Step, Step]:
    """The gradient of every step between `of` and the last one."""
    from headwork.readings.gradients import gradients

    # The formulas take maxima off for safety alone: `prove --claim shift` is why nothing goes back through them.
    shifts = {step for step in in_order(last) if step.role == "maxima"}
    return gradients(last, of=of, seed=_seed(problem, last), shifts=shifts)


def own_names(table: dict[Step, Step], asked: Collection[Step]) -> dict[Step, Step]:
    """The same, where what is asked for has a line of its own: of X + P dX is dX_P as it is, and says so;
    of a single block of keys dK is dK_1.
    """
    return {
        step: Step(Add(), (gradient,), f"d_{step.role}", step.head)
        if step in asked and (gradient.role, gradient.head) != (f"d_{step.role}", step.head)
        else gradient
        for step, gradient in table.items()
    }


def _seed(problem: Problem, last: Step) -> Step:
    """∂L/∂output: given, or what follows from L. L is of the whole problem: its parts share the way back."""
    parts = gradient_parts(problem)
    if "batch" in problem.sizes:
        raise HeadworkError(
            f"part '{parts[0].label}': batch = {problem.sizes['batch']} ([sizes]), and gradients add up over items; "
            "remove it, or give X as a list of matrices, one for every item"
        )
    if other := [part for part in parts if part.loss != parts[0].loss]:
        raise HeadworkError(
            f"parts '{parts[0].label}' and '{other[0].label}' have different losses; put them into two problems"
        )
    role, loss, shape = f"d_{last.role}", parts[0].loss, shapes(last)[last]
    for part in parts:
        given = {key for key, _ in (*problem.given, *part.given)}
        if not loss and not {"d_output", role} & given:
            raise HeadworkError(
                f'part \'{part.label}\': nothing says what L is; add loss = "sum", loss = "half-squares" with a '
                "target, or given = { d_output = … }"
            )
        if (loss == "half-squares") != ("target" in given):
            raise HeadworkError(f"part '{part.label}': a target and loss = \"half-squares\" belong together; give both")
    if loss == "sum":
        return Step(Constant(shape, Fraction(1)), (), role)  # every entry counts once
    if loss == "half-squares":
        return Step(Subtract(), (last, _given("target", shape)), role)
    return _given(role, shape)


def _given(role: str, shape: Shape) -> Step:
    return Step(Given(shape), (), role)


def in_heads_order(found: list[tuple[Step, Step]]) -> list[Step]:
    """Gradients as a page has them: what comes after the heads, head by head, what comes before them."""
    places = [i for i, (step, _) in enumerate(found) if isinstance(step.head, int)]
    if places:
        first, last = places[0], places[-1] + 1
        found[first:last] = sorted(found[first:last], key=lambda pair: int(pair[0].head or 0))
    return [gradient for _, gradient in found]


def learned(parameter: Step, gradient: Step, rate: Real) -> Step:
    """W − η·dW."""
    eta = Step(Constant((1, 1), rate), (), "rate")
    change = Step(Multiply(), (gradient, eta), f"change_{parameter.role}", parameter.head)
    return Step(Subtract(), (parameter, change), f"next_{parameter.role}", parameter.head)
