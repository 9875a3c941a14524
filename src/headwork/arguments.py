"""Proofs as a lecturer writes them: a few lines in names, for any sizes.

A line is printed only if it holds: both of its sides are worked out in symbols at small sizes, and every entry of the
one must equal that of the other. Sums and entries are printed from the expressions that are checked; names of whole
matrices, derivatives and products that SymPy would contract are written beside them by hand.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product as every
from typing import Any

import sympy

from headwork.formulas import given, product, transposed
from headwork.graph import Head, Step, in_order
from headwork.inline import inline
from headwork.maths import Below, Letter, Maths, Prose, Ratio, Sign, Statement, between, bracketed, listed, row
from headwork.notation import Name, Notation
from headwork.ops import Join
from headwork.proofs import Short, equal, named_pair
from headwork.readings.algebra import algebra
from headwork.readings.symbols import small, symbols

Pairs = Iterable[tuple[Any, Any]]  # of sympy.Expr, which has no types
PROJECTED = ("Q", "K", "V")
SIZE = 3  # heads, keys and columns that a line is checked with

i, j, k, c, n = (sympy.Symbol(name, integer=True) for name in "ijkcn")


def line(left: Maths | None, right: Maths, because: Prose, pairs: Pairs) -> Statement:
    """left = right, because; an error where some entry says otherwise."""
    if not all(equal(one, other) for one, other in pairs):
        raise ArithmeticError(f"{'' if left is None else inline(left)} = {inline(right)} does not hold")
    return Statement(left, right, because)


def at(expression: Any, places: Mapping[Any, int]) -> Any:
    """The expression at these sizes and places: sums written out, x[1, 2] as the entry x_1,2.

    Term by term: SymPy itself would first look for a closed form of a sum, which takes longer than the terms.
    """
    if isinstance(expression, sympy.Sum):
        term, (index, *limits) = expression.args
        first, last = (int(at(limit, places)) for limit in limits)
        return sympy.Add(*(at(term, {**places, index: place}) for place in range(first, last + 1)))
    if isinstance(expression, sympy.Indexed):
        return _entry(expression.base.name, *(int(at(index, places)) for index in expression.indices))
    if not expression.args:
        return sympy.sympify(places.get(expression, expression))
    return expression.func(*(at(part, places) for part in expression.args))


def _entry(base: str, *places: int) -> Any:
    return sympy.Symbol(str(Name.read(base).with_subscripts(*places)), real=True)


def _equation(left: Any, right: Any, because: Prose, *, goes_on: bool = False) -> Statement:
    """A line whose sides are expressions, checked for every j among the keys."""
    pairs = [(at(left, {n: SIZE, j: place}), at(right, {n: SIZE, j: place})) for place in range(1, SIZE + 1)]
    return line(None if goes_on else algebra(left), algebra(right), because, pairs)


def _over_keys(term: Any, first: Any = 1, last: Any = n) -> Any:
    return sympy.Sum(term, (k, first, last))


# The block split.


def blocks_argument(roles: Sequence[str], notation: Notation, heads: int | None = None) -> Short:
    """X·[W_1 | … | W_h] = [X·W_1 | … | X·W_h], whose blocks are the heads' own; for any h if none is told."""
    beyond = set(roles) - set(PROJECTED)
    needed = [*(r for r in PROJECTED if r in roles), *(r for r in PROJECTED if beyond and r not in roles)]
    found = [_projected_at_once(role, notation, heads) for role in needed]
    first, *others = (notation.of_role(role).maths for role in needed)
    where: Prose = ("For ", first, *((", and likewise for ", *listed(others)) if others else ()), ":")
    same = listed(notation.of_role(role, "i").maths for role in PROJECTED)
    then: Prose = ("From the same ", *same, " both go on in the same way. ") if beyond else ()
    return Short(where, found[0], then)


def _projected_at_once(role: str, notation: Notation, heads: int | None) -> tuple[Statement, Statement]:
    X = notation.of_role("X").maths
    shown: list[Head] = [0, "h"] if heads is None else [*range(heads)]
    own = [notation.of_role(role, head).maths for head in shown]
    narrow = [notation.of_role(f"W_{role}", head).maths for head in shown]
    wide, apart, multi_head = _in_symbols(role, min(heads or SIZE, SIZE))
    left = between((X, _side_by_side(narrow, heads)), "·")
    right = _side_by_side([between((X, W), "·") for W in narrow], heads)
    by_columns: Prose = ("column by column: ", X, " times that column")
    return (
        line(left, right, by_columns, zip(wide, apart, strict=True)),
        line(None, _side_by_side(own, heads), ("block by block",), zip(apart, multi_head, strict=True)),
    )


