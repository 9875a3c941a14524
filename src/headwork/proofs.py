"""Proofs: two formulas run on the same named entries, equal entry by entry.

Wherever the two have a step of the same role and head whose entries agree, that is a lemma; from there on both go
on from the same fresh symbols, so that each line of the argument stays as short as it is on paper.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import mpmath
import sympy

from headwork.errors import HeadworkError
from headwork.formulas import Formula, Projection, cut, formula_named, given
from headwork.graph import Step, in_order, read
from headwork.maths import Prose, Statement
from headwork.notation import PLAIN, Name, Notation
from headwork.ops import Given, Join, MatMul, Transpose
from headwork.readings.shapes import shapes
from headwork.readings.symbols import SYMBOLS, SymbolMatrix, named

MOST_PRODUCTS = 4000
LONGEST = 200  # symbols and numbers of an expression that is still read


@dataclass(frozen=True)
class Equality:
    """One entry, as each side has it."""

    name: Name
    left: Any  # sympy.Expr
    right: Any
    equal: bool

    @property
    def readable(self) -> bool:
        """Whether both sides are short enough to be written out."""
        return max(_length(self.left), _length(self.right)) <= LONGEST

    @property
    def example(self) -> tuple[str, str]:
        """What the two sides come to for some small numbers."""
        numbers = _small_numbers(self.left - self.right)
        one, other = (sympy.Float(_evaluated(side, numbers), 6) for side in (self.left, self.right))
        return str(one), str(other)


@dataclass(frozen=True)
class Lemma:
    """One step, entry by entry."""

    name: Name
    entries: tuple[Equality, ...]

    @property
    def holds(self) -> bool:
        return all(entry.equal for entry in self.entries)


@dataclass(frozen=True)
class Short:
    """The argument in names, for any sizes: what its letters stand for, its lines, and what follows from them."""

    where: Prose
    lines: tuple[Statement, ...]
    then: Prose = ()


@dataclass(frozen=True)
class Proof:
    """The argument: lemmas in order, and the names of the steps that were claimed to agree.

    Where there is a `short` one, a page shows that instead, and the lemmas are what it was checked by.
    """

    lemmas: tuple[Lemma, ...]
    claimed: tuple[Name, ...]
    short: Short | None = None

    @property
    def holds(self) -> bool:
        return self.first_difference is None

    @property
    def first_difference(self) -> Equality | None:
        """The first entry where the two sides differ."""
        return next((entry for lemma in self.lemmas for entry in lemma.entries if not entry.equal), None)

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        from headwork.render.text import shown_text

        return shown_text(self)


def prove(
    left: Step | str,
    right: Step | str,
    *,
    roles: Collection[str] = (),
    notation: Notation = PLAIN,
    heads: int = 2,
    tokens: int = 2,
    d_model: int | None = None,
) -> Proof:
    """Two formulas on symbolic entries: the entry-by-entry argument, or the first entry where they differ.

    Either side is a formula's name or the last step of a graph; two graphs must share their `Given` steps.
    `roles` stops the argument at those steps. The sizes are for names: d_model is 2·heads unless given.

    >>> bool(prove("multi_head", "multi_head_blocks"))
    True
    """
    if isinstance(left, str) or isinstance(right, str):
        left, right = named_pair(left, right, heads, tokens, d_model or 2 * heads)
    products = _products(left) + _products(right)
    if products > MOST_PRODUCTS:
        raise HeadworkError(
            f"this takes {products:,} products, and {MOST_PRODUCTS:,} can be read; choose smaller sizes"
        )
    lemmas = _lemmas(left, right, roles, notation)
    if not lemmas:
        raise HeadworkError("the two sides have no step in common to compare")
    names = tuple(lemma.name for lemma in lemmas)
    return Proof(tuple(lemmas), names if roles else names[-1:])


def _products(last: Step) -> int:
    """Of two entries each, in all products of matrices."""
    shape = shapes(last)
    return sum(math.prod(shape[s.inputs[0]][-2:]) * shape[s][-1] for s in in_order(last) if isinstance(s.op, MatMul))


def _lemmas(left: Step, right: Step, roles: Collection[str], notation: Notation) -> list[Lemma]:
    partners = {(s.role, s.head): s for s in in_order(right) if not isinstance(s.op, Given)}
    partners[left.role, left.head] = right
    if not any(step.head == 1 for side in (left, right) for step in in_order(side)):
        for (role, head), step in list(partners.items()):  # a single head is the first of one
            partners.setdefault((role, None if head == 0 else 0), step)
    known: dict[Step, SymbolMatrix] = {}
    for step in [*in_order(left), *in_order(right)]:
        if isinstance(step.op, Given):
            known[step] = named(step, step.op.shape, notation)
    shape = shapes(left)
    lemmas = []
    for step in in_order(left):
        partner = partners.get((step.role, step.head))
        if step in known or partner is None or isinstance(step.op, Transpose):
            continue
        if roles and step.role not in roles:
            continue
        lemma = _compare(step, partner, known, notation)
        if lemma.holds or step is left or step.role in roles:
            lemmas.append(lemma)
        if lemma.holds:
            known[step] = known[partner] = named(step, shape[step], notation)
    return lemmas


def _compare(left: Step, right: Step, known: dict[Step, SymbolMatrix], notation: Notation) -> Lemma:
    ours = read(left, SYMBOLS, known)[left]
    theirs = read(right, SYMBOLS, known)[right]
    if (len(ours), len(ours[0])) != (len(theirs), len(theirs[0])):
        raise HeadworkError(
            f"{notation.of(left)} is {len(ours)}×{len(ours[0])} on one side and {len(theirs)}×{len(theirs[0])} "
            "on the other; compare formulas of the same sizes"
        )
    entries: list[Equality] = []
    for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        for j, (a, b) in enumerate(zip(one, other, strict=True)):
            entries.append(Equality(notation.entry(left, i, j), a, b, equal(a, b)))
            if not entries[-1].equal:  # one is enough
                return Lemma(notation.of(left), tuple(entries))
    return Lemma(notation.of(left), tuple(entries))


def equal(a: Any, b: Any) -> bool:
    """Equal as written; else unequal if some numbers tell them apart; else equal if algebra says so."""
    if a == b:
        return True
    difference = a - b
    if abs(_evaluated(difference, _small_numbers(difference))) > 1e-20:
        return False
    # What holds whatever a maximum is holds for the maximum, and then exponentials are the only functions left.
    freed = difference.replace(sympy.Max, lambda *numbers: sympy.Dummy(str(numbers), real=True))
    above, _ = sympy.fraction(sympy.together(freed.replace(sympy.exp, _factors_of_exponential)))
    return bool(sympy.expand(above) == 0 or sympy.simplify(difference) == 0)


def _factors_of_exponential(exponent: Any) -> Any:
    """e^(2a − b) = (e^a)²·(e^b)⁻¹, with a letter for e^a and one for e^b: what is left is a quotient of polynomials."""
    factors = []
    for term in sympy.Add.make_args(sympy.expand(exponent)):
        number, rest = term.as_coeff_Mul()
        whole = number if number.is_Integer else sympy.Integer(1 if number > 0 else -1)
        factors.append(sympy.Symbol(f"e^({rest * number / whole})", positive=True) ** whole)
    return sympy.Mul(*factors)


def _small_numbers(expression: Any) -> dict[Any, Any]:
    names = sorted(expression.free_symbols, key=str)
    return {symbol: sympy.Rational(3 * i + 2, 2 * i + 7) for i, symbol in enumerate(names)}


def _evaluated(expression: Any, numbers: dict[Any, Any]) -> Any:
    """The expression to 30 digits. What occurs many times is worked out once, unlike in SymPy's own `evalf`."""
    known: dict[Any, Any] = {}

    def value(of: Any) -> Any:
        if of not in known:
            rule = _VALUES.get(of.func)
            known[of] = rule(*map(value, of.args)) if rule else mpmath.mpf(numbers.get(of, of).evalf(35))
        return known[of]

    with mpmath.workdps(30):
        return value(expression)


