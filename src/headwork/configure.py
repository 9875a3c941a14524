"""Shapes, counts and moments of a configuration: sizes in, a `Working` line out. No sheet needed."""

import re
from collections import Counter
from collections.abc import Callable
from inspect import Parameter, signature
from typing import TypedDict, TypeVar, Unpack

from headwork.build import Sizes, build
from headwork.errors import HeadworkError
from headwork.formulas import formula_named
from headwork.graph import Step, in_order
from headwork.notation import PLAIN, Name
from headwork.numbers.surd import Real
from headwork.ops import Given, Join, Shape, Size, Split, Transpose
from headwork.readings.counts import CONVENTIONS, repeats
from headwork.readings.counts import counts as read_counts
from headwork.readings.counts import total as total_count
from headwork.readings.shapes import shapes as read_shapes
from headwork.sheets.fields import parse_size
from headwork.working import Counts, Diagram, Equation, MomentsTable, Operand, Shapes

MOST_HEADS = 256


def configuration(
    formula: str = "multi_head",
    *,
    batch: int | str | None = None,
    tokens: int | str = "n",
    keys: int | str | None = None,
    d_model: int | str | None = None,
    heads: int | str | None = None,
    kv_heads: int | None = None,
    d_k: int | str | None = None,
    d_v: int | str | None = None,
    mask: bool = False,
    biases: bool = False,
) -> Step:
    """The graph of a configuration; sizes are numbers or symbols' names.

    Unless given d_model is d, there are h heads, keys are as many as tokens, and d_k and d_v are d_model/heads.
    """
    chosen = formula_named(formula)
    if chosen.blocks:
        raise HeadworkError(
            f'{formula} has blocks of keys, which a sheet gives: write formula = "{formula}", blocks = 2'
        )
    number = _size(heads if heads is not None else "h") if chosen.several else 1
    if not chosen.several and heads not in (None, 1):
        raise HeadworkError(f"{formula} has one head; choose multi_head or multi_head_blocks for heads = {heads}")
    kept_out = [] if chosen.projects else [("d_model", d_model), ("biases", biases)]
    kept_out += [] if chosen.several else [("kv_heads", kv_heads)]
    for name, value in kept_out:
        if value not in (None, False):
            raise HeadworkError(f"{formula} has no {name}; leave {name} = {value} out or choose another formula")
    most = max((n for n in (number, kv_heads) if isinstance(n, int)), default=0)
    if most > MOST_HEADS:
        raise HeadworkError(f"{most} heads: up to {MOST_HEADS} are gone through one by one; give a symbol such as h")
    if kv_heads not in (None, 1) and not isinstance(number, int):
        raise HeadworkError(f"kv_heads = {kv_heads} needs the number of heads; give it, such as heads = 8")
    width = _size("d" if d_model is None else d_model)
    if isinstance(width, int) and isinstance(number, int) and width % number and d_k is None:
        raise HeadworkError(f"d_model = {width} cannot be shared by {number} heads; choose a multiple of {number}")
    each = width // number if isinstance(width, int) and isinstance(number, int) else width / number
    untold_k, untold_v = (each, each) if chosen.projects else (_size("d_k"), _size("d_v"))
    sizes = Sizes(
        tokens=_size(tokens),
        keys=_size(tokens if keys is None else keys),
        d_model=width,
        d_context=width,
        heads=number,
        kv_heads=number if kv_heads is None else _size(kv_heads),
        d_k=untold_k if d_k is None else _size(d_k),
        d_v=untold_v if d_v is None else _size(d_v),
        d_out=width,
        batch=None if batch is None else _size(batch),
    )
    context = keys is not None and chosen.projects
    names = ("b_Q", "b_K", "b_V", "b_O") if biases and chosen.projects else ()
    return build(formula, sizes, mask=mask, biases=names, context=context)


class GivenSizes(TypedDict, total=False):
    """The keywords of `configuration`."""

    batch: int | str | None
    tokens: int | str
    keys: int | str | None
    d_model: int | str | None
    heads: int | str | None
    kv_heads: int | None
    d_k: int | str | None
    d_v: int | str | None
    mask: bool
    biases: bool


F = TypeVar("F", bound=Callable[..., object])