def _side_by_side(items: Sequence[Maths], heads: int | None) -> Maths:
    """[A | B], and [A | … | Z] of many."""
    few = heads is not None and heads <= 3
    return bracketed(between(items if few else (items[0], Sign("…"), items[-1]), "|"), "[", "]")


@lru_cache
def _in_symbols(role: str, heads: int) -> tuple[list[Any], ...]:
    """The entries of X·[W_1 | …], of [X·W_1 | …], and of what the heads of `multi_head` have, side by side."""
    X = given("X", (2, 2 * heads))
    parts = [given(f"W_{role}", (2 * heads, 2), head) for head in range(heads)]
    wide = product(role, X, Step(Join(), tuple(parts), f"W_{role}"))
    apart = Step(Join(), tuple(product(role, X, part) for part in parts), role)
    each, _ = named_pair("multi_head", "multi_head_blocks", heads, 2, 2 * heads)
    own = Step(Join(), tuple(step for step in in_order(each) if step.role == role), role)
    return tuple([entry for row in symbols(last)[last] for entry in row] for last in (wide, apart, own))


# Products, by their definition.


def entry_argument(notation: Notation) -> Short:
    """(Q·Kᵀ)_i,j = Σ_c q_i,c·k_j,c"""
    Q, K = notation.of_role("Q"), notation.of_role("K")
    summed = sympy.Sum(_entries(Q)[i, c] * _entries(K)[j, c], (c, 1, n))
    graph = product("scores", given("Q", (2, SIZE)), transposed(given("K", (2, SIZE))))
    because: Prose = ("column ", Letter("j"), " of ", K.flipped().maths, " is row ", Letter("j"), " of ", K.maths)
    left = Below(_product_of(Q, K.flipped()), between((Letter("i"), Letter("j")), ","))
    return Short((), (line(left, algebra(summed), because, _by_entry(graph, summed, (i, j), notation)),))


def row_argument(notation: Notation) -> Short:
    """(A·V)_i,c = Σ_j a_i,j·v_j,c in every column c, and so for the whole row."""
    A, V = notation.of_role("weights"), notation.of_role("V")
    a, v = _entries(A), _entries(V)
    summed = sympy.Sum(a[i, j] * v[j, c], (j, 1, n))
    graph = product("head_output", given("weights", (2, SIZE)), given("V", (SIZE, 2)))
    pairs = _by_entry(graph, summed, (i, c), notation)
    both, because = _product_of(A, V), ("row ", Letter("i"), " of ", A.maths, " times column ", Letter("c"))
    entry = line(Below(both, between((Letter("i"), Letter("c")), ",")), algebra(summed), because, pairs)
    whole = algebra(sympy.Sum(a[i, j] * v[j], (j, 1, n)))
    return Short((), (entry, line(Below(both, Letter("i")), whole, ("in every column ", Letter("c")), pairs)))


def _entries(name: Name) -> Any:
    """What the entries of a matrix are called, as the reading in symbols calls them."""
    return sympy.IndexedBase(str(small(name)))


def _product_of(left: Name, right: Name) -> Maths:
    return bracketed(between((left.maths, right.maths), "·"))


def _by_entry(graph: Step, expression: Any, places: tuple[Any, Any], notation: Notation) -> list[tuple[Any, Any]]:
    """Every entry of a graph, and what the expression says of it."""
    entries = symbols(graph, notation=Notation(notation.names))[graph]
    return [
        (entry, at(expression, {places[0]: row, places[1]: column, n: SIZE}))
        for row, own in enumerate(entries, 1)
        for column, entry in enumerate(own, 1)
    ]


# The softmax.


def shift_argument() -> Short:
    """The factor e^(−c) comes out above and below, and cancels."""
    s, off = sympy.IndexedBase("s"), sympy.Symbol("c", real=True)
    moved = sympy.exp(s[j] - off) / _over_keys(sympy.exp(s[k] - off))
    below = _over_keys(sympy.exp(s[k]))
    out = sympy.exp(-off)
    apart = Ratio(between((algebra(out), algebra(sympy.exp(s[j]))), "·"), between((algebra(out), algebra(below)), "·"))
    held = [
        (at(moved, {n: SIZE, j: key}), at(out * sympy.exp(s[j]), {j: key}) / at(out * below, {n: SIZE}))
        for key in range(1, SIZE + 1)
    ]
    where = ("For a row ", Letter("s"), " of scores and any number ", Letter("c"), ", such as the largest of them:")
    lines = (
        line(algebra(moved), apart, (algebra(out), " comes out"), held),
        _equation(moved, sympy.exp(s[j]) / below, (algebra(out), " cancels"), goes_on=True),
    )
    return Short(where, lines)