def _length(expression: Any) -> int:
    """How many symbols and numbers it takes to write the expression; what occurs twice counts twice."""
    known: dict[Any, int] = {}

    def length(of: Any) -> int:
        if of not in known:
            known[of] = sum(map(length, of.args)) if of.args else 1
        return known[of]

    return length(expression)


_VALUES = {
    sympy.Add: lambda *terms: sum(terms, mpmath.mpf(0)),
    sympy.Mul: lambda *factors: math.prod(factors, start=mpmath.mpf(1)),
    sympy.Pow: mpmath.power,
    sympy.exp: mpmath.exp,
    sympy.Max: max,
}


def named_pair(left: Step | str, right: Step | str, heads: int, tokens: int, d_model: int) -> tuple[Step, Step]:
    """Two formulas by name, on the same inputs."""
    if not isinstance(left, str) or not isinstance(right, str):
        raise HeadworkError("give two formula names or two graphs, not one of each")
    one, other = formula_named(left), formula_named(right)
    if min(heads, tokens, d_model) < 1 or d_model % heads:
        raise HeadworkError(f"{heads} head(s) do not divide d_model = {d_model}; choose a multiple of {heads}")
    width = d_model // heads
    if one.projects != other.projects:
        raise HeadworkError(f"'{left}' and '{right}' start from different inputs; compare two that both take X")
    if not one.projects:
        inputs = [given("Q", (tokens, width)), given("K", (tokens, width)), given("V", (tokens, width))]
        halves = {"blocks": cut(tokens, min(2, tokens))}
        left_last, right_last = (f.function(*inputs, **halves if f.blocks else {}) for f in (one, other))
        return left_last, right_last
    X = given("X", (tokens, d_model))
    W = {role: [given(role, (d_model, width), h) for h in range(heads)] for role in ("W_Q", "W_K", "W_V")}
    W_O = Projection(given("W_O", (d_model, d_model)))
    return _on(one, X, W, W_O), _on(other, X, W, W_O)


def _on(formula: Formula, X: Step, W: dict[str, list[Step]], W_O: Projection) -> Step:
    """A formula on shared inputs; the wide projection is *defined* as the narrow ones side by side."""
    if formula.heads == "each":
        return formula.function(X, *([Projection(part) for part in parts] for parts in W.values()), W_O)
    wide = [Projection(Step(Join(), tuple(parts), role)) for role, parts in W.items()]
    heads = {"heads": len(W["W_Q"])} if formula.several else {}
    return formula.function(X, *wide, W_O, **heads)