def _sizes_by_name(function: F) -> F:
    """`help` shows every size by its name, type and default where the function says **sizes."""
    own = [p for p in signature(function).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    sizes = [p for p in signature(configuration).parameters.values() if p.name != "formula"]
    shown = signature(function).replace(parameters=[*own, *sizes])
    function.__signature__ = shown  # type: ignore[attr-defined]  # what help() shows
    return function


@_sizes_by_name
def shapes(formula: str = "multi_head", **sizes: Unpack[GivenSizes]) -> Shapes:
    """The shape of every step of a configuration; sizes are numbers or symbols' names.

    `headwork.shapes("multi_head_blocks", batch="B", tokens="n", d_model="d", heads="h")`
    """
    alike = _Alike(configuration(formula, **sizes))
    return Shapes(tuple(alike.equation(step) for step in alike.steps if not isinstance(step.op, Transpose)))


@_sizes_by_name
def counts(
    formula: str = "multi_head", *, convention: str = "by-hand", item_bytes: int = 4, **sizes: Unpack[GivenSizes]
) -> Counts:
    """What every step of a configuration costs, in a stated convention; bytes for entries of `item_bytes`.

    `headwork.counts(tokens=1024, d_model=512, heads=8).total.multiplications` is 2147483648.
    """
    if convention not in CONVENTIONS:
        raise HeadworkError(f"there is no convention '{convention}'; choose from {', '.join(CONVENTIONS)}")
    chosen = CONVENTIONS[convention]
    alike = _Alike(configuration(formula, **sizes))
    each = read_counts(alike.last, chosen, item_bytes)
    costly = [step for step in alike.steps if not isinstance(step.op, Given | Transpose | Split)]
    rows = tuple((alike.equation(step), each[step], alike.times(step)) for step in costly)
    return Counts(rows, total_count(alike.last, each), chosen)


@_sizes_by_name
def moments(
    formula: str = "scaled_dot_product",
    *,
    mean: Real | int | None = None,
    variance: Real | int | None = None,
    **sizes: Unpack[GivenSizes],
) -> MomentsTable:
    """Mean and variance of every step's entries when the inputs are drawn independently (μ and σ² unless given).

    `headwork.moments(mean=0, variance=1, d_k="D")`: the scores have variance D, the scaled scores 1.
    """
    from headwork.readings.moments import moments as read_moments

    alike = _Alike(configuration(formula, **sizes))
    table = read_moments(alike.last, mean, variance)
    steps = [step for step in alike.steps if not isinstance(step.op, Transpose)]
    return MomentsTable(tuple((alike.equation(step), table[step]) for step in steps))


@_sizes_by_name
def diagram(formula: str = "multi_head", **sizes: Unpack[GivenSizes]) -> Diagram:
    """The graph of a configuration, to be drawn: `headwork.diagram("multi_head_blocks", heads=2)`."""
    last = configuration(formula, **sizes)
    shape = read_shapes(last)
    if sizes.get("kv_heads") is not None and any(isinstance(step.head, str) for step in in_order(last)):
        raise HeadworkError("heads that share keys are drawn one by one; give the number of heads, such as heads = 8")
    return Diagram.of(in_order(last), lambda step: _equation(step, shape[step]))


def _equation(step: Step, shape: Shape) -> Equation:
    operands = tuple(Operand(PLAIN.of(source), None) for source in step.inputs)
    width, block = shape[-1], None
    if isinstance(step.op, Split) and isinstance(width, int):
        block = (step.op.part * width + 1, (step.op.part + 1) * width)
    return Equation(step, PLAIN.of(step), operands, shape, block=block)


class _Alike:
    """A configuration's steps with one head standing for all of them: they differ in nothing that a size can tell."""

    def __init__(self, last: Step) -> None:
        self.last = last
        self.shape = read_shapes(last)
        self.steps = [step for step in in_order(last) if step.head in (None, 0) or isinstance(step.head, str)]
        self.heads = Counter(step.role for step in in_order(last) if isinstance(step.head, int))
        self.repeats = repeats(last)

    def times(self, step: Step) -> Size:
        """How many steps this one stands for."""
        return self.repeats[step] if step.head is None else self.heads.get(step.role, self.repeats[step])

    def name(self, step: Step) -> Name:
        if isinstance(step.op, Transpose):
            return self.name(step.inputs[0]).flipped()
        if step.head is None:
            return PLAIN.of(step)
        # Shared key and value heads have a letter of their own.
        shared = self.heads[step.role] < self.heads["scores"]
        return PLAIN.of_role(step.role, "g" if shared else "i")

    def equation(self, step: Step) -> Equation:
        sources = step.inputs[:1] if isinstance(step.op, Join) else step.inputs
        operands = tuple(Operand(self.name(source), None) for source in sources)
        return Equation(step, self.name(step), operands, self.shape[step])


def _size(value: int | str) -> Size:
    parsed = parse_size(int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,10}", value) else value)
    if isinstance(parsed, int):
        return parsed
    from sympy import Symbol  # numbers alone never load SymPy

    return Symbol(parsed, positive=True, integer=True)