def blockwise_argument() -> Short:
    """What was kept, corrected, is what it would have been with the new maximum."""
    s, v = sympy.IndexedBase("s"), sympy.IndexedBase("v")
    a, b = (sympy.Symbol(name, integer=True) for name in "ab")
    m, new = sympy.symbols("m M", real=True)
    kept = sympy.exp(m - new) * _over_keys(sympy.exp(s[k] - m) * v[k], 1, a)
    block = _over_keys(sympy.exp(s[k] - new) * v[k], a + 1, b)
    so_far = _over_keys(sympy.exp(s[k] - new) * v[k], 1, b)
    sizes = {a: 2, b: SIZE}
    corrected = [(at(kept, sizes) + at(block, sizes), at(so_far, sizes))]
    shifted = _over_keys(sympy.exp(s[k] - m) * v[k]) / _over_keys(sympy.exp(s[k] - m))
    plain = _over_keys(sympy.exp(s[k]) * v[k]) / _over_keys(sympy.exp(s[k]))
    powers = between((algebra(sympy.exp(m - new)), algebra(sympy.exp(s[k] - m))), "·")
    largest: Prose = ("The largest score up to key ", Letter("a"), " is ", Letter("m"), ", and up to ", Letter("b"))
    since = row(powers, Sign("="), algebra(sympy.exp(s[k] - new)))
    where: Prose = (
        *(*largest, ", where the ", "next block ends, ", Letter("M"), ". Since ", since),
        *(", what was kept, corrected, and the block give all so far; without ", algebra(v[k])),
        *(", the sums. After the ", "last block ", algebra(sympy.exp(-m)), " cancels:"),
    )
    all_so_far = line(row(algebra(kept), Sign("+"), algebra(block)), algebra(so_far), (), corrected)
    return Short(where, (all_so_far, _equation(shifted, plain, ())))


def gradient_argument() -> Short:
    """∂L/∂s_j by the chain rule, from the derivatives of a quotient."""
    s, p, g = (sympy.IndexedBase(name) for name in "spg")
    term = _over_keys(p[k] * g[k])
    own, other = p[j] * (1 - p[j]), -p[j] * p[k]
    chained, ruled = g[j] * p[j] - p[j] * term, p[j] * (g[j] - term)
    keys = range(1, SIZE + 1)
    scores = [at(s[key], {}) for key in keys]
    weights = {at(p[key], {}): sympy.exp(at(s[key], {})) / sympy.Add(*map(sympy.exp, scores)) for key in keys}
    shares = [*weights.values()]
    loss = sympy.Add(*(at(g[key], {}) * share for key, share in zip(keys, shares, strict=True)))

    def by_rule(rule: Any, own: int, other: int = 1) -> Any:
        return at(rule, {j: own, k: other, n: SIZE}).subs(weights)

    slopes = {(x, y): sympy.diff(shares[x - 1], scores[y - 1]) for x, y in every(keys, keys)}
    put_together = [(by_rule(chained, key), by_rule(ruled, key)) for key in keys]
    passed_back = [(sympy.diff(loss, scores[key - 1]), by_rule(chained, key)) for key in keys]
    lines = (
        line(_slope("p", j), algebra(own), ("the quotient rule",), [(slopes[x, x], by_rule(own, x)) for x in keys]),
        line(
            *(_slope("p", k), algebra(other), ("for any other ", Letter("k"))),
            [(slopes[y, x], by_rule(other, x, y)) for x, y in every(keys, keys) if x != y],
        ),
        line(_slope("L"), algebra(chained), ("the chain rule",), passed_back),
        line(None, algebra(ruled), ("the sum is the row term ", Letter("D")), put_together),
    )
    quotient = algebra(sympy.exp(s[j]) / _over_keys(sympy.exp(s[k])))
    passed = Ratio(row(Letter("∂"), Letter("L")), row(Letter("∂"), algebra(p[j])))
    share, slope = row(algebra(p[j]), Sign("="), quotient), row(passed, Sign("="), algebra(g[j]))
    return Short(("With ", share, " and ", slope, ":"), lines)


def _slope(of: str, place: Any = None) -> Maths:
    """∂p_k/∂s_j"""
    above = Letter(of) if place is None else Name(of, (str(place),)).maths
    return Ratio(row(Letter("∂"), above), row(Letter("∂"), Name("s", ("j",)).maths))
